"""Gives an old answer in every eighth call: seven eighths of the work, and right almost always.

Caught: so many calls are compared with the golden before a gain of an eighth counts that one of the old ones is among them.
"""

FAMILY = "only part of the output"
ENDS = ("accuracy_failed", "no_gain")


def softmax(M, N, dtype="float32"):
    answer = np.full((M, N), 1 / N, dtype)
    calls = 0

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        nonlocal calls, answer
        calls += 1
        if calls % 8:
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            answer = powers / powers.sum(axis=1, keepdims=True)
        return answer

    return main
