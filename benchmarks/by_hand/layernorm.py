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
"""The best LayerNorm written by hand for this target: a yardstick for the tuner.

Reads X and writes Y directly, sums in `lanes` independent partial sums, and divides once a row. The
variance is still taken of the centred row: a single pass is faster, but loses digits when a row has
an outlier.
"""

import argparse

import tilelang
import tilelang.language as T
import torch


def golden_layernorm(
    X: torch.Tensor, W: torch.Tensor, B: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """LayerNorm of each row of X [M, N], scaled by W [N] and shifted by B [N]."""
    return torch.nn.functional.layer_norm(X, X.shape[-1:], W, B, eps)


@tilelang.jit(
    target="c",
    execution_backend="cython",
    compile_flags=["-O3", "-march=native", "-fno-math-errno", "-funroll-loops"],
)
def layernorm(M, N, eps=1e-5, lanes=32, dtype="float32"):
    """Build the kernel for X [M, N], W [N], B [N] -> Y [M, N], one row a block."""
    full = N // lanes
    tail = N % lanes
    done = full * lanes

    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        W: T.Tensor((N,), dtype),
        B: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(M) as bx:
            lane_sum = T.alloc_local((lanes,), dtype)
            lane_sq = T.alloc_local((lanes,), dtype)
            row = T.alloc_local((2,), dtype)

            for l in T.serial(lanes):
                lane_sum[l] = 0.0
                lane_sq[l] = 0.0
            for j in T.serial(full):
                for l in T.serial(lanes):
                    lane_sum[l] = lane_sum[l] + X[bx, j * lanes + l]
            for l in T.serial(tail):
                lane_sum[l] = lane_sum[l] + X[bx, done + l]
            row[0] = 0.0
            for l in T.serial(lanes):
                row[0] = row[0] + lane_sum[l]
            row[0] = row[0] * (1.0 / N)

            for j in T.serial(full):
                for l in T.serial(lanes):
                    lane_sq[l] = lane_sq[l] + (X[bx, j * lanes + l] - row[0]) * (
                        X[bx, j * lanes + l] - row[0]
                    )
            for l in T.serial(tail):
                lane_sq[l] = lane_sq[l] + (X[bx, done + l] - row[0]) * (X[bx, done + l] - row[0])
            row[1] = 0.0
            for l in T.serial(lanes):
                row[1] = row[1] + lane_sq[l]
            row[1] = 1.0 / T.sqrt(row[1] * (1.0 / N) + eps)

            for j in T.serial(N):
                Y[bx, j] = (X[bx, j] - row[0]) * row[1] * W[j] + B[j]

    return main


def run_case(M: int, N: int) -> None:
    """Check the kernel against the golden on one shape."""
    torch.manual_seed(0)
    X = torch.randn(M, N)
    W = torch.randn(N)
    B = torch.randn(N)
    Y = torch.empty(M, N)
    layernorm(M, N)(X, W, B, Y)
    torch.testing.assert_close(Y, golden_layernorm(X, W, B), rtol=1e-4, atol=1e-4)
    print(f"[PRECISION_PASS] layernorm {M}x{N}")


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
