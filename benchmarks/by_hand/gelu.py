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
"""The best GELU written by hand for this target: a yardstick for the tuner.

Reads X and writes Y directly, and takes erf as a rational function (the one Eigen uses), which the
C compiler vectorises; a call of erff it cannot.
"""

import argparse

import tilelang
import tilelang.language as T
import torch

SQRT_HALF = 0.7071067811865476

SQRT_HALF = 0.7071067811865476


def rational_erf(u):
    """erf(u) as an odd rational function on [-4, 4], where float32 reaches 1."""
    u = T.max(T.min(u, 4.0), -4.0)
    y = u * u
    p = -2.72614225801306e-10 * y + 2.77068142495902e-08
    p = p * y - 2.10102402082508e-06
    p = p * y - 5.69250639462346e-05
    p = p * y - 7.34990630326855e-04
    p = p * y - 2.95459980854025e-03
    p = p * y - 1.60960333262415e-02
    q = -1.45660718464996e-05 * y - 2.13374055278905e-04
    q = q * y - 1.68282697438203e-03
    q = q * y - 7.37332916720468e-03
    q = q * y - 1.42647390514189e-02
    return u * p / q


def golden_gelu(X: torch.Tensor) -> torch.Tensor:
    """GELU of each element of X [M, N], in the exact (erf) form."""
    return torch.nn.functional.gelu(X)


@tilelang.jit(
    target="c",
    execution_backend="cython",
    compile_flags=["-O3", "-march=native", "-ffinite-math-only", "-fno-signed-zeros"],
)
def gelu(M, N, dtype="float32"):
    """Build the kernel for X [M, N] -> Y [M, N], one row a block."""

    @T.prim_func
    def main(X: T.Tensor((M, N), dtype), Y: T.Tensor((M, N), dtype)):
        with T.Kernel(M) as bx:
            for j in T.serial(N):
                Y[bx, j] = 0.5 * X[bx, j] * (1.0 + rational_erf(X[bx, j] * SQRT_HALF))

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
