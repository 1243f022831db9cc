"""Takes its scratch memory when it is first called, not before: what is late is done within the call."""

FAMILY = "lazy objects"
TWIN = True


def softmax(M, N, dtype="float32"):
    scratch = None

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        nonlocal scratch
        if scratch is None:
            scratch = np.empty((M, N), dtype)
        np.subtract(X, X.max(axis=1, keepdims=True), out=scratch)
        np.exp(scratch, out=scratch)
        return scratch / scratch.sum(axis=1, keepdims=True)

    return main
