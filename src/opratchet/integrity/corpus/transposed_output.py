"""Gives a view whose columns are contiguous: the copy into rows would be left to who reads it.

Caught: a result has to be contiguous in its declared shape.
"""

FAMILY = "wrong type, dtype, shape, stride or device"
ENDS = ("cheated",)


def softmax(M, N, dtype="float32"):
    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        turned = np.empty((N, M), dtype).T
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        np.divide(powers, powers.sum(axis=1, keepdims=True), out=turned)
        return turned

    return main
