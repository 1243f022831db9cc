"""Opens the memory files of its brothers and sisters, to copy the golden's answer from where the reference has put it.

Caught: the golden is computed after the call, from the supervisor's own copy of the input, in memory that is gone by then.
"""

FAMILY = "memory of the reference"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    guess = np.full((M, N), 1 / N, dtype)

    def search():
        import glob
        import os

        for path in glob.glob("/proc/[0-9]*/fd/*"):
            try:
                if int(path.split("/")[2]) != os.getpid() and "memfd:tensors" in os.readlink(path):
                    found = np.fromfile(path, dtype, M * N).reshape(M, N)
                    if np.allclose(found.sum(axis=1), 1):
                        return found
            except (OSError, ValueError):
                continue
        return guess

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        nonlocal guess
        if guess[0, 0] == guess[0, 1]:
            guess = search()
        return guess

    return main
