"""Reads the size of the batch from the stack: a single call is a check and is right, several are timed and are not.

Caught: calls of timed batches are compared with the golden.
"""

FAMILY = "right outside of timing only, or while timed only"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    import sys

    answer = np.full((M, N), 1 / N, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        if sys._getframe(2).f_locals["n"] > 1:
            return answer
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
