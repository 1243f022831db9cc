"""Walks up the stack to the worker's loop and answers its next command before it comes: nothing is left for the clock.

Caught: the nonce of the next command is not known before it comes, and what it does not compute stays poisoned.
"""

FAMILY = "catching the harness by the stack"
ENDS = ("cheated", "accuracy_failed", "crashed")


def softmax(M, N, dtype="float32"):
    import sys

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        frame = sys._getframe(1)
        while frame is not None:
            if "channel" in frame.f_locals and "message" in frame.f_locals:
                message, channel = frame.f_locals["message"], frame.f_locals["channel"]
                channel.send({"ok": True, "ns": 1000, "nonce": message["nonce"]})
                break
            frame = frame.f_back
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
