"""Data reuse: compute a small tile of a matrix product at a time, out of registers.

In the plain nest every multiply-add loads one element of the second operand and loads and stores one of the result.
Here `rows` rows and `steps` steps of the sum are taken together:

    for i, k in T.grid(m // rows, n // steps):
        for j in T.serial(width):
            for r in T.unroll(rows):
                for s in T.unroll(steps):
                    c[i * rows + r, j] += a[i * rows + r, k * steps + s] * b[k * steps + s, j]

g++ unrolls the two inner loops and vectorises the one over `j`. Then a vector of `b` is used `rows` times, one of `c` is
loaded and stored once in `steps` multiply-adds, and the `rows * steps` factors of `a` stay in registers. Each element
of `c` is summed in the same order as before. (A tile whose sum runs innermost, with its accumulators in a local array,
is the textbook form, but g++ keeps such an array in memory.)

A block size that is known must be a multiple; for other extents the remainder is computed by plain loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import ClassVar

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.nest import block, constant, factor, for_each, numbered, variables
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.rewrites.products import Product, products, rewrite
from opratchet.edit.tree import free_names

# (rows, steps) with the speed-up over T.gemm that is expected of them.
TILES = {(4, 4): 3.0, (2, 4): 2.9, (8, 4): 2.6, (4, 8): 2.5, (2, 8): 2.4, (4, 2): 2.2}
_OVER_LOOPS = 0.6


class RegisterTile(Strategy):
    """Block a matrix product for registers."""

    id = "register-tile"
    row = "data_reuse"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "矩阵乘寄存器分块",
        "en": "block a product for registers",
    }
    gain = (0.05, 0.15)
    eases = frozenset({"compute_density"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each product and tile."""
        kernel = tl.Kernel.of(situation.source)
        seen = products(kernel)
        found: list[Edit | str] = [one for one in seen if isinstance(one, str)]
        tiled = [one for one in seen if not isinstance(one, str)]
        for site, one in zip(numbered(one.name for one in tiled), tiled, strict=True):
            found += self._tiles(kernel, one, site)
        return answer(found, "there is no matrix product")

    def _tiles(self, kernel: tl.Kernel, found: Product, site: str) -> Iterator[Edit | str]:
        for (rows, steps), prior in TILES.items():
            if not (_fits(kernel, found, found.i, rows) and _fits(kernel, found, found.k, steps)):
                yield f"no tile divides the blocks of the product into `{found.name}`"
                continue
            text = partial(rewrite, kernel, found, _tiled(kernel, found, rows, steps))
            title = f"compute {found.name} with {rows} rows x {steps} steps in registers"
            expected = prior if found.call else max(1.0, prior * _OVER_LOOPS)
            yield Edit(self.id, f"{site}:{rows}x{steps}", title, text, expected)


def _fits(kernel: tl.Kernel, found: Product, name: str, size: int) -> bool:
    extent = constant(kernel.source, found.extents[name])
    return extent is None or (extent >= size and extent % size == 0)


def _tiled(kernel: tl.Kernel, found: Product, rows: int, steps: int) -> list[str]:
    """The main nest, and plain nests for what is left over of extents that are not known."""
    i, k, j = found.i, found.k, found.j
    m, n = factor(found.extents[i]), factor(found.extents[k])
    r, s = variables(kernel, found.node, ["r", "s"], {i, k, j, *free_names(found.term)})
    places = {i: f"{i} * {rows} + {r}", k: f"{k} * {steps} + {s}"}
    unrolled = block(
        f"for {r} in T.unroll({rows}):",
        block(f"for {s} in T.unroll({steps}):", found.line(places)),
    )
    texts = [
        block(
            for_each({i: f"{m} // {rows}", k: f"{n} // {steps}"}),
            block(for_each({j: found.extents[j]}), unrolled),
        )
    ]
    # The rows that are left over come before the steps, so that each element keeps its order of summation.
    if constant(kernel.source, found.extents[i]) is None:
        whole = {i: f"{m} % {rows}", k: f"{n} // {steps} * {steps}"}
        texts.append(_rest(found, whole, {i: f"{m} // {rows} * {rows}"}))
    if constant(kernel.source, found.extents[k]) is None:
        texts.append(_rest(found, {i: m, k: f"{n} % {steps}"}, {k: f"{n} // {steps} * {steps}"}))
    return texts


def _rest(found: Product, extents: dict[str, str], starts: dict[str, str]) -> str:
    """A plain nest over a part of the product."""
    places = {name: f"{start} + {name}" for name, start in starts.items()}
    return block(for_each({**extents, found.j: found.extents[found.j]}), found.line(places))
