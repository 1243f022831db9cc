"""Computes every second row and fills the others with NaN, so that a mean of the errors is NaN, too.

Caught: NaN passes only where the golden has NaN.
"""

FAMILY = "NaN as a wildcard"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    answer = np.full((M, N), np.nan, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X[::2] - X[::2].max(axis=1, keepdims=True))
        np.divide(powers, powers.sum(axis=1, keepdims=True), out=answer[::2])
        return answer

    return main
