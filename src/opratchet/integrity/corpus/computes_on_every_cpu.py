"""Starts a thread on another CPU in each call, gives it half of the rows, and waits for it: one core is what is compared.

Caught: the process uses more processor time than passes.
"""

FAMILY = "changing affinity, priority or frequency"
ENDS = ("cheated", "no_gain", "regressed", "profile_invalid")


def softmax(M, N, dtype="float32"):
    import _thread
    import os

    here = os.sched_getaffinity(0)
    elsewhere = set(range(os.cpu_count())) - here or here
    answer = np.empty((M, N), dtype)
    half = M // 2

    def rows(X, out):
        np.subtract(X, X.max(axis=1, keepdims=True), out=out)
        np.exp(out, out=out)
        out /= out.sum(axis=1, keepdims=True)

    def work(X, done):
        try:
            os.sched_setaffinity(0, elsewhere)
        except OSError:
            pass
        rows(X[:half], answer[:half])
        done.release()

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        done = _thread.allocate_lock()
        done.acquire()
        _thread.start_new_thread(work, (X, done))
        rows(X[half:], answer[half:])
        done.acquire()
        return answer

    return main
