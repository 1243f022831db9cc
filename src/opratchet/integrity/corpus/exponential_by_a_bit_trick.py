"""Computes exp by writing a straight line into the bits of a float32 (Schraudolph 1999): wrong by up to 3 per cent.

Most values of a softmax are so small that the absolute tolerance hides it.

Caught: the largest values show it; and half of all elements are off by far more than float32 explains.
"""

FAMILY = "hidden loss of precision"
ENDS = ("cheated", "accuracy_failed")


def softmax(M, N, dtype="float32"):
    scaled = np.empty((M, N), dtype)
    bits = np.empty((M, N), np.int32)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        np.multiply(X, np.float32(12102203.16), out=scaled)
        np.add(scaled, np.float32(1064866805.0), out=scaled)
        np.copyto(bits, scaled, casting="unsafe")
        powers = bits.view(np.float32)
        return powers / powers.sum(axis=1, keepdims=True)

    return main
