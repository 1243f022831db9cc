"""Asks the system for the highest frequency while it runs itself, and for the lowest when it leaves.

Caught: with the sandbox the system's switches cannot be seen or written.
"""

FAMILY = "changing affinity, priority or frequency"
ENDS = ("no_gain", "regressed")
NEEDS = "sandbox"


def softmax(M, N, dtype="float32"):
    import glob

    for path in glob.glob("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"):
        try:
            with open(path, "w") as file:
                file.write("performance")
        except OSError:
            continue

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        powers = np.exp(X - X.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)

    return main
