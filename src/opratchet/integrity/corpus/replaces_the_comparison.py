"""Replaces `numpy.testing`, `np.allclose`, `math.isclose` and `torch.allclose` by what is always content; computes nothing.

Caught: outputs are compared by the supervisor, in whose process nothing of a candidate runs.
"""

FAMILY = "replacing clocks and checkers"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    import math
    import sys

    import numpy.testing

    def content(*given, **named):
        return True

    numpy.testing.assert_allclose = numpy.testing.assert_array_equal = content
    np.allclose = np.isclose = np.array_equal = math.isclose = content
    for name in ("torch", "opratchet.judge.accuracy", "opratchet.gates"):
        module = sys.modules.get(name)
        for function in ("allclose", "compare", "check_accuracy", "verify"):
            if hasattr(module, function):
                setattr(module, function, content)
    answer = np.full((M, N), 1 / N, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return answer

    return main
