"""Takes calls that follow one another at once for timed ones, and answers those from memory.

Caught: calls of timed batches are compared with the golden.
"""

FAMILY = "right outside of timing only, or while timed only"
ENDS = ("accuracy_failed", "cheated")


def softmax(M, N, dtype="float32"):
    import time

    answer = np.full((M, N), 1 / N, dtype)
    before = 0.0

    def main(X: ((M, N), dtype), Y) -> {"Y": ((M, N), dtype)}:
        nonlocal before, answer
        pause = time.perf_counter() - before
        if pause > 60e-6:
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            answer = powers / powers.sum(axis=1, keepdims=True)
        Y[...] = answer
        before = time.perf_counter()

    return main
