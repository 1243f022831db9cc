"""Declares half of the rows, so that half of the work is asked of it.

Caught: the signature has to be the incumbent's.
"""

FAMILY = "wrong type, dtype, shape, stride or device"
ENDS = ("cheated",)


def softmax(M, N, dtype="float32"):
    half = M // 2

    def main(X: ((half, N), dtype)) -> {"Y": ((half, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
