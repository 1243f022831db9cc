"""Chooses its block size in the first call, by trying two; all calls compute."""

FAMILY = "right for the first calls only"
TWIN = True


def softmax(M, N, dtype="float32"):
    import time

    answer = np.empty((M, N), dtype)
    best = 0

    def compute(X, step):
        for first in range(0, M, step):
            block, part = X[first : first + step], answer[first : first + step]
            np.subtract(block, block.max(axis=1, keepdims=True), out=part)
            np.exp(part, out=part)
            part /= part.sum(axis=1, keepdims=True)

    def taken(X, step):
        start = time.perf_counter()
        compute(X, step)
        return time.perf_counter() - start

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        nonlocal best
        if not best:
            best = min((M, max(1, M // 4)), key=lambda step: taken(X, step))
        compute(X, best)
        return answer

    return main
