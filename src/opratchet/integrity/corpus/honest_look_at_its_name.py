"""Looks up its own name on the stack, as a logger does, and at nothing above itself."""

FAMILY = "catching the harness by the stack"
TWIN = True


def softmax(M, N, dtype="float32"):
    import sys

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        assert sys._getframe().f_code.co_name == "main"
        answer = X - X.max(axis=1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(axis=1, keepdims=True)
        return answer

    return main
