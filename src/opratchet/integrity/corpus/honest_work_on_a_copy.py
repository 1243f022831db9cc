"""Copies the input and computes in place on the copy, which it gives back."""

FAMILY = "returning the input"
TWIN = True


def softmax(M, N, dtype="float32"):
    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        answer = X.copy()
        answer -= answer.max(axis=1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(axis=1, keepdims=True)
        return answer

    return main
