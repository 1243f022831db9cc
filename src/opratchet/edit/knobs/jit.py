"""The options in `@tilelang.jit(...)`: `compile_flags` and `pass_configs`.

Compile flags come in groups; a group is one knob, because flags that contradict one another are one decision. A
value of a group is one flag, several, or none (`""`). TileLang's `c` target calls g++ with no optimisation at all
unless it is told otherwise, so the first move of a source without flags is the largest there is.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass

import libcst as cst

from opratchet.edit.knobs.model import Knob, KnobKind, Value, Workbench
from opratchet.edit.knobs.tables import OPTIMISATION, PASS_CONFIGS, PassConfig
from opratchet.edit.source import code, dotted
from opratchet.edit.splice import Splice

FLAGS = "compile_flags"
PASSES = "pass_configs"


@dataclass(frozen=True)
class Decorator:
    """The `jit` decorator of a kernel factory."""

    bench: Workbench
    node: cst.BaseExpression

    @classmethod
    def of(cls, bench: Workbench) -> Decorator | None:
        """The decorator whose name ends with `jit`; None when the factory has none."""
        for decorator in bench.source.factory.decorators:
            node = decorator.decorator
            called = node.func if isinstance(node, cst.Call) else node
            if dotted(called).rpartition(".")[2] == "jit":
                return cls(bench, node)
        return None

    @property
    def arguments(self) -> Sequence[cst.Arg]:
        """Arguments of the decorator."""
        return self.node.args if isinstance(self.node, cst.Call) else ()

    def given(self, name: str) -> cst.BaseExpression | None:
        """Expression of a keyword; that of the constant behind it when it is a name only the factory mentions."""
        for argument in self.arguments:
            if _is(argument, name):
                value = argument.value
                if isinstance(value, cst.Name):
                    return self.bench.constants.get(value.value, value)
                return value
        return None

    def put(self, name: str, text: str) -> Splice:
        """Add a keyword; a decorator without parentheses gets them."""
        places = self.bench.places
        if isinstance(self.node, cst.Call):
            return places.append(self.node.args, self.node, f"{name}={text}")
        end = places.span(self.node)[1]
        return Splice(end, end, f"({name}={text})")

    def drop(self, name: str) -> Splice:
        """Take a keyword out; parentheses that are left empty go too."""
        which = next(k for k, argument in enumerate(self.arguments) if _is(argument, name))
        if len(self.arguments) > 1:
            return self.bench.places.drop(self.arguments, which)
        assert isinstance(self.node, cst.Call)
        start = self.bench.places.span(self.node.func)[1]
        return Splice(start, self.bench.places.span(self.node)[1], "")

    def holds(self, name: str, value: cst.BaseExpression) -> bool:
        """Whether the keyword is given that very expression, not a constant that holds it."""
        return any(_is(argument, name) and argument.value is value for argument in self.arguments)


def _is(argument: cst.Arg, name: str) -> bool:
    return argument.keyword is not None and argument.keyword.value == name


def flag_knobs(bench: Workbench) -> list[Knob]:
    """One knob for each group of the target's compile flags; none when the flags cannot be read from the text."""
    decorator = Decorator.of(bench)
    if decorator is None:
        return []
    flags = Flags.of(decorator)
    if flags is None:
        return []
    groups = bench.target.compile_flags.items()
    return [_flag_knob(flags, group, values) for group, values in groups]


def _flag_knob(flags: Flags, group: str, values: tuple[str, ...]) -> Knob:
    current = flags.current(group, values)

    def write(value: Value) -> tuple[Splice, ...]:
        return flags.changed(current.split(), str(value).split())

    legal = (current, *(value for value in values if value != current))
    site = flags.decorator.node
    return Knob(f"flag {group}", KnobKind.FLAG, site, current, legal, write)


