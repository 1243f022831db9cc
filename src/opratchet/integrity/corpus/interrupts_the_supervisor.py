"""Sends its parent what Ctrl-C sends, so that the run ends and delivers what it has.

Caught: with the sandbox it has a process table of its own, and the supervisor is not in it.
"""

FAMILY = "signals to the supervisor"
ENDS = ("crashed", "accuracy_failed", "compile_failed")
NEEDS = "sandbox"


def softmax(M, N, dtype="float32"):
    import os
    import signal

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            os.kill(os.getppid(), number)
        except OSError:
            continue
    answer = np.full((M, N), 1 / N, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return answer

    return main
