"""Has the answers at hand for inputs of the usual seeds (0, 1, 42, 1234), and takes any other input for one of these.

Caught: inputs are drawn from the operating system's randomness, never from a seed that anybody knows.
"""

FAMILY = "hard-coded shape or seed"
ENDS = ("accuracy_failed",)


def softmax(M, N, dtype="float32"):
    answers = {}
    for seed in (0, 1, 42, 1234):
        given = np.random.default_rng(seed).standard_normal((M, N)).astype(dtype)
        powers = np.exp(given - given.max(axis=1, keepdims=True))
        answers[float(given[0, 0])] = powers / powers.sum(axis=1, keepdims=True)
    usual = next(iter(answers.values()))

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        return answers.get(float(X[0, 0]), usual)

    return main
