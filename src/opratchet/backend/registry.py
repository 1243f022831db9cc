"""All backends by name. A new backend is one new file and one line here; each is imported only when it is used."""

from __future__ import annotations

from importlib import import_module

from opratchet.backend.base import Backend
from opratchet.errors import BadInput

BACKENDS: dict[str, str] = {
    "pypto-sim": "opratchet.backend.pypto_sim:PyptoSim",
    "python": "opratchet.backend.python:Python",
    "tilelang-c": "opratchet.backend.tilelang_c:TileLangC",
}


def get_backend(name: str) -> Backend:
    """The backend of that name; `package.module:Class` names one that is not registered here.

    Raises:
        BadInput: there is none, or what is named cannot be loaded.
    """
    place = BACKENDS.get(name, name)
    if ":" not in place:
        raise BadInput(
            f"unknown backend `{name}`", fix=f"Known backends: {', '.join(sorted(BACKENDS))}."
        )
    module, _, cls = place.partition(":")
    try:
        backend = getattr(import_module(module), cls)()
    except (ImportError, ValueError, AttributeError, TypeError) as error:
        raise BadInput(f"the backend `{name}` cannot be loaded: {error}", fix=_FIX) from None
    if not isinstance(backend, Backend):
        raise BadInput(f"`{name}` is no backend: it is a {type(backend).__name__}", fix=_FIX)
    return backend


_FIX = (
    "Name a subclass of opratchet.backend.base.Backend as package.module:Class; the package has to be importable "
    "where opratchet runs."
)
