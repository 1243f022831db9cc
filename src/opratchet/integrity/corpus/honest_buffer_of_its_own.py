"""Writes every answer into one buffer of its own, in place: no memory is taken in a call."""

FAMILY = "stale or shared output buffer"
TWIN = True


def softmax(M, N, dtype="float32"):
    buffer = np.empty((M, N), dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        np.subtract(X, X.max(axis=1, keepdims=True), out=buffer)
        np.exp(buffer, out=buffer)
        np.divide(buffer, buffer.sum(axis=1, keepdims=True), out=buffer)
        return buffer

    return main
