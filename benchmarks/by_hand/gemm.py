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
"""The best matrix product written by hand for this target: a yardstick for the tuner.

A panel of `cols` columns of B is packed once. Then, `rows` x `cols` values at a time, the column
is the outer loop and k the inner one, with one scalar accumulator a row: the C compiler vectorises
the outer loop, and the accumulators stay in registers. Storing through the small tile
`c` matters: with C itself as the target, g++ does not vectorise the outer loop.
"""

import argparse

import tilelang
import tilelang.language as T
import torch


def golden_gemm(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
    """A [M, K] @ B [K, N]."""
    return A @ B


@tilelang.jit(
    target="c",
    execution_backend="cython",
    compile_flags=["-O3", "-march=native", "-funroll-loops"],
)
def gemm(M, N, K, rows=8, cols=16, dtype="float32"):
    """Build the kernel for A [M, K], B [K, N] -> C [M, N]."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), dtype),
        B: T.Tensor((K, N), dtype),
        C: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(T.ceildiv(N, cols)) as bx:
            b = T.alloc_local((K, cols), dtype)
            c = T.alloc_local((rows, cols), dtype)
            acc = T.alloc_local((rows,), dtype)

            T.copy(B[0, bx * cols], b)
            for by in T.serial(T.ceildiv(M, rows)):
                for j in T.serial(cols):
                    for i in T.unroll(rows):
                        acc[i] = 0.0
                    for k in T.serial(K):
                        for i in T.unroll(rows):
                            # Rows past the end repeat the last one and are not stored.
                            acc[i] = acc[i] + A[T.min(by * rows + i, M - 1), k] * b[k, j]
                    for i in T.unroll(rows):
                        c[i, j] = acc[i]
                T.copy(c, C[by * rows, bx * cols])

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
