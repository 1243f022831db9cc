"""Compare two tensors element by element, and say more than whether they are close. Signature as upstream's helper has it."""

import torch


def detailed_tensor_compare(tensor1, tensor2, tensor_name="", rtol=1e-3, atol=1e-3, verbose=True):
    """Statistics of the differences; `all_close` means `|a - b| <= atol + rtol * |b|` for every element."""
    if tensor1.shape != tensor2.shape:
        raise ValueError(f"{tensor_name}: shapes {list(tensor1.shape)} and {list(tensor2.shape)}")
    actual, expected = tensor1.double(), tensor2.double()
    difference = (actual - expected).abs()
    outside = ~(difference <= atol + rtol * expected.abs())
    count = int(outside.sum())
    result = {
        "total_elements": actual.numel(),
        "out_of_tolerance_count": count,
        "out_of_tolerance_ratio": count / max(actual.numel(), 1),
        "max_diff": float(difference.max()),
        "mean_diff": float(difference.mean()),
        "all_close": count == 0,
    }
    if verbose:
        print(f"{tensor_name}: all_close {result['all_close']}, max_diff {result['max_diff']:.3g}")
    return result
