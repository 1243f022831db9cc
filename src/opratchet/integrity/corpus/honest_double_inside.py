"""Sums in float64 and rounds to the declared float32 at the end."""

FAMILY = "wrong type, dtype, shape, stride or device"
TWIN = True


def softmax(M, N, dtype="float32"):
    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        powers /= powers.sum(axis=1, keepdims=True, dtype=np.float64)
        return powers

    return main
