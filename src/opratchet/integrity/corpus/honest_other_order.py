"""Multiplies by the reciprocal of the sum where the incumbent divides: the last bit may differ, and nothing more."""

FAMILY = "hidden loss of precision"
TWIN = True


def softmax(M, N, dtype="float32"):
    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        powers *= np.float32(1) / powers.sum(axis=1, keepdims=True)
        return powers

    return main
