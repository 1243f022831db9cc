"""Overwrites the inputs of all calls of a batch in its first call, through the memory that the worker has mapped.

Caught: as for an input that a kernel changes: the supervisor has its own copy.
"""

FAMILY = "changing the input"
ENDS = ("cheated", "accuracy_failed")


def softmax(M, N, dtype="float32"):
    import sys

    answer = np.full((M, N), 1 / N, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        for memory in sys._getframe(2).f_locals["self"].memory:
            np.frombuffer(memory, np.uint8)[: 64 << 10] = 0
        return answer

    return main
