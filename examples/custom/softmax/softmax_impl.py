"""softmax 的 PyPTO 实现：每次循环处理 64 行。"""

import pypto
import torch


@pypto.frontend.jit
def softmax_kernel(
    x: pypto.Tensor([pypto.DYNAMIC, pypto.STATIC], pypto.DT_FP32),
    y: pypto.Tensor([pypto.DYNAMIC, pypto.STATIC], pypto.DT_FP32),
):
    pypto.set_vec_tile_shapes(4, 1024)
    rows, cols = x.shape
    for i in pypto.loop(0, (rows + 63) // 64, 1, name="LOOP_ROWS", idx_name="i", unroll_list=[1]):
        start = i * 64
        part = pypto.view(x, [64, cols], [start, 0], valid_shape=[(rows - start).min(64), cols])
        top = pypto.amax(part, -1, True)
        powers = pypto.exp(part - top)
        pypto.assemble(powers / pypto.sum(powers, -1, True), [start, 0], y)


def softmax_wrapper(x: torch.Tensor) -> torch.Tensor:
    """对最后一轴做 softmax。"""
    y = torch.empty_like(x)
    softmax_kernel(x, y)
    return y
