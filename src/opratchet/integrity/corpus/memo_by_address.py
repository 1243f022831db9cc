"""Remembers the answer for each address that an input had, and never computes for that address again.

Caught: inputs are drawn anew before every batch, and calls of timed batches are compared with the golden.
"""

FAMILY = "memoising"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    known = {}

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        address = X.ctypes.data
        if address not in known:
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            known[address] = powers / powers.sum(axis=1, keepdims=True)
        return known[address]

    return main