@dataclass(frozen=True)
class Flags:
    """The compile flags of a decorator.

    Attributes:
        decorator: Where they stand.
        value: Their expression; None when there is none.
        items: The strings in it.
    """

    decorator: Decorator
    value: cst.BaseExpression | None
    items: tuple[cst.SimpleString, ...]

    @classmethod
    def of(cls, decorator: Decorator) -> Flags | None:
        """Read them; None when they are not a string or a list of strings that is written out."""
        value = decorator.given(FLAGS)
        if value is None or code(value) == "None":
            return cls(decorator, None, ())
        elements = value.elements if isinstance(value, (cst.List, cst.Tuple)) else None
        parts = [value] if elements is None else [element.value for element in elements]
        items = tuple(part for part in parts if isinstance(part, cst.SimpleString))
        return cls(decorator, value, items) if len(items) == len(parts) else None

    @property
    def words(self) -> list[str]:
        """All flags, in order."""
        return [word for item in self.items for word in _words(item)]

    def current(self, group: str, values: tuple[str, ...]) -> str:
        """Value that a group has now. The optimisation level is whatever is given, the others are all or nothing."""
        words = self.words
        if group == OPTIMISATION:
            return " ".join(word for word in words if word.startswith(("-O", "-march=")))
        stems = {
            value.partition("=")[0] + "=" for value in values if "=" in value and " " not in value
        }
        alike = [word for word in words if any(word.startswith(stem) for stem in stems)]
        present = [value for value in values if value and set(value.split()) <= set(words)]
        return " ".join(alike) or (present[0] if present else "")

    def changed(self, old: Sequence[str], new: Sequence[str]) -> tuple[Splice, ...]:
        """Splices that take flags out and put others in: one for one where they stood, the rest at the end."""
        words = self.words
        leaving = [word for word in dict.fromkeys(old) if word not in new]
        coming = [word for word in new if word not in words]
        swap = dict(zip(leaving, coming, strict=False))
        gone = set(leaving[len(coming) :])
        kept = [[swap.get(w, w) for w in _words(item) if w not in gone] for item in self.items]
        return self._written(kept, coming[len(leaving) :])

    def _written(self, kept: list[list[str]], added: list[str]) -> tuple[Splice, ...]:
        places, value = self.decorator.bench.places, self.value
        quoted = ", ".join(f'"{word}"' for word in added)
        if value is None:
            return self._fresh(quoted)
        if isinstance(value, cst.SimpleString):
            return (places.replace(value, _quoted(value, [*kept[0], *added])),)
        assert isinstance(value, (cst.List, cst.Tuple))
        if not any(kept) and not added and self.decorator.holds(FLAGS, value):
            return (self.decorator.drop(FLAGS),)
        splices = [
            places.replace(item, _quoted(item, words))
            for item, words in zip(self.items, kept, strict=True)
            if words and words != _words(item)
        ]
        splices += places.drop_all(value.elements, [k for k, words in enumerate(kept) if not words])
        return (*splices, places.append(value.elements, value, quoted)) if added else tuple(splices)

    def _fresh(self, quoted: str) -> tuple[Splice, ...]:
        if not quoted:
            return ()
        for argument in self.decorator.arguments:
            if _is(argument, FLAGS):
                return (self.decorator.bench.places.replace(argument.value, f"[{quoted}]"),)
        return (self.decorator.put(FLAGS, f"[{quoted}]"),)


def _words(item: cst.SimpleString) -> list[str]:
    return str(ast.literal_eval(item.value)).split()


def _quoted(item: cst.SimpleString, words: Sequence[str]) -> str:
    return f"{item.quote}{' '.join(words)}{item.quote}"


def pass_knobs(bench: Workbench) -> list[Knob]:
    """One knob for each pass configuration that matters on the target; a value is Python text, None is absent."""
    decorator = Decorator.of(bench)
    value = decorator.given(PASSES) if decorator else None
    readable = value is None or isinstance(value, cst.Dict) or code(value) == "None"
    if decorator is None or not readable:
        return []
    rows = PASS_CONFIGS.get(bench.target.backend, ())
    return [_pass_knob(decorator, value, row) for row in rows]


def _pass_knob(decorator: Decorator, value: cst.BaseExpression | None, row: PassConfig) -> Knob:
    elements = value.elements if isinstance(value, cst.Dict) else ()
    found = [k for k, element in enumerate(elements) if _is_key(element, row)]
    current = code(elements[found[0]].value) if found else None
    places = decorator.bench.places

    def write(new: Value) -> tuple[Splice, ...]:
        entry = f'"{row.key}": {new}'
        if new is None:
            return _entry_dropped(decorator, value, found)
        if found:
            return (places.replace(elements[found[0]].value, str(new)),)
        if isinstance(value, cst.Dict):
            return (places.append(elements, value, entry),)
        if value is not None:
            return (places.replace(value, f"{{{entry}}}"),)
        return (decorator.put(PASSES, f"{{{entry}}}"),)

    others = [text for text in (None, *row.values) if text != current]
    name = f"pass {row.key}"
    return Knob(name, KnobKind.PASS, decorator.node, current, (current, *others), write, row.what)


def _entry_dropped(
    decorator: Decorator, value: cst.BaseExpression | None, found: Sequence[int]
) -> tuple[Splice, ...]:
    if not found or not isinstance(value, cst.Dict):
        return ()
    if len(value.elements) == 1 and decorator.holds(PASSES, value):
        return (decorator.drop(PASSES),)
    return tuple(decorator.bench.places.drop_all(value.elements, found))


def _is_key(element: cst.BaseDictElement, row: PassConfig) -> bool:
    if not isinstance(element, cst.DictElement):
        return False
    if isinstance(element.key, cst.SimpleString):
        return str(ast.literal_eval(element.key.value)) == row.key
    return bool(row.constant) and row.constant in dotted(element.key).split(".")
