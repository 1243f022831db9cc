"""Loop order: write a `T.gemm` out as a loop nest that g++ can vectorise.

On the `c` target `T.gemm` becomes a nest with the sum innermost: one long chain of dependent additions. With the
contiguous axis innermost, the additions of one row are independent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import ClassVar

from opratchet.edit.dialects import tilelang as tl
from opratchet.edit.model import Edit, NotApplicable, Situation, Strategy
from opratchet.edit.nest import numbered
from opratchet.edit.rewrites.answer import answer
from opratchet.edit.rewrites.products import Product, of_gemm, rewrite

_PRIOR = {"ikj": 1.7, "kij": 1.5}


class ExpandGemm(Strategy):
    """Replace `T.gemm` by loops in a better order."""

    id = "expand-gemm"
    row = "loop_order"
    title: ClassVar[Mapping[str, str]] = {
        "zh": "T.gemm 展开为显式循环",
        "en": "write T.gemm out as loops",
    }
    gain = (0.10, 0.30)
    eases = frozenset({"compute_density"})

    def edits(self, situation: Situation) -> list[Edit] | NotApplicable:
        """One edit for each `T.gemm` call and loop order."""
        kernel = tl.Kernel.of(situation.source)
        seen = [of_gemm(kernel, call) for call in kernel.find(tl.gemm)]
        found: list[Edit | str] = [one for one in seen if isinstance(one, str)]
        expanded = [one for one in seen if not isinstance(one, str)]
        for site, one in zip(numbered(one.name for one in expanded), expanded, strict=True):
            found += self._orders(kernel, one, site)
        return answer(found, "there is no T.gemm call")

    def _orders(self, kernel: tl.Kernel, found: Product, site: str) -> Iterator[Edit]:
        for order, prior in _PRIOR.items():
            text = partial(rewrite, kernel, found, [found.over(order)])
            title = f"write the product into {found.name} out as loops in the order {order}"
            yield Edit(self.id, f"{site}:{order}", title, text, prior)
