"""Takes one of two ways by the shape: both are right for every shape."""

FAMILY = "right outside of timing only, or while timed only"
TWIN = True


def softmax(M, N, dtype="float32"):
    def small(X):
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    def large(X):
        answer = X - X.max(axis=1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(axis=1, keepdims=True)
        return answer

    way = small if M * N < 50_000 else large

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return way(X)

    return main
