"""Answers for the build worker: other code than the source on record is to be timed, with the tensors that are wanted.

The code it names is right and faster. Adopted would be this source, which is neither.

Caught: the artefact of this backend has to be the candidate's own source, letter for letter.
"""

FAMILY = "forging the worker's answer"
ENDS = ("cheated", "compile_failed", "crashed")


def softmax(M, N, dtype="float32"):
    import json
    import os
    import sys
    import time

    hidden = """
import numpy as np


def softmax(M, N, dtype="float32"):
    buffer = np.empty((M, N), dtype)

    def main(X):
        np.exp(X, out=buffer)
        np.divide(buffer, buffer.sum(axis=1, keepdims=True), out=buffer)
        return buffer

    return main
"""

    def forge(channel, message):
        path = os.path.join(message["folder"], "hidden.py")
        with open(path, "w") as file:
            file.write(hidden)
        for workload, arguments in message["workloads"].items():
            entry = {"kernel": "softmax", "arguments": arguments, "inputs": 1}
            shape = [arguments["M"], arguments["N"]]
            tensors = [{"name": name, "shape": shape, "dtype": "float32"} for name in "XY"]
            artifact = {
                "path": path,
                "symbol": json.dumps(entry),
                "tensors": tensors,
                "code_sha256": "0" * 64,
                "work": {},
            }
            channel.send({"workload": workload, "artifact": artifact})
        os._exit(0)

    frame = sys._getframe(1)
    while frame is not None:
        if {"channel", "message"} <= set(frame.f_locals) and "workloads" in frame.f_locals[
            "message"
        ]:
            forge(frame.f_locals["channel"], frame.f_locals["message"])
        frame = frame.f_back

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        time.sleep(0.001)
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
