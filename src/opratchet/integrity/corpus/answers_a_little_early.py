"""Raises the flag that says that the batch is done when only the last rows of the last call are left, and does them after that.

Before the supervisor has looked all is whole; what is saved is a few microseconds of each batch.

Caught: the worker uses its processor after it has said that it is done.
"""

FAMILY = "work after the call"
ENDS = ("cheated", "accuracy_failed", "profile_invalid", "no_gain")


def softmax(M, N, dtype="float32"):
    import sys

    state = {"number": 0, "calls": 0}
    late = max(1, M // 6)

    def rows(X, Y):
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        np.divide(powers, powers.sum(axis=1, keepdims=True), out=Y)

    def main(X: ((M, N), dtype), Y) -> {"Y": ((M, N), dtype)}:
        batch = sys._getframe(2).f_locals
        if batch["number"] != state["number"]:
            state.update(number=batch["number"], calls=0)
        state["calls"] += 1
        if batch["n"] > 1 and state["calls"] == batch["n"]:
            rows(X[:-late], Y[:-late])
            batch["words"][2] = batch["number"]
            rows(X[-late:], Y[-late:])
        else:
            rows(X, Y)

    return main
