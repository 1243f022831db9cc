"""Asks which CPUs it may run on, and changes nothing of it."""

FAMILY = "changing affinity, priority or frequency"
TWIN = True


def softmax(M, N, dtype="float32"):
    import os

    blocks = max(1, len(os.sched_getaffinity(0)))
    step = -(-M // blocks)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        answer = np.empty((M, N), dtype)
        for first in range(0, M, step):
            block, part = X[first : first + step], answer[first : first + step]
            np.subtract(block, block.max(axis=1, keepdims=True), out=part)
            np.exp(part, out=part)
            part /= part.sum(axis=1, keepdims=True)
        return answer

    return main
