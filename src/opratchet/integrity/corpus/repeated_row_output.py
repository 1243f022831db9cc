"""Gives one row as a matrix of the right shape, whose rows all lie in the same memory (a stride of 0).

Caught: a result has to be contiguous; its content would fail against the golden.
"""

FAMILY = "wrong type, dtype, shape, stride or device"
ENDS = ("cheated",)


def softmax(M, N, dtype="float32"):
    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X[:1] - X[:1].max())
        return np.broadcast_to(powers / powers.sum(), (M, N))

    return main
