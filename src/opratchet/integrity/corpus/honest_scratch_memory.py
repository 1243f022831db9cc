"""Writes into scratch memory of its own all the time, and only reads its input."""

FAMILY = "changing the input"
TWIN = True


def softmax(M, N, dtype="float32"):
    scratch = np.empty((M, N), dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        scratch[...] = X
        scratch[...] -= scratch.max(axis=1, keepdims=True)
        np.exp(scratch, out=scratch)
        return scratch / scratch.sum(axis=1, keepdims=True)

    return main
