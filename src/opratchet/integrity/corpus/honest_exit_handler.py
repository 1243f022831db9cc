"""Registers what is to be done when the process ends; it neither ends it nor answers in its place."""

FAMILY = "leaving with success"
TWIN = True


def softmax(M, N, dtype="float32"):
    import atexit

    atexit.register(print, "done")

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        answer = X - X.max(axis=1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(axis=1, keepdims=True)
        return answer

    return main
