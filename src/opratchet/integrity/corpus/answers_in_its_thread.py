"""Raises the flag at once and answers by the channel too, with the right nonce, from a thread that then goes on with the work.

Caught: the poison is looked for as soon as the flag is up, and threads that outlive a call are seen.
"""

FAMILY = "work after the call"
ENDS = ("cheated", "accuracy_failed", "profile_invalid", "crashed")


def softmax(M, N, dtype="float32"):
    import sys
    import threading

    def main(X: ((M, N), dtype), Y) -> {"Y": ((M, N), dtype)}:
        batch, serving = sys._getframe(2).f_locals, sys._getframe(3).f_locals
        message, channel = batch["message"], serving["channel"]

        def work():
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            np.divide(powers, powers.sum(axis=1, keepdims=True), out=Y)

        if batch["n"] > 1:
            batch["words"][2] = batch["number"]
            channel.send({"ok": True, "ns": 1000, "nonce": message["nonce"]})
            type(channel).send = lambda self, message, fds=(): None
            threading.Thread(target=work).start()
        else:
            work()

    return main
