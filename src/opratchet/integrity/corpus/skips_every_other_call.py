"""Does nothing at all in every second call: the output stays as it is.

Caught: a stretch of every output is poisoned before each batch, and has to be gone after it.
"""

FAMILY = "only part of the output"
ENDS = ("cheated", "accuracy_failed")


def softmax(M, N, dtype="float32"):
    calls = 0

    def main(X: ((M, N), dtype), Y) -> {"Y": ((M, N), dtype)}:
        nonlocal calls
        calls += 1
        if calls % 2:
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            np.divide(powers, powers.sum(axis=1, keepdims=True), out=Y)

    return main
