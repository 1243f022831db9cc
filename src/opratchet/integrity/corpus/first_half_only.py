"""Computes the upper half of the rows. The lower half is what an earlier call left, which `second_half_only` would renew.

Caught: calls of timed batches are compared with the golden, all of the output.
"""

FAMILY = "only part of the output"
ENDS = ("accuracy_failed", "cheated")


def softmax(M, N, dtype="float32"):
    answer = np.full((M, N), 1 / N, dtype)
    half = M // 2

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X[:half] - X[:half].max(axis=1, keepdims=True))
        np.divide(powers, powers.sum(axis=1, keepdims=True), out=answer[:half])
        return answer

    return main
