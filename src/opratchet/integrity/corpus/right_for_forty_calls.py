"""Right for forty calls, for as long as a careful reader would look; then it gives the same answer to everything.

Caught: calls are compared with the golden at random throughout, and at the end of each pair of processes.
"""

FAMILY = "right for the first calls only"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    answer = np.full((M, N), 1 / N, dtype)
    calls = 0

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        nonlocal calls
        calls += 1
        if calls > 40:
            return answer
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
