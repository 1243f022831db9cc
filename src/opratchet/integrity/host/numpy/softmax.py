"""Softmax of each row of a matrix, in NumPy: the operator that the corpus of exploits is tried on."""

import numpy as np

WORKLOADS = [
    {"M": 32, "N": 512},
    {"M": 96, "N": 512},
    {"M": 17, "N": 333, "kind": "smoke"},
]


def golden_softmax(X):
    """Softmax of each row of X [M, N], in double precision."""
    powers = np.exp(X.astype(np.float64) - X.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def softmax(M, N, dtype="float32"):
    """The kernel for X [M, N] -> Y [M, N]."""

    def main(X: ((M, N), dtype), Y) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        np.divide(powers, powers.sum(axis=1, keepdims=True), out=Y)

    return main
