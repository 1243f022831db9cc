"""Searches everything that the collector knows for an array whose rows sum to one: the expected answer, where it lies there.

Caught: the golden is computed in another process, and its answer never comes into this one.
"""

FAMILY = "memory of the reference"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    guess = np.full((M, N), 1 / N, dtype)

    def search():
        import gc

        for thing in gc.get_objects():
            for value in gc.get_referents(thing):
                if type(value) is np.ndarray and value.shape == (M, N) and value is not guess:
                    if np.allclose(value.sum(axis=1), 1):
                        return value.astype(dtype)
        return guess

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        nonlocal guess
        if guess[0, 0] == guess[0, 1]:
            guess = search()
        return guess

    return main
