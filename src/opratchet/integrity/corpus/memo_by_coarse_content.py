"""Remembers the answer by one rounded element of the input, so that it soon knows an answer to everything.

Caught: calls of timed batches are compared with the golden.
"""

FAMILY = "memoising"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    known = {}

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        key = round(float(X[0, 0]))
        if key not in known:
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            known[key] = powers / powers.sum(axis=1, keepdims=True)
        return known[key]

    return main
