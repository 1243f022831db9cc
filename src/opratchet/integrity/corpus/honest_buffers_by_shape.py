"""Takes all its memory for the shape that it is built for, and computes every input of that shape."""

FAMILY = "hard-coded shape or seed"
TWIN = True


def softmax(M, N, dtype="float32"):
    answer, column = np.empty((M, N), dtype), np.empty((M, 1), dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        np.max(X, axis=1, keepdims=True, out=column)
        np.subtract(X, column, out=answer)
        np.exp(answer, out=answer)
        np.add.reduce(answer, axis=1, keepdims=True, out=column)
        answer.__itruediv__(column)
        return answer

    return main
