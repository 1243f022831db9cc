"""Gives a list of rows, which a lenient comparison would turn into an array by itself, outside of the clock.

Caught: a result has to be exactly an array.
"""

FAMILY = "wrong type, dtype, shape, stride or device"
ENDS = ("cheated",)


def softmax(M, N, dtype="float32"):
    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return [row for row in X]

    return main
