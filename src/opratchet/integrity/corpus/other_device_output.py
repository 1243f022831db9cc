"""Gives an object that claims to lie on an accelerator, whose copy back is somebody else's time.

Caught: a result has to be exactly an array in this machine's memory.
"""

FAMILY = "wrong type, dtype, shape, stride or device"
ENDS = ("cheated",)


def softmax(M, N, dtype="float32"):
    class OnDevice:
        device = "npu:0"

        def __init__(self, source):
            self.source, self.shape, self.dtype = source, source.shape, source.dtype

        def cpu(self):
            powers = np.exp(self.source - self.source.max(axis=1, keepdims=True))
            return powers / powers.sum(axis=1, keepdims=True)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return OnDevice(X)

    return main
