"""The rules of the layout, in one table. The checks are in the modules beside it, one for each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Rule:
    """A rule.

    Attributes:
        id: Its name in findings.
        title: What has to hold.
        why: Why it has to.
    """

    id: str
    title: str
    why: str


_TABLE = (
    Rule(
        "missing-file",
        "`SPEC.md`, `<op>_golden.py`, `<op>_impl.py`, `test_<op>.py` and `MEMORY.md` are there and can be read",
        "Each has its own author and its own gate; without one of them nothing can be proven.",
    ),
    Rule(
        "syntax",
        "every file is UTF-8, and the Python files can be parsed",
        "What cannot be read cannot be judged.",
    ),
    Rule(
        "one-jit",
        "one function of the implementation is decorated with `@pypto.frontend.jit`, and none elsewhere",
        "One entry is one graph: a second one is another launch, which is neither tuned nor seen in the profile of the first.",
    ),
    Rule(
        "golden-apart",
        "the golden defines `<op>_golden` and imports neither PyPTO nor the implementation",
        "A reference that shares code with what it judges shares its mistakes.",
    ),
    Rule(
        "impl-apart",
        "the implementation neither imports nor contains a golden",
        "An implementation that can reach the golden can return the golden's result as its own.",
    ),
    Rule(
        "test-apart",
        "the test imports the golden and the implementation, each from its own file",
        "A comparison is only one if its two sides come from two places.",
    ),
    Rule(
        "compare-helper",
        "the test compares every output with `detailed_tensor_compare`",
        "A bound on the largest difference alone passes NaN and outputs that nobody looked at.",
    ),
    Rule(
        "test-levels",
        "the test has level L0 (small shapes) and level L1 (the P0 shapes of SPEC.md)",
        "Small shapes find tails and borders at once; P0 shapes are those that count.",
    ),
    Rule(
        "tile-setter",
        "the jit function, or a function that it calls, sets a vector or a cube tile",
        "PyPTO has no default tile, and the tile is the first thing to tune.",
    ),
    Rule(
        "literal-tiles",
        "tile setters are called by their name, with positive whole numbers written out in place",
        "A number in place is one knob: it can be read, changed alone and put back.",
    ),
    Rule(
        "cube-tiles",
        "a cube tile is `m` and `n` as `[L0, L1]` and `k` as `[L0, L1]` or `[L0, A_L1, B_L1]`, with L0 dividing L1",
        "A tile in L1 is cut into whole tiles of L0; anything else does not compile.",
    ),
    Rule(
        "vector-axes",
        "a vector tile has at most four axes",
        "Vector operations have no more than four.",
    ),
    Rule(
        "vector-alignment",
        "the last axis of a vector tile is a multiple of 32 bytes in the smallest dtype of the kernel's tensors",
        "The vector unit moves blocks of 32 bytes; a row that ends within a block does not compile.",
    ),
    Rule(
        "unroll-innermost",
        "`unroll_list` stands on innermost loops only",
        "On any other loop PyPTO ignores it, and a knob without effect misleads the search.",
    ),
    Rule(
        "unroll-single",
        "before tuning an `unroll_list` holds one value",
        "Each value more is another copy of the graph; how many pay is what tuning finds out.",
    ),
    Rule(
        "host-loop",
        "no Python loop calls the kernel",
        "Each call is a launch of its own; a loop belongs into the graph, where its iterations run side by side.",
    ),
    Rule(
        "graph-loops",
        "inside the graph a loop is `for ... in` with `pypto.loop`, `pypto.loop_unroll` or `range`",
        "Any other loop is not part of the graph, or is unrolled without anybody having asked for it.",
    ),
    Rule(
        "golden-fallback",
        "no error of the kernel is answered with a result from elsewhere",
        "A kernel that fails and returns the golden's numbers looks perfect: the difference is exactly 0.",
    ),
)

RULES: Mapping[str, Rule] = {rule.id: rule for rule in _TABLE}
