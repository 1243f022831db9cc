"""Switches the collector off while it computes: it looks at nothing that is not its own."""

FAMILY = "memory of the reference"
TWIN = True


def softmax(M, N, dtype="float32"):
    import gc

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        gc.disable()
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        answer = powers / powers.sum(axis=1, keepdims=True)
        gc.enable()
        return answer

    return main
