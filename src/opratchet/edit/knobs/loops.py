"""Loops: the depth of `T.Pipelined`, and the kind of every loop.

Which kinds a target takes was tried on the installed TileLang (0.1.15). For its `c` target:

- `T.serial`, `T.unroll`, `T.Pipelined` and `range` make the same code; only `T.unroll(n, explicit=True)` differs: the
  body is written out `n` times;
- `T.vectorized` makes 16-byte vectors of the innermost loop, of `+ - * /` alone: `T.exp` and the like are refused
  ("Unresolved call"), `T.max` does not compile, and a choice, a reduction or an extent that does not divide falls back
  to a serial loop;
- `T.Parallel` is refused where it indexes a buffer of `T.alloc_local`, on every target; over fragments and global tensors
  it builds.

So an illegal kind is not offered, and the knob's note says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import libcst as cst

from opratchet.edit.dialects.tilelang import NESTS, Kernel, Loop, assign, loop, primitive
from opratchet.edit.knobs.model import Knob, KnobKind, Value, Workbench, literal_knob
from opratchet.edit.model import Situation
from opratchet.edit.names import Names, number
from opratchet.edit.source import code, dotted
from opratchet.edit.splice import Splice
from opratchet.edit.tree import free_names, walk

DEEPEST = 4
LARGEST_UNROLL = 16  # further copies of a body only fill the instruction cache
LANES = 4  # float4 is the widest vector that the `c` target makes

_KEYWORD_OF_KIND = ("num_stages", "explicit")


def stage_knobs(bench: Workbench) -> list[Knob]:
    """The depth of each `T.Pipelined`; of a factory default or constant when it is given by name."""
    pipelined = [view for view in bench.loops if view.kind == "Pipelined"]
    known = bench.literals
    found: dict[str, Knob] = {}
    for view in pipelined:
        given = view.keywords.get("num_stages")
        if isinstance(given, cst.Name) and isinstance(known.get(given.value), cst.Integer):
            knob = literal_knob(bench, given.value, known[given.value], KnobKind.STAGES)
        elif given is None or isinstance(given, cst.Integer):
            alone = len(pipelined) == 1
            knob = _depth(
                bench, view, "num_stages" if alone else f"num_stages of {view.targets[0]}"
            )
        else:
            continue
        found.setdefault(knob.name, knob)
    return list(found.values())


def _depth(bench: Workbench, view: Loop, name: str) -> Knob:
    given = view.keywords.get("num_stages")
    current = int(given.value, 0) if isinstance(given, cst.Integer) else None

    def write(value: Value) -> tuple[Splice, ...]:
        return _keyword(bench, view.call, "num_stages", None if value is None else str(value))

    return Knob(name, KnobKind.STAGES, view.call, current, write=write)


def depths(knob: Knob) -> Knob:
    """The knob with 1 to 4 stages as legal values, the next deeper one first."""
    current = knob.current if isinstance(knob.current, int) else 0
    deeper = [depth for depth in range(1, DEEPEST + 1) if depth > current]
    shallower = [depth for depth in range(DEEPEST, 0, -1) if depth < current]
    return knob.limited((knob.current, *deeper, *shallower))


def loop_knobs(bench: Workbench) -> list[Knob]:
    """The kind of every loop, without legal values. Loops are named by their variables: `loop i`, `loop i #2`."""
    seen: Counter[str] = Counter()
    found = []
    for view in bench.loops:
        name = f"loop {', '.join(view.targets)}"
        seen[name] += 1
        found.append(_kind(bench, view, name if seen[name] == 1 else f"{name} #{seen[name]}"))
    return found


def _kind(bench: Workbench, view: Loop, name: str) -> Knob:
    def write(value: Value) -> tuple[Splice, ...]:
        return _rewritten(bench, view, str(value))

    return Knob(name, KnobKind.LOOP, view.node, kind_of(view), write=write)


def kind_of(view: Loop) -> str:
    """`serial`, `unroll(explicit=True)`, `Pipelined(num_stages=2)`: the function and the keyword that goes with it."""
    given = [f"{k}={code(v)}" for k, v in view.keywords.items() if k in _KEYWORD_OF_KIND]
    return f"{view.kind}({', '.join(given)})" if given else view.kind


def _rewritten(bench: Workbench, view: Loop, kind: str) -> tuple[Splice, ...]:
    function, _, given = kind.rstrip(")").partition("(")
    wanted = dict(part.split("=") for part in given.split(", ")) if given else {}
    name = function if function == "range" else _module(bench, view) + function
    splices = [bench.places.replace(view.call.func, name)]
    for keyword in _KEYWORD_OF_KIND:
        splices += _keyword(bench, view.call, keyword, wanted.get(keyword))
    return tuple(splices)


def _module(bench: Workbench, view: Loop) -> str:
    """`T.` or `tilelang.language.`, as the kernel writes it."""
    calls = [part for part in walk(bench.source.body) if isinstance(part, cst.Call)]
    for call in (view.call, *calls):
        if primitive(call):
            return dotted(call.func).removesuffix(primitive(call))
    return "T."


def _keyword(bench: Workbench, call: cst.Call, name: str, value: str | None) -> tuple[Splice, ...]:
    """Give a keyword argument a value, add it, or take it out (None)."""
    for which, argument in enumerate(call.args):
        if argument.keyword is not None and argument.keyword.value == name:
            if value is None:
                return (bench.places.drop(call.args, which),)
            return (bench.places.replace(argument.value, value),)
    if value is None:
        return ()
    return (bench.places.append(call.args, call, f"{name}={value}"),)


class LoopKinds:
    """Legal kinds of the loops of one source.

    Args:
        situation: Gives the source, the shapes of the workloads and the target.
    """

    def __init__(self, situation: Situation) -> None:
        self._target = situation.target
        self._kernel = Kernel.of(situation.source)
        self._views = {view.node: view for view in self._kernel.find(loop)}
        names = Names(situation.source)
        self._names = [names.on(shape) for shape in situation.shapes] or [names.on({})]

    def limit(self, knob: Knob) -> Knob:
        """The knob with the kinds that the target takes; its note says what it does not take, and why."""
        assert isinstance(knob.site, cst.For)
        view = self._views[knob.site]
        others = [kind for kind in self._kinds(view) if kind != knob.current]
        refused = {kind: why for kind in others if (why := self.refuses(kind, view))}
        legal = (knob.current, *(kind for kind in others if kind not in refused))
        return knob.limited(legal, "; ".join(f"{kind}: {why}" for kind, why in refused.items()))

    def _kinds(self, view: Loop) -> Sequence[str]:
        if len(view.targets) > 1:
            return NESTS
        unroll = "unroll(explicit=True)" if self._on_cpu else "unroll"
        kinds = ["serial", unroll, "vectorized", "Parallel"]
        if self._target.pipelining and view.start is None:
            kinds.append("Pipelined(num_stages=2)")
        return kinds

    def refuses(self, kind: str, view: Loop) -> str:
        """Why the target does not take a kind for a loop; empty when it does."""
        if kind == "Parallel":
            return self._refuses_parallel(view)
        if kind == "vectorized":
            return self._refuses_vectorized(view)
        if kind.startswith("unroll"):
            return self._refuses_unroll(view)
        if kind == "serial" and self._on_cpu and _is_serial_on_cpu(view):
            return f"the code would be that of {kind_of(view)}"
        return ""

    @property
    def _on_cpu(self) -> bool:
        return self._target.backend == "tilelang-c"

    def _refuses_parallel(self, view: Loop) -> str:
        written = [seen.target for line in view.body if (seen := assign(line))]
        own = all(set(view.targets) <= free_names(target.node) for target in written)
        if len(written) < len(view.body) or not own:
            return "not every statement writes an element of its own iteration"
        local = {a.name for a in self._kernel.allocs.values() if a.scope == "local"}
        for part in (part for line in view.body for part in walk(line)):
            indexed = isinstance(part, cst.Subscript) and free_names(part) & set(view.targets)
            if isinstance(part, cst.Subscript) and indexed and dotted(part.value) in local:
                return f"it may not index `{dotted(part.value)}`, a local buffer of one thread"
        return ""

    def _refuses_vectorized(self, view: Loop) -> str:
        if any(loop(part) for line in view.body for part in walk(line)):
            return "there is a loop inside"
        for line in view.body:
            target = seen.target if (seen := assign(line)) else None
            if target is None or not target.index or code(target.index[-1]) != view.inner:
                return (
                    f"not every statement writes elements that lie side by side along {view.inner}"
                )
            calls = {primitive(part) for part in walk(line)} - {""}
            if calls and self._on_cpu:
                return f"T.{min(calls)} has no vector form on this target"
        if any(extent is None or extent % LANES for extent in self._extents(view)):
            return f"the extent is not a multiple of {LANES} in every workload"
        return ""

    def _refuses_unroll(self, view: Loop) -> str:
        if not all(assign(line) for line in view.body):
            return "its body holds a loop or a whole tile operation"
        if any(extent is None or extent > LARGEST_UNROLL for extent in self._extents(view)):
            return f"more than {LARGEST_UNROLL} copies of the body"
        return ""

    def _extents(self, view: Loop) -> list[int | float | None]:
        return [number(code(view.extents[-1]), names) for names in self._names]


def _is_serial_on_cpu(view: Loop) -> bool:
    return view.kind in ("serial", "range", "Pipelined") or kind_of(view) == "unroll"
