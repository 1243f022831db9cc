"""Sleeps and computes while the batches are sized and warmed, so that these are short; then it stops computing.

Caught: calls of timed batches are compared with the golden.
"""

FAMILY = "slow in warm-up, fast after"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    import time

    answer = np.full((M, N), 1 / N, dtype)
    calls = 0

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        nonlocal calls
        calls += 1
        if calls > 30:
            return answer
        time.sleep(0.003)
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
