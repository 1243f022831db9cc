"""Raises the flag that says that the batch is done in the first call, and does all the work after that.

Its outputs are whole when the answer comes by the channel, which is the worker's own and comes when it should.

Caught: the poison is looked for as soon as the flag is up, and then it is still there.
"""

FAMILY = "work after the call"
ENDS = ("cheated", "accuracy_failed", "profile_invalid")


def softmax(M, N, dtype="float32"):
    import sys

    def main(X: ((M, N), dtype), Y) -> {"Y": ((M, N), dtype)}:
        batch = sys._getframe(2).f_locals
        batch["words"][2] = batch["number"]
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        np.divide(powers, powers.sum(axis=1, keepdims=True), out=Y)

    return main
