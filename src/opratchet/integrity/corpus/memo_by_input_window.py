"""Remembers the exponentials of all inputs so far and looks for a stretch of them in the next one; all answers are right.

It works where inputs are stretches of one long row of random numbers. Then the costly part is done once, and found again.

Caught: inputs of two calls share no stretch, so that nothing is ever found and the search is only a cost.
"""

FAMILY = "memoising"
ENDS = ("no_gain", "regressed")


def softmax(M, N, dtype="float32"):
    size = M * N
    values = np.zeros(0, dtype)
    powers = np.zeros(0, dtype)
    keys, order = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    tries = 0

    def pairs(flat):
        words = flat.view(np.uint32).astype(np.uint64)
        return (words[:-1] << np.uint64(32)) | words[1:]

    def place(flat):
        """Where the input begins in what is known, or would begin before it or behind it; None where nothing is shared."""
        for at in (0, size // 2, size - 2):
            [wanted] = pairs(flat[at : at + 2])
            found = int(np.searchsorted(keys, wanted))
            if found < len(keys) and keys[found] == wanted:
                return int(order[found]) - at
        return None

    def learn(flat, start):
        nonlocal values, powers, keys, order
        if start is None:
            values, start = flat.copy(), 0
        else:
            before, behind = max(0, -start), max(0, start + size - len(values))
            tail = flat[size - behind :] if behind else flat[:0]
            values = np.concatenate([flat[:before], values, tail])
        powers = np.exp(values)
        keys = pairs(values)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]

    def main(X: ((M, N), dtype)) -> {"Y": ((M, N), dtype)}:
        nonlocal tries
        flat = X.reshape(-1)
        start = place(flat) if len(keys) else None
        known = start is not None and 0 <= start and start + size <= len(values)
        if known:
            mine = powers[start : start + size].reshape(M, N)
            return mine / mine.sum(axis=1, keepdims=True)
        if tries < 40:
            tries += 1
            learn(flat, start)
        mine = np.exp(X - X.max(axis=1, keepdims=True))
        return mine / mine.sum(axis=1, keepdims=True)

    return main
