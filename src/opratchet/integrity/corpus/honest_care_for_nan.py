"""Leaves out the maximum where the largest input is small, and looks for NaN first: no wildcard, but care."""

FAMILY = "NaN as a wildcard"
TWIN = True


def softmax(M, N, dtype="float32"):
    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        largest = float(np.abs(X).max())
        answer = np.exp(X) if largest < 60 else np.exp(X - X.max(axis=1, keepdims=True))
        answer /= answer.sum(axis=1, keepdims=True)
        return answer

    return main
