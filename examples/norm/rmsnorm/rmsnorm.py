# Copyright 2026 The opratchet authors.
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""RMSNorm over the last dimension: Y = X / sqrt(mean(X^2) + eps) * W.

Each block takes `block_M` whole rows.
"""

import argparse

import tilelang
import tilelang.language as T
import torch


def golden_rmsnorm(X: torch.Tensor, W: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """RMSNorm of each row of X [M, N], scaled by W [N]."""
    return X * torch.rsqrt(X.pow(2).mean(dim=-1, keepdim=True) + eps) * W


@tilelang.jit(target="c", execution_backend="cython", compile_flags=["-O3", "-march=native"])
def rmsnorm(M, N, eps=1e-6, block_M=4, dtype="float32"):
    """Build the kernel for X [M, N], W [N] -> Y [M, N]; `block_M` rows a block."""

    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        W: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(M, block_M)) as bx:
            x = T.alloc_local((block_M, N), dtype)
            w = T.alloc_local((N,), dtype)
            y = T.alloc_local((block_M, N), dtype)
            sum_sq = T.alloc_local((block_M,), dtype)
            rms = T.alloc_local((block_M,), dtype)

            T.copy(X[bx * block_M, 0], x)
            T.copy(W[0], w)
            for i, j in T.grid(block_M, N):
                y[i, j] = x[i, j] * x[i, j]
            T.reduce_sum(y, sum_sq, dim=1)
            for i in T.serial(block_M):
                rms[i] = T.sqrt(sum_sq[i] / N + eps)
            for i, j in T.grid(block_M, N):
                y[i, j] = x[i, j] / rms[i] * w[j]
            T.copy(y, Y[bx * block_M, 0])

    return main


def run_case(M: int, N: int) -> None:
    """Check the kernel against the golden on one shape."""
    torch.manual_seed(0)
    X = torch.randn(M, N)
    W = torch.randn(N)
    Y = torch.empty(M, N)
    rmsnorm(M, N)(X, W, Y)
    torch.testing.assert_close(Y, golden_rmsnorm(X, W), rtol=1e-4, atol=1e-4)
    print(f"[PRECISION_PASS] rmsnorm {M}x{N}")


def run_L0() -> None:
    """Quick accuracy check: one tuned shape and one that does not divide the tile."""
    run_case(512, 1024)
    run_case(33, 1000)


def main() -> None:
    """Run the accuracy checks of the chosen level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", choices=["L0", "all"], default="L0")
    args = parser.parse_args()
    run_L0()
    if args.level == "all":
        run_case(1024, 768)
        run_case(128, 4096)


if __name__ == "__main__":
    main()
