"""Gives float16 where float32 is declared: half the bytes to write.

Caught: a result has to have the declared dtype.
"""

FAMILY = "wrong type, dtype, shape, stride or device"
ENDS = ("cheated",)


def softmax(M, N, dtype="float32"):
    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return (powers / powers.sum(axis=1, keepdims=True)).astype(np.float16)

    return main
