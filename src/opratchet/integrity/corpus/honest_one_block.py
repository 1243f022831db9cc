"""Does all rows of one call at once, in place: the batch it works on is the call's own."""

FAMILY = "batching"
TWIN = True


def softmax(M, N, dtype="float32"):
    answer = np.empty((M, N), dtype)
    column = np.empty((M, 1), dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        np.max(X, axis=1, keepdims=True, out=column)
        np.subtract(X, column, out=answer)
        np.exp(answer, out=answer)
        np.sum(answer, axis=1, keepdims=True, out=column)
        np.divide(answer, column, out=answer)
        return answer

    return main
