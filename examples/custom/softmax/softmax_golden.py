"""softmax 的参考实现。"""

import torch


def softmax_golden(x: torch.Tensor) -> torch.Tensor:
    """对最后一轴做 softmax。"""
    return torch.softmax(x, dim=-1)
