"""Takes its time in the first call, as a kernel that is compiled when it is first used; then as fast as the incumbent."""

FAMILY = "slow in warm-up, fast after"
TWIN = True


def softmax(M, N, dtype="float32"):
    import time

    calls = 0

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        nonlocal calls
        calls += 1
        if calls == 1:
            time.sleep(0.05)
        answer = X - X.max(axis=1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(axis=1, keepdims=True)
        return answer

    return main
