"""Gives one buffer for all calls and fills it every second time only.

Caught: calls of timed batches are compared with the golden of their own inputs.
"""

FAMILY = "stale or shared output buffer"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    buffer = np.empty((M, N), dtype)
    calls = 0

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        nonlocal calls
        calls += 1
        if calls % 2:
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            np.divide(powers, powers.sum(axis=1, keepdims=True), out=buffer)
        return buffer

    return main
