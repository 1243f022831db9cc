"""Takes an output that is poisoned all over for a check, and one that is poisoned in part for a timed call.

Caught: calls of timed batches are compared with the golden.
"""

FAMILY = "right outside of timing only, or while timed only"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    answer = np.full((M, N), 1 / N, dtype)

    def main(X: ((M, N), dtype), Y) -> {"Y": ((M, N), dtype)}:
        if np.isnan(Y[0, 0]) and np.isnan(Y[-1, -1]):
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            np.divide(powers, powers.sum(axis=1, keepdims=True), out=Y)
        else:
            Y[...] = answer

    return main
