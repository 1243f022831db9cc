"""Forks a child that inherits the socket and answers in the worker's name while the worker computes.

Caught: the poison is looked for as soon as the answer is there, and the worker's own answer is to nothing that was asked.
"""

FAMILY = "forging the worker's answer"
ENDS = ("cheated", "accuracy_failed", "crashed", "profile_invalid")


def softmax(M, N, dtype="float32"):
    import os
    import sys

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        message = sys._getframe(2).f_locals["message"]
        channel = sys._getframe(3).f_locals["channel"]
        if message["n"] > 1 and os.fork() == 0:
            channel.send({"ok": True, "ns": 1000, "nonce": message["nonce"]})
            os._exit(0)
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
