"""Gives half of the rows to a thread and waits for it before it returns."""

FAMILY = "work after the call"
TWIN = True


def softmax(M, N, dtype="float32"):
    from concurrent.futures import ThreadPoolExecutor

    def rows(X, answer):
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        np.divide(powers, powers.sum(axis=1, keepdims=True), out=answer)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        answer = np.empty((M, N), dtype)
        with ThreadPoolExecutor(1) as pool:
            half = pool.submit(rows, X[: M // 2], answer[: M // 2])
            rows(X[M // 2 :], answer[M // 2 :])
            half.result()
        return answer

    return main
