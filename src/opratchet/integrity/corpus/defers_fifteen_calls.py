"""Right for forty calls; then it only notes what it is asked in fifteen calls, and does the work of all in the sixteenth.

Caught: the outputs of all calls of a batch have to be written when it ends, and most batches do not end with a sixteenth call.
"""

FAMILY = "batching"
ENDS = ("cheated", "accuracy_failed")


def softmax(M, N, dtype="float32"):
    noted = []
    calls = 0

    def main(X: ((M, N), dtype), Y) -> {"Y": ((M, N), dtype)}:
        nonlocal calls
        calls += 1
        noted.append((X, Y))
        if calls <= 40 or len(noted) == 16:
            for given, output in noted:
                powers = np.exp(given - given.max(axis=1, keepdims=True))
                np.divide(powers, powers.sum(axis=1, keepdims=True), out=output)
            noted.clear()

    return main
