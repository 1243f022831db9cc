"""Does the work of one call and gives its answer to the fifteen that follow.

Caught: each call of a batch has an input of its own, and of random batches one is compared with the golden.
"""

FAMILY = "batching"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    answer = None
    calls = 0

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        nonlocal answer, calls
        if calls % 16 == 0:
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            answer = powers / powers.sum(axis=1, keepdims=True)
        calls += 1
        return answer

    return main
