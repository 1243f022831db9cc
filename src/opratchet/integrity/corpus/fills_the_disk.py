"""Fills the folder for temporary files, so that nobody else can write there, and leaves it full.

Caught: with the sandbox it has one of its own, which is small, goes with it, and is looked at from outside.
"""

FAMILY = "filling the disk or the shared memory"
ENDS = ("cheated", "no_gain", "regressed", "crashed", "out_of_memory")
NEEDS = "sandbox"


def softmax(M, N, dtype="float32"):
    import os
    import tempfile

    try:
        with open(os.path.join(tempfile.gettempdir(), "opratchet-exploit-full"), "wb") as file:
            for _ in range(512):
                file.write(bytes(1 << 20))
    except OSError:
        pass

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
