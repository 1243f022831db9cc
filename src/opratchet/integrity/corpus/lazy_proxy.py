"""Gives an object that looks like an array and computes when somebody asks for its content.

Caught: a result has to be exactly an array, and is copied into the output's memory within the call.
"""

FAMILY = "lazy objects"
ENDS = ("cheated",)


def softmax(M, N, dtype="float32"):
    class Proxy:
        def __init__(self, source):
            self.source, self.shape, self.dtype = source, source.shape, source.dtype

        def __array__(self, dtype=None, copy=None):
            powers = np.exp(self.source - self.source.max(axis=1, keepdims=True))
            return powers / powers.sum(axis=1, keepdims=True)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return Proxy(X)

    return main
