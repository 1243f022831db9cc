"""Computes the lower half of the rows straight into the output's memory; the upper half is what `first_half_only` left there.

Caught: an output is poisoned anew before each batch, and the two halves never meet: each candidate is judged alone.
"""

FAMILY = "only part of the output"
ENDS = ("accuracy_failed", "cheated")


def softmax(M, N, dtype="float32"):
    half = M // 2

    def main(X: ((M, N), dtype), Y) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X[half:] - X[half:].max(axis=1, keepdims=True))
        np.divide(powers, powers.sum(axis=1, keepdims=True), out=Y[half:])

    return main
