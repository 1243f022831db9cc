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
"""Attention of one head: Out = softmax(Q @ K^T / sqrt(D)) @ V, float32, no mask.

Flash style: each block keeps `block_M` queries and walks over the keys, `block_N` at a time, with
an online softmax, so the S x S scores are never stored.
"""

import argparse
import math

import tilelang
import tilelang.language as T
import torch


def golden_attention(Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
    """Attention of one head; Q, K, V [S, D]."""
    scores = Q @ K.T / math.sqrt(Q.shape[-1])
    return torch.softmax(scores, dim=-1) @ V


@tilelang.jit(target="c", execution_backend="cython", compile_flags=["-O3", "-march=native"])
def attention(S, D, block_M=32, block_N=32, dtype="float32"):
    """Build the kernel for Q, K, V [S, D] -> Out [S, D]."""
    scale = 1.0 / math.sqrt(D)

    @T.prim_func
    def main(
        Q: T.Tensor((S, D), dtype),
        K: T.Tensor((S, D), dtype),
        V: T.Tensor((S, D), dtype),
        Out: T.Tensor((S, D), dtype),
    ):
        with T.Kernel(T.ceildiv(S, block_M)) as bx:
            q = T.alloc_local((block_M, D), dtype)
            k = T.alloc_local((block_N, D), dtype)
            v = T.alloc_local((block_N, D), dtype)
            p = T.alloc_local((block_M, block_N), dtype)
            acc = T.alloc_local((block_M, D), dtype)
            row_max = T.alloc_local((block_M,), dtype)
            old_max = T.alloc_local((block_M,), dtype)
            row_sum = T.alloc_local((block_M,), dtype)
            block_sum = T.alloc_local((block_M,), dtype)
            rescale = T.alloc_local((block_M,), dtype)

            T.copy(Q[bx * block_M, 0], q)
            T.clear(acc)
            T.clear(row_sum)
            T.fill(row_max, -T.infinity(dtype))
            for kb in T.serial(T.ceildiv(S, block_N)):
                T.copy(K[kb * block_N, 0], k)
                T.copy(V[kb * block_N, 0], v)
                T.clear(p)
                T.gemm(q, k, p, transpose_B=True)
                for i, j in T.grid(block_M, block_N):
                    # Keys beyond the end of the sequence get no weight.
                    p[i, j] = T.if_then_else(
                        kb * block_N + j < S, p[i, j] * scale, -T.infinity(dtype)
                    )
                T.copy(row_max, old_max)
                T.reduce_max(p, row_max, dim=1, clear=False)
                for i, j in T.grid(block_M, block_N):
                    p[i, j] = T.exp(p[i, j] - row_max[i])
                T.reduce_sum(p, block_sum, dim=1)
                for i in T.serial(block_M):
                    rescale[i] = T.exp(old_max[i] - row_max[i])
                    row_sum[i] = row_sum[i] * rescale[i] + block_sum[i]
                for i, d in T.grid(block_M, D):
                    acc[i, d] = acc[i, d] * rescale[i]
                T.gemm(p, v, acc)
            for i, d in T.grid(block_M, D):
                acc[i, d] = acc[i, d] / row_sum[i]
            T.copy(acc, Out[bx * block_M, 0])

    return main


def run_case(S: int, D: int) -> None:
    """Check the kernel against the golden on one shape."""
    torch.manual_seed(0)
    Q = torch.randn(S, D)
    K = torch.randn(S, D)
    V = torch.randn(S, D)
    Out = torch.empty(S, D)
    attention(S, D)(Q, K, V, Out)
    torch.testing.assert_close(Out, golden_attention(Q, K, V), rtol=1e-4, atol=1e-4)
    print(f"[PRECISION_PASS] attention {S}x{D}")


def run_L0() -> None:
    """Quick accuracy check: one tuned shape and one that does not divide the tile."""
    run_case(256, 64)
    run_case(100, 48)


def main() -> None:
    """Run the accuracy checks of the chosen level."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", choices=["L0", "all"], default="L0")
    args = parser.parse_args()
    run_L0()
    if args.level == "all":
        run_case(128, 64)
        run_case(256, 128)


if __name__ == "__main__":
    main()
