"""All backends by name. A new backend is one new file and one line here; each is imported only when it is used."""

from __future__ import annotations

from importlib import import_module

from opratchet.backend.base import Backend
from opratchet.errors import BadInput

BACKENDS: dict[str, str] = {
    "python": "opratchet.backend.python:Python",
    "tilelang-c": "opratchet.backend.tilelang_c:TileLangC",
}


def get_backend(name: str) -> Backend:
    """The backend of that name; `package.module:Class` names one that is not registered here.

    Raises:
        BadInput: there is none.
    """
    place = BACKENDS.get(name, name)
    if ":" not in place:
        raise BadInput(
            f"unknown backend `{name}`", fix=f"Known backends: {', '.join(sorted(BACKENDS))}."
        )
    module, cls = place.split(":")
    backend = getattr(import_module(module), cls)()
    assert isinstance(backend, Backend)
    return backend
