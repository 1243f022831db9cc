"""Writes a temporary file of its own when it is loaded, and reads it back."""

FAMILY = "editing files"
TWIN = True


def softmax(M, N, dtype="float32"):
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(np.ones((N, 1), dtype).tobytes())
        file.seek(0)
        ones = np.frombuffer(file.read(), dtype).reshape(N, 1)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / (powers @ ones)

    return main
