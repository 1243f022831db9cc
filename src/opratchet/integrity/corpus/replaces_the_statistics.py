"""Replaces `statistics`, and the means and medians of NumPy, so that every sample looks fast; and computes nothing.

Caught: none of it happens in the candidate's process: outputs are compared and times are averaged by the supervisor.
"""

FAMILY = "replacing clocks and checkers"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    import statistics

    for name in ("mean", "fmean", "median", "stdev", "quantiles"):
        setattr(statistics, name, lambda *given, **named: 1e-9)
    for name in ("mean", "median", "std", "percentile"):
        setattr(np, name, lambda *given, **named: 1e-9)
    answer = np.full((M, N), 1 / N, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return answer

    return main
