"""The corpus: one file each for a kernel that cheats, or for an honest twin of one, named after what it does.

A file is read and never imported. It holds a docstring (what the kernel does and, behind `Caught:`, what stops it), some
constants, and the kernel factory that takes the place of the operator's own:

- `FAMILY`: the kind of trick;
- `ENDS`: outcomes in which an exploit may end; `TWIN = True` instead for an honest kernel, which may end in any outcome but
  a refusal;
- `BACKEND`: `python` where it is not said;
- `NEEDS = "sandbox"`: what it does cannot be undone or seen without the sandbox, so it is only tried inside.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opratchet.errors import BadInput, OpratchetError
from opratchet.ledger.words import Outcome

FOLDER = Path(__file__).with_name("corpus")
HOSTS = Path(__file__).with_name("host")
HOST_OF_BACKEND = {"python": "numpy", "tilelang-c": "tilelang"}
CAUGHT = "Caught:"


@dataclass(frozen=True)
class Entry:
    """One file of the corpus.

    Attributes:
        name: What it does; the file's name.
        family: The kind of trick.
        story: What it does, in a sentence or two.
        caught: What stops it; empty for a twin.
        factory: Source of its kernel factory.
        backend: Backend that it is for.
        ends: Outcomes in which an exploit may end.
        is_twin: Whether it is honest.
        needs: `sandbox` where it may only be tried inside of one; else empty.
    """

    name: str
    family: str
    story: str
    caught: str
    factory: str
    backend: str = "python"
    ends: tuple[Outcome, ...] = ()
    is_twin: bool = False
    needs: str = ""


def read_corpus(folder: Path = FOLDER) -> list[Entry]:
    """All entries, family by family, the twins of a family behind its exploits.

    Raises:
        OpratchetError: a file is none.
    """
    entries = [read_entry(path) for path in sorted(folder.glob("*.py"))]
    order = {name: at for at, name in enumerate(dict.fromkeys(e.family for e in entries))}
    return sorted(entries, key=lambda e: (e.backend != "python", order[e.family], e.is_twin))


def chosen(entries: Sequence[Entry], names: Sequence[str]) -> list[Entry]:
    """Those with one of the names, or of a family with one of the names; all where no name is given.

    Raises:
        BadInput: nothing has a name that is given.
    """
    known = [entry.name for entry in entries]
    families = list(dict.fromkeys(entry.family for entry in entries))
    for name in names:
        if name not in (*known, *families):
            near = difflib.get_close_matches(name, known, n=1)
            raise BadInput(
                f"nothing in the corpus is named `{name}`",
                where="--only",
                fix=f"Did you mean `{near[0]}`?" if near else f"Families: {', '.join(families)}.",
            )
    return [e for e in entries if not names or e.name in names or e.family in names]


def read_entry(path: Path) -> Entry:
    """One file of the corpus.

    Raises:
        OpratchetError: it lacks a docstring, a family, a factory, or what an exploit has to say.
    """
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    story, _, caught = (ast.get_docstring(tree) or "").partition(CAUGHT)
    said = dict(_constants(tree))
    factories = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    is_twin = bool(said.get("TWIN"))
    complete = story.strip() and said.get("FAMILY") and len(factories) == 1
    if not complete or not (is_twin or (caught.strip() and said.get("ENDS"))):
        raise OpratchetError(
            "a file of the corpus needs a docstring, FAMILY and one factory; an exploit also `Caught:` and ENDS",
            where=str(path),
        )
    return Entry(
        name=path.stem,
        family=said["FAMILY"],
        story=" ".join(story.split()),
        caught=" ".join(caught.split()),
        factory=_with_decorators(text, factories[0]),
        backend=said.get("BACKEND", "python"),
        ends=tuple(Outcome(end) for end in said.get("ENDS", ())),
        is_twin=is_twin,
        needs=said.get("NEEDS", ""),
    )


def _constants(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, ast.literal_eval(node.value)


def _span(function: ast.FunctionDef) -> tuple[int, int]:
    """First and last line, counted from 0, the last not included."""
    first = min([function.lineno, *(d.lineno for d in function.decorator_list)])
    return first - 1, function.end_lineno or function.lineno


def _with_decorators(text: str, function: ast.FunctionDef) -> str:
    first, last = _span(function)
    return "\n".join(text.splitlines()[first:last]) + "\n"


def in_place_of(host: str, kernel: str, factory: str) -> str:
    """The host's source with another factory.

    Args:
        host: Source of the operator.
        kernel: Name of its factory.
        factory: What takes its place.
    """
    [old] = [
        node
        for node in ast.parse(host).body
        if isinstance(node, ast.FunctionDef) and node.name == kernel
    ]
    first, last = _span(old)
    lines = host.splitlines()
    return "\n".join([*lines[:first], factory.rstrip("\n"), *lines[last:]]) + "\n"
