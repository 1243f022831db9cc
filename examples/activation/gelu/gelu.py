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
"""GELU, exact form: Y = 0.5 * X * (1 + erf(X / sqrt(2))).

Elementwise; a block is a `block_M` x `block_N` rectangle of the matrix.
"""

import argparse

import tilelang
import tilelang.language as T
import torch

SQRT_HALF = 0.7071067811865476


def golden_gelu(X: torch.Tensor) -> torch.Tensor:
    """GELU of each element of X [M, N], in the exact (erf) form."""
    return torch.nn.functional.gelu(X)


@tilelang.jit(target="c", execution_backend="cython", compile_flags=["-O3", "-march=native"])
def gelu(M, N, block_M=4, block_N=256, dtype="float32"):
    """Build the kernel for X [M, N] -> Y [M, N]; a block is `block_M` x `block_N`."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            x = T.alloc_local((block_M, block_N), dtype)
            y = T.alloc_local((block_M, block_N), dtype)

            T.copy(X[by * block_M, bx * block_N], x)
            for i, j in T.grid(block_M, block_N):
                y[i, j] = 0.5 * x[i, j] * (1.0 + T.erf(x[i, j] * SQRT_HALF))
            T.copy(y, Y[by * block_M, bx * block_N])

    return main


def run_case(M: int, N: int) -> None:
    """Check the kernel against the golden on one shape."""
    torch.manual_seed(0)
    X = torch.randn(M, N)
    Y = torch.empty(M, N)
    gelu(M, N)(X, Y)
    torch.testing.assert_close(Y, golden_gelu(X), rtol=1e-4, atol=1e-4)
    print(f"[PRECISION_PASS] gelu {M}x{N}")


def run_L0() -> None:
    """Quick accuracy check: one tuned shape and one that does not divide the tile."""
    run_case(128, 1024)
    run_case(33, 1000)


def main() -> None:
    """Run the accuracy checks of the chosen level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", choices=["L0", "all"], default="L0")
    args = parser.parse_args()
    run_L0()
    if args.level == "all":
        run_case(256, 768)
        run_case(64, 4096)


if __name__ == "__main__":
    main()
