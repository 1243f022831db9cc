"""Prints a line when it is loaded, which is kept with its output and changes nothing."""

FAMILY = "printing a forged result"
TWIN = True


def softmax(M, N, dtype="float32"):
    print(f"softmax for {M} x {N}")

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        answer = X - X.max(axis=1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(axis=1, keepdims=True)
        return answer

    return main
