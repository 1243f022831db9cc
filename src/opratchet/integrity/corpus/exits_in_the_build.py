"""Leaves the build worker with exit code 0 and a word of success before anything was built.

Caught: a build is what was sent over the private channel, not an exit code.
"""

FAMILY = "leaving with success"
ENDS = ("crashed", "compile_failed")


def softmax(M, N, dtype="float32"):
    import os

    print("build ok", flush=True)
    os._exit(0)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return X

    return main
