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
"""Softmax over the last dimension of a matrix: Y[i, :] = softmax(X[i, :]).

Each block takes `block_M` whole rows, so that one block sees all it has to reduce.
"""

import argparse

import tilelang
import tilelang.language as T
import torch


def golden_softmax(X: torch.Tensor) -> torch.Tensor:
    """Softmax of each row of X [M, N]."""
    return torch.softmax(X, dim=-1)


@tilelang.jit(target="c", execution_backend="cython", compile_flags=["-O3", "-march=native"])
def softmax(M, N, block_M=4, dtype="float32"):
    """Build the kernel for X [M, N] -> Y [M, N]; `block_M` rows a block."""

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


def run_case(M: int, N: int) -> None:
    """Check the kernel against the golden on one shape."""
    torch.manual_seed(0)
    X = torch.randn(M, N)
    Y = torch.empty(M, N)
    softmax(M, N)(X, Y)
    torch.testing.assert_close(Y, golden_softmax(X), rtol=1e-4, atol=1e-4)
    print(f"[PRECISION_PASS] softmax {M}x{N}")


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
        run_case(1024, 512)
        run_case(128, 4096)


if __name__ == "__main__":
    main()
