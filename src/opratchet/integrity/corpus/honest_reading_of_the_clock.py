"""Reads the clock before and after, to know what it takes itself; it changes nothing of it."""

FAMILY = "replacing clocks and checkers"
TWIN = True


def softmax(M, N, dtype="float32"):
    import time

    taken = []

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        start = time.perf_counter_ns()
        answer = X - X.max(axis=1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(axis=1, keepdims=True)
        taken[:] = [time.perf_counter_ns() - start]
        return answer

    return main
