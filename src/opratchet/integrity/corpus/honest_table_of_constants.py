"""Keeps a column of ones between calls: it depends on the shape only, never on what an input holds."""

FAMILY = "memoising"
TWIN = True


def softmax(M, N, dtype="float32"):
    ones = np.ones((N, 1), dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / (powers @ ones)

    return main
