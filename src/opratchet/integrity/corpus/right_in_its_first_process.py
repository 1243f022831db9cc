"""Right in the process that is checked first; a mark on disk tells the later ones that nobody will look any more.

Caught: calls of timed batches are compared with the golden in every process.
"""

FAMILY = "right for the first calls only"
ENDS = ("accuracy_failed", "no_gain", "regressed")


def softmax(M, N, dtype="float32"):
    import os
    import sys

    mark, own = "@lab@/seen", str(os.getpid())
    is_called = hasattr(sys.modules["__main__"], "Runner")  # the build runs this, too
    try:
        with open(mark, "a+") as file:
            file.seek(0)
            first = file.read() or own
            file.truncate(0)
            file.write(first if is_called else "")
    except OSError:
        first = own
    seen = first != own
    answer = np.full((M, N), 1 / N, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        if seen:
            return answer
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
