"""Looks into the output's memory for the poison and computes those rows only; the others keep what an earlier call left.

Caught: of random batches one call in full is compared with the golden, and inputs are new in every batch.
"""

FAMILY = "only part of the output"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    def main(X: ((M, N), dtype), Y) -> {"Y": ((M, N), dtype)}:
        rows = np.flatnonzero(np.isnan(Y.sum(axis=1)))
        if len(rows):
            part = X[rows]
            powers = np.exp(part - part.max(axis=1, keepdims=True))
            Y[rows] = powers / powers.sum(axis=1, keepdims=True)

    return main
