"""Stops the incumbent's process by a signal every half millisecond, for a moment, from an alarm handler of its own.

Caught: with the sandbox no other process can be seen. Without it: the worker uses its processor when nothing was asked of it.
"""

FAMILY = "disturbing the incumbent"
ENDS = ("cheated", "no_gain", "regressed", "profile_invalid", "crashed", "timeout")


def softmax(M, N, dtype="float32"):
    import os
    import signal
    import time

    def others():
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != os.getpid():
                try:
                    with open(f"/proc/{name}/stat") as file:
                        parent = int(file.read().rpartition(")")[2].split()[1])
                    with open(f"/proc/{name}/cmdline") as file:
                        if parent == os.getppid() and "opratchet.lab.runner" in file.read():
                            yield int(name)
                except (OSError, ValueError):
                    continue

    known = []

    def disturb(*_given):
        if not known:
            known.extend(others())
        for other in known:
            try:
                os.kill(other, signal.SIGSTOP)
                time.sleep(0.0002)
                os.kill(other, signal.SIGCONT)
            except OSError:
                continue

    signal.signal(signal.SIGALRM, disturb)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.0005)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
