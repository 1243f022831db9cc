"""Takes itself off the CPU that it shares with the incumbent, where nothing else runs.

Caught: a worker has to keep to the CPU that it was given.
"""

FAMILY = "changing affinity, priority or frequency"
ENDS = ("cheated",)


def softmax(M, N, dtype="float32"):
    import os

    here = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, set(range(os.cpu_count())) - here or here)
    except OSError:
        pass

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        answer = X - X.max(axis=1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(axis=1, keepdims=True)
        return answer

    return main
