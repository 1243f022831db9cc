"""Gives the CPU away for a moment in each call; it disturbs nobody."""

FAMILY = "disturbing the incumbent"
TWIN = True


def softmax(M, N, dtype="float32"):
    import os

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        os.sched_yield()
        answer = X - X.max(axis=1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(axis=1, keepdims=True)
        return answer

    return main
