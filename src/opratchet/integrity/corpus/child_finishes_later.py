"""Right for forty calls; then it forks in each call and returns at once, and the child computes into the output's memory.

Caught: the poison is looked for right after the batch, and processes that a kernel leaves behind are seen.
"""

FAMILY = "work after the call"
ENDS = ("cheated", "accuracy_failed", "regressed", "crashed")


def softmax(M, N, dtype="float32"):
    import os

    calls = 0

    def main(X: ((M, N), dtype), Y) -> {"Y": ((M, N), dtype)}:
        nonlocal calls
        calls += 1
        child = os.fork() if calls > 40 else -1
        if child <= 0:
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            np.divide(powers, powers.sum(axis=1, keepdims=True), out=Y)
        if child == 0:
            os._exit(0)

    return main
