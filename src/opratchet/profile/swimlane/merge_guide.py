"""Which subgraphs may be merged, by which setting and key: PyPTO's `hashOrder-hint`, grouped.

A hint has a line for each way to merge, `l1ReuseInfo hashOrder: func8_0, subGraphCount: 24`: the key of the setting and
how many subgraphs of this shape there were before merging, over all iterations. What a setting can group is the number
in one call of the root function, so the count is divided by the number of calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from opratchet.profile.swimlane.timeline import Key, Timeline, call_of

SETTINGS = {
    "l1ReuseInfo": "cube_l1_reuse_setting",
    "cubeMergeInfo": "cube_nbuffer_setting",
    "vecMergeInfo": "vec_nbuffer_setting",
}
_INFO = re.compile(r"(\w{1,40}) hashOrder: ([^\s,]{1,99}), subGraphCount: (\d{1,15})")


@dataclass(frozen=True)
class MergeGroup:
    """Subgraphs of one shape, under one setting.

    Attributes:
        setting: The pass option, e.g. `vec_nbuffer_setting`.
        hash_order: Its key, e.g. `func8_0`.
        sub_graph_count: Subgraphs before merging, over all iterations.
        iterations: Calls of the root function; the outer loop count instead, where one was given.
        tasks: Tasks that were seen, after what merging there was.
        mean_us: Time of such a task, microseconds.
        total_us: Time of all of them, microseconds.
    """

    setting: str
    hash_order: str
    sub_graph_count: int
    iterations: int
    tasks: int
    mean_us: float
    total_us: float

    @property
    def per_iteration(self) -> float:
        """Subgraphs that a setting can group."""
        return self.sub_graph_count / self.iterations


@dataclass
class _Sum:
    us: list[float] = field(default_factory=list)
    calls: set[Key] = field(default_factory=set)


def merge_guide(
    timeline: Timeline, hints: Mapping[Key, str], outer_loops: int | None = None
) -> tuple[MergeGroup, ...]:
    """All groups, those with the largest total first.

    Args:
        timeline: The run.
        hints: The `hashOrder-hint` of each task that has one.
        outer_loops: Trip count of all loops but the innermost; the calls that were seen where not given.
    """
    sums: dict[tuple[str, str, int], _Sum] = {}
    for slot in timeline.slots():
        for group in _groups(hints.get(slot.key, "")):
            one = sums.setdefault(group, _Sum())
            one.us.append(slot.us)
            one.calls.add(call_of(slot.key))
    found = [
        MergeGroup(
            *group,
            outer_loops or len(one.calls),
            len(one.us),
            sum(one.us) / len(one.us),
            sum(one.us),
        )
        for group, one in sums.items()
    ]
    return tuple(sorted(found, key=lambda row: (row.setting, -row.total_us)))


def _groups(hint: str) -> Iterator[tuple[str, str, int]]:
    for info, order, count in _INFO.findall(hint):
        yield SETTINGS.get(info, info), order, int(count)
