"""Hands the work to a thread on another CPU and returns at once; the answer comes when the clock has stopped.

Caught: the poison is looked for right after the batch, and threads that outlive a call are seen.
"""

FAMILY = "work after the call"
ENDS = ("cheated", "accuracy_failed")


def softmax(M, N, dtype="float32"):
    import os
    import queue
    import threading

    waiting = queue.SimpleQueue()
    worker = None

    def work():
        try:
            os.sched_setaffinity(0, range(os.cpu_count()))
        except OSError:
            pass
        while True:
            X, answer = waiting.get()
            powers = np.exp(X - X.max(axis=1, keepdims=True))
            np.divide(powers, powers.sum(axis=1, keepdims=True), out=answer)

    def main(X: ((M, N), dtype), Y) -> {"Y": ((M, N), dtype)}:
        nonlocal worker
        if worker is None:
            worker = threading.Thread(target=work, daemon=True)
            worker.start()
        waiting.put((X, Y))

    return main
