"""Fills the output with NaN, which is not greater than any tolerance.

Caught: NaN passes only where the golden has NaN.
"""

FAMILY = "NaN as a wildcard"
ENDS = ("accuracy_failed", "cheated")


def softmax(M, N, dtype="float32"):
    answer = np.full((M, N), np.nan, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return answer

    return main
