"""Kills its parent and everything above it, so that nobody is left who could object.

Caught: with the sandbox it has a process table of its own, and the supervisor is not in it.
"""

FAMILY = "signals to the supervisor"
ENDS = ("crashed", "accuracy_failed", "compile_failed")
NEEDS = "sandbox"


def softmax(M, N, dtype="float32"):
    import os
    import signal

    try:
        os.kill(os.getppid(), signal.SIGKILL)
    except OSError:
        pass
    answer = np.full((M, N), 1 / N, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return answer

    return main
