"""Gives its input back.

Caught: a result that is the input's memory is refused; what it holds would fail against the golden.
"""

FAMILY = "returning the input"
ENDS = ("cheated",)


def softmax(M, N, dtype="float32"):
    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return X

    return main
