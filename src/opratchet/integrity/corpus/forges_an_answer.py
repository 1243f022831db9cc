"""Scans the descriptors for sockets and writes an answer of its own into each: a batch of a thousand nanoseconds.

Caught: an answer has to hold the nonce of its command.
"""

FAMILY = "forging the worker's answer"
ENDS = ("cheated", "crashed", "profile_invalid")


def softmax(M, N, dtype="float32"):
    import json
    import os
    import stat
    import struct

    answer = np.full((M, N), 1 / N, dtype)
    data = json.dumps({"ok": True, "ns": 1000}).encode()
    packet = struct.pack("!I", len(data)) + data

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        for number in map(int, os.listdir("/proc/self/fd")):
            try:
                if stat.S_ISSOCK(os.fstat(number).st_mode):
                    os.write(number, packet)
            except OSError:
                continue
        return answer

    return main
