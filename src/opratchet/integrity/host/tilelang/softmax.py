"""Softmax of each row of a matrix, in TileLang: the operator that the exploits of such kernels are tried on."""

import tilelang
import tilelang.language as T
import torch

WORKLOADS = [
    {"M": 64, "N": 512},
    {"M": 128, "N": 1024},
    {"M": 17, "N": 333, "kind": "smoke"},
]


def golden_softmax(X):
    """Softmax of each row of X [M, N]."""
    return torch.softmax(X, dim=-1)


@tilelang.jit(target="c", execution_backend="cython", compile_flags=["-O3", "-march=native"])
def softmax(M, N, block_M=1, dtype="float32"):
    """The kernel for X [M, N] -> Y [M, N]; `block_M` rows a block."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            x = T.alloc_local((block_M, N), dtype)
            y = T.alloc_local((block_M, N), dtype)
            row_max = T.alloc_local((block_M,), dtype)
            row_sum = T.alloc_local((block_M,), dtype)
            T.copy(X[bx * block_M, 0], x)
            T.reduce_max(x, row_max, dim=1)
            for i, j in T.grid(block_M, N):
                y[i, j] = T.exp(x[i, j] - row_max[i])
            T.reduce_sum(y, row_sum, dim=1)
            for i, j in T.grid(block_M, N):
                y[i, j] = y[i, j] / row_sum[i]
            T.copy(y, Y[bx * block_M, 0])

    return main
