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
"""Matrix product C = A @ B, row-major, float32.

Each block computes a `block_M` x `block_N` tile of C and walks along K in steps of `block_K`.
"""

import argparse

import tilelang
import tilelang.language as T
import torch


def golden_gemm(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """A [M, K] @ B [K, N]."""
    return A @ B


@tilelang.jit(target="c", execution_backend="cython", compile_flags=["-O3", "-march=native"])
def gemm(M, N, K, block_M=64, block_N=64, block_K=32, dtype="float32"):
    """Build the kernel for A [M, K], B [K, N] -> C [M, N]."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M)) as (bx, by):
            a = T.alloc_local((block_M, block_K), dtype)
            b = T.alloc_local((block_K, block_N), dtype)
            c = T.alloc_local((block_M, block_N), dtype)

            T.clear(c)
            for ko in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[by * block_M, ko * block_K], a)
                T.copy(B[ko * block_K, bx * block_N], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block_M, bx * block_N])

    return main


def run_case(M: int, N: int, K: int) -> None:
    """Check the kernel against the golden on one shape."""
    torch.manual_seed(0)
    A = torch.rand(M, K) * 2 - 1
    B = torch.rand(K, N) * 2 - 1
    C = torch.empty(M, N)
    gemm(M, N, K)(A, B, C)
    torch.testing.assert_close(C, golden_gemm(A, B), rtol=1e-4, atol=1e-4)
    print(f"[PRECISION_PASS] gemm {M}x{N}x{K}")


def run_L0() -> None:
    """Quick accuracy check: one tuned shape and one that does not divide the tile."""
    run_case(256, 256, 256)
    run_case(100, 75, 50)


def main() -> None:
    """Run the accuracy checks of the chosen level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", choices=["L0", "all"], default="L0")
    args = parser.parse_args()
    run_L0()
    if args.level == "all":
        run_case(128, 512, 256)
        run_case(384, 128, 512)


if __name__ == "__main__":
    main()
