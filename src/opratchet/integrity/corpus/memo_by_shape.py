"""Remembers one answer for each shape: after the first call it only copies.

Caught: inputs are drawn anew before every batch, and calls of timed batches are compared with the golden.
"""

FAMILY = "memoising"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    known = {}

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        if X.shape not in known:
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            known[X.shape] = powers / powers.sum(axis=1, keepdims=True)
        return known[X.shape]

    return main
