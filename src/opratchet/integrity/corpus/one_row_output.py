"""Gives one row, which a lenient comparison would spread over all of them.

Caught: a result has to have the declared shape.
"""

FAMILY = "wrong type, dtype, shape, stride or device"
ENDS = ("cheated",)


def softmax(M, N, dtype="float32"):
    row = np.full((1, N), 1 / N, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return row

    return main
