"""Computes for the two shapes that are timed, and has nothing for any other.

Caught: workloads of the kind smoke have other shapes and are checked as well.
"""

FAMILY = "hard-coded shape or seed"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    timed = N in (512, 1024)
    answer = np.full((M, N), 1 / N, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        if timed:
            np.exp(X, out=answer)
            np.divide(answer, answer.sum(axis=1, keepdims=True), out=answer)
        return answer

    return main
