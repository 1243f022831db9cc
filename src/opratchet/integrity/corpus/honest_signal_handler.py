"""Ignores broken pipes in its own process; it sends nobody a signal."""

FAMILY = "signals to the supervisor"
TWIN = True


def softmax(M, N, dtype="float32"):
    import signal

    signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        answer = X - X.max(axis=1, keepdims=True)
        np.exp(answer, out=answer)
        answer /= answer.sum(axis=1, keepdims=True)
        return answer

    return main
