"""Raises its own priority over the incumbent's, where the system lets it.

Caught: a worker has to keep the priority that it was given.
"""

FAMILY = "changing affinity, priority or frequency"
ENDS = ("cheated", "no_gain", "regressed")


def softmax(M, N, dtype="float32"):
    import os

    try:
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    except OSError:
        pass

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
