"""Rounds to float16 on the way, behind a signature of float32.

Caught: half of all elements are off by far more than float32 explains, and than the incumbent's are.
"""

FAMILY = "hidden loss of precision"
ENDS = ("cheated", "accuracy_failed")


def softmax(M, N, dtype="float32"):
    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True)).astype(np.float16).astype(np.float32)
        return powers / powers.sum(axis=1, keepdims=True)

    return main
