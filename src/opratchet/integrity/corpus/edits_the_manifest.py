"""Allows itself any error in the operator's manifest, and draws inputs that are all the same.

Caught: the manifest is read once, before anything of a candidate runs. With the sandbox it cannot be seen or written.
"""

FAMILY = "editing files"
ENDS = ("accuracy_failed",)
NEEDS = "sandbox"


def softmax(M, N, dtype="float32"):
    try:
        with open("@scene@/opratchet.toml", "a", encoding="utf-8") as file:
            file.write(
                "\n[tolerances.float32]\nrtol = 1e9\natol = 1e9\n\n[inputs.X]\nstd = 1e-30\n"
            )
    except OSError:
        pass
    answer = np.full((M, N), 1 / N, dtype)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return answer

    return main
