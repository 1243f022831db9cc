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
"""The best RMSNorm written by hand for this target: a yardstick for the tuner.

Reads X and writes Y directly, sums the squares in `lanes` independent partial sums, and divides
once a row.
"""

import argparse

import tilelang
import tilelang.language as T
import torch


def golden_rmsnorm(X: torch.Tensor, W: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    """RMSNorm of each row of X [M, N], scaled by W [N]."""
    return X * torch.rsqrt(X.pow(2).mean(dim=-1, keepdim=True) + eps) * W


@tilelang.jit(
    target="c",
    execution_backend="cython",
    compile_flags=["-O3", "-march=native", "-fno-math-errno", "-funroll-loops"],
)
def rmsnorm(M, N, eps=1e-6, lanes=32, dtype="float32"):
    """Build the kernel for X [M, N], W [N] -> Y [M, N], one row a block."""
    full = N // lanes
    tail = N % lanes
    done = full * lanes

    @T.prim_func
    def main(
        X: T.Tensor((M, N), dtype),
        W: T.Tensor((N,), dtype),
        Y: T.Tensor((M, N), dtype),
    ):
        with T.Kernel(M) as bx:
            lane_sum = T.alloc_local((lanes,), dtype)
            row = T.alloc_local((1,), dtype)

            for l in T.serial(lanes):
                lane_sum[l] = 0.0
            for j in T.serial(full):
                for l in T.serial(lanes):
                    lane_sum[l] = lane_sum[l] + X[bx, j * lanes + l] * X[bx, j * lanes + l]
            for l in T.serial(tail):
                lane_sum[l] = lane_sum[l] + X[bx, done + l] * X[bx, done + l]
            row[0] = 0.0
            for l in T.serial(lanes):
                row[0] = row[0] + lane_sum[l]
            row[0] = 1.0 / T.sqrt(row[0] * (1.0 / N) + eps)
            for j in T.serial(N):
                Y[bx, j] = X[bx, j] * row[0] * W[j]

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
