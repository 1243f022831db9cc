"""softmax 的测试：L0 小形状，L1 为 SPEC.md 的 P0 形状。

    python test_softmax.py --run_mode npu

在 PyPTO 的代价模型（sim）上不计算数值，这里只检查形状；数值由 `opratchet check --prove` 用 PyPTO 的解释器验证。
"""

import argparse
import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from detailed_tensor_compare import detailed_tensor_compare  # noqa: E402
from softmax_golden import softmax_golden  # noqa: E402
from softmax_impl import softmax_wrapper  # noqa: E402


def run(rows, run_mode):
    torch.manual_seed(42)
    device = "npu" if run_mode == "npu" else "cpu"
    x = torch.randn(rows, 1024, dtype=torch.float32, device=device)
    expected = softmax_golden(x.clone()).cpu()
    y = softmax_wrapper(x).cpu()
    assert y.shape == expected.shape and y.dtype == expected.dtype
    if run_mode == "npu":
        result = detailed_tensor_compare(y, expected, "y", rtol=1e-3, atol=1e-3)
        assert result["all_close"], result


def test_softmax_l0(run_mode="sim"):
    run(100, run_mode)


def test_softmax_l1(run_mode="sim"):
    run(512, run_mode)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--run_mode", choices=("npu", "sim"), default="sim")
    mode = parser.parse_args().run_mode
    test_softmax_l0(mode)
    test_softmax_l1(mode)
