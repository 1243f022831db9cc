"""Gives a copy of its input: of the right type and shape, and written in full.

Caught: outputs are compared with the golden.
"""

FAMILY = "returning the input"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return X.copy()

    return main
