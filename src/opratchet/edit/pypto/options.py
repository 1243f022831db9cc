"""Options of the jit decorator as knobs: S-5 to S-10 and I-9 of the catalogue.

Each option is one row of `OPTIONS`: the group it stands in, its name and its values. PyPTO 0.2 takes the keys of its merge settings
as integers (`-1` stands for every subgraph); newer ones take names. The two forms are never mixed in one source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import libcst as cst

from opratchet.edit.knobs.jit import Decorator
from opratchet.edit.knobs.model import Workbench
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.source import code, dotted
from opratchet.edit.splice import Splice, spliced


@dataclass(frozen=True)
class Option:
    """One option of the decorator.

    Attributes:
        row: Its row of the catalogue.
        group: Keyword of the decorator that holds it, e.g. `pass_options`.
        name: Its key there.
        values: Values as they are written.
        title: Its name for people, by language.
        gain: Expected gain band, as fractions.
        eases: What it eases.
    """

    row: str
    group: str
    name: str
    values: tuple[str, ...]
    title: Mapping[str, str]
    gain: tuple[float, float]
    eases: frozenset[str]


def _settings(*counts: int) -> tuple[str, ...]:
    return tuple(f"{{-1: {count}}}" for count in counts)


JIT = "pypto.frontend.jit"
BUBBLE, CORES, BALANCE = (frozenset({name}) for name in ("bubble", "core_use", "load_balance"))

OPTIONS: tuple[Option, ...] = (
    Option(
        "S-5",
        "pass_options",
        "vec_nbuffer_setting",
        _settings(1, 2, 4, 8, 16),
        {"zh": "合并 vector 子图", "en": "merge vector subgraphs"},
        (0.03, 0.20),
        BUBBLE,
    ),
    Option(
        "S-6",
        "pass_options",
        "cube_l1_reuse_setting",
        _settings(1, 2, 4, 8, 16),
        {"zh": "L1 复用合并", "en": "merge cube subgraphs that share L1"},
        (0.03, 0.20),
        CORES,
    ),
    Option(
        "S-7",
        "pass_options",
        "cube_nbuffer_setting",
        _settings(2, 4, 8, 16),
        {"zh": "合并 cube 子图", "en": "merge cube subgraphs"},
        (0.03, 0.20),
        CORES,
    ),
    Option(
        "S-9",
        "runtime_options",
        "stitch_function_max_num",
        tuple(map(str, (1, 16, 64, 128, 256, 512, 1024))),
        {"zh": "stitch 数量", "en": "functions stitched at once"},
        (0.03, 0.20),
        BUBBLE,
    ),
    Option(
        "S-10",
        "runtime_options",
        "device_sched_mode",
        tuple(map(str, range(4))),
        {"zh": "调度模式", "en": "scheduling mode"},
        (0.00, 0.10),
        BUBBLE | BALANCE,
    ),
    Option(
        "I-9",
        "runtime_options",
        "valid_shape_optimize",
        ("1",),
        {"zh": "valid_shape 主尾块", "en": "main and tail apart"},
        (0.00, 0.05),
        frozenset({"long_task"}),
    ),
)


class OptionValue(Strategy):
    """Another value for one option.

    Args:
        option: The option.
    """

    document = "docs/pypto.md"

    def __init__(self, option: Option) -> None:
        self.option = option
        self.id = option.name  # type: ignore[misc]
        self.row = option.row  # type: ignore[misc]
        self.title = option.title  # type: ignore[misc]
        self.gain = option.gain  # type: ignore[misc]
        self.eases = option.eases  # type: ignore[misc]

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each other value."""
        decorator = Decorator.of(Workbench(situation.source, situation.target))
        if decorator is None or not _is_pypto(decorator):
            return NotApplicable(f"the kernel has no decorator `{JIT}`")
        group = decorator.given(self.option.group)
        if group is not None and not isinstance(group, cst.Dict):
            return NotApplicable(f"`{self.option.group}` is not written as a dict in the decorator")
        now = _given(group, self.option.name)
        if now is not None and _has_names(now) and any("-1:" in v for v in self.option.values):
            return NotApplicable("its keys are names: integer keys would mix the two forms")
        shown = code(now) if now is not None else "default"
        return [
            Edit(
                self.id,
                value,
                f"{self.option.name} {shown} -> {value}",
                partial(_written, situation, decorator, self.option, value),
            )
            for value in self.option.values
            if value != shown
        ]


def strategies() -> Iterator[OptionValue]:
    """A strategy for each option."""
    yield from map(OptionValue, OPTIONS)


def _is_pypto(decorator: Decorator) -> bool:
    node = decorator.node
    return dotted(node.func if isinstance(node, cst.Call) else node) == JIT


def _entries(group: cst.BaseExpression | None) -> Sequence[cst.DictElement]:
    if not isinstance(group, cst.Dict):
        return ()
    return [element for element in group.elements if isinstance(element, cst.DictElement)]


def _given(group: cst.BaseExpression | None, name: str) -> cst.BaseExpression | None:
    for element in _entries(group):
        if isinstance(element.key, cst.SimpleString) and element.key.evaluated_value == name:
            return element.value
    return None


def _has_names(value: cst.BaseExpression) -> bool:
    return any(isinstance(element.key, cst.SimpleString) for element in _entries(value))


def _written(situation: Situation, decorator: Decorator, option: Option, value: str) -> str:
    return spliced(situation.source.text, [_splice(decorator, option, value)])


def _splice(decorator: Decorator, option: Option, value: str) -> Splice:
    group, places = decorator.given(option.group), decorator.bench.places
    entry = f'"{option.name}": {value}'
    if (now := _given(group, option.name)) is not None:
        return places.replace(now, value)
    if isinstance(group, cst.Dict):
        return places.append(group.elements, group, entry)
    return decorator.put(option.group, f"{{{entry}}}")
