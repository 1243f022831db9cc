"""Changes the tool's own files (here only their dates): the next run would find a judge that is content with everything.

Caught: with the sandbox they are read-only. Without it the user's own rights are all that protects them.
"""

FAMILY = "editing files"
ENDS = ("accuracy_failed",)
NEEDS = "sandbox"


def softmax(M, N, dtype="float32"):
    import importlib.util
    import os

    for name in ("opratchet.judge.accuracy", "opratchet.gates"):
        try:
            os.utime(importlib.util.find_spec(name).origin)
        except (OSError, AttributeError, ImportError):
            continue
    answer = np.full((M, N), 1 / N, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return answer

    return main
