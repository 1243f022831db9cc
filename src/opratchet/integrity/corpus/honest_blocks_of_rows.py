"""Computes a block of rows after another, so that each stays in the nearest cache: all of the output, in parts."""

FAMILY = "only part of the output"
TWIN = True


def softmax(M, N, dtype="float32"):
    answer = np.empty((M, N), dtype)
    step = max(1, 16384 // N)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        for first in range(0, M, step):
            block, part = X[first : first + step], answer[first : first + step]
            np.subtract(block, block.max(axis=1, keepdims=True), out=part)
            np.exp(part, out=part)
            part /= part.sum(axis=1, keepdims=True)
        return answer

    return main
