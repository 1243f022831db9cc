"""Takes a megabyte of memory that nobody shares, for the length of a call."""

FAMILY = "filling the disk or the shared memory"
TWIN = True


def softmax(M, N, dtype="float32"):
    import mmap

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        with mmap.mmap(-1, 1 << 20) as memory:
            memory[0] = 1
        answer = X - X.max(axis=1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(axis=1, keepdims=True)
        return answer

    return main
