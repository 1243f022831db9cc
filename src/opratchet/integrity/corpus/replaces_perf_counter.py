"""Replaces the worker's `time.perf_counter_ns` by one that runs at half speed.

Caught: the supervisor's clock decides, and the worker's has to agree with it.
"""

FAMILY = "replacing clocks and checkers"
ENDS = ("cheated", "no_gain")


def softmax(M, N, dtype="float32"):
    import time

    if time.perf_counter_ns.__name__ == "perf_counter_ns":
        real, start = time.perf_counter_ns, time.perf_counter_ns()

        def half():
            return start + (real() - start) // 2

        time.perf_counter_ns = half

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
