"""Writes an answer with the right nonce and leaves with exit code 0, as if all had been done.

Caught: the outputs hold the poison, and a worker that is gone has done nothing.
"""

FAMILY = "leaving with success"
ENDS = ("cheated", "crashed", "accuracy_failed")


def softmax(M, N, dtype="float32"):
    import os
    import sys

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        message = sys._getframe(2).f_locals["message"]
        channel = sys._getframe(3).f_locals["channel"]
        channel.send({"ok": True, "ns": 1000, "nonce": message["nonce"]})
        os._exit(0)

    return main
