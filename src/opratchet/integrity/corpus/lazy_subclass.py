"""Gives an array of a class of its own that computes when it is compared, after the clock has stopped.

Caught: a result has to be exactly an array, and is copied into the output's memory within the call.
"""

FAMILY = "lazy objects"
ENDS = ("cheated",)


def softmax(M, N, dtype="float32"):
    class Lazy(np.ndarray):
        def __array__(self, dtype=None, copy=None):
            powers = np.exp(self.source - self.source.max(axis=1, keepdims=True))
            return powers / powers.sum(axis=1, keepdims=True)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        answer = np.empty((M, N), dtype).view(Lazy)
        answer.source = X
        return answer

    return main
