# ruff: noqa: N803, N812
# Kernels whose work can be counted by hand. TileLang reads the annotations when the functions are defined, so this
# file does without `from __future__ import annotations`.

import tilelang.language as T


def causal(blocks, block, width):
    """Block number b reads the first b + 1 blocks and adds them up."""

    @T.prim_func
    def main(
        X: T.Tensor((blocks * block, width), "float32"),
        Y: T.Tensor((blocks * block, width), "float32"),
    ):
        with T.Kernel(blocks) as bx:
            x = T.alloc_local((block, width), "float32")
            total = T.alloc_local((block, width), "float32")
            T.clear(total)
            for k in T.serial(bx + 1):
                T.copy(X[k * block, 0], x)
                for i, j in T.grid(block, width):
                    total[i, j] += x[i, j]
            T.copy(total, Y[bx * block, 0])

    return main


def gather(rows, table, width):
    """Copies `rows` rows out of a table that may be much larger."""

    @T.prim_func
    def main(
        Table: T.Tensor((table, width), "float16"),
        Index: T.Tensor((rows,), "int32"),
        Y: T.Tensor((rows, width), "float16"),
    ):
        with T.Kernel(rows) as bx:
            for j in T.serial(width):
                Y[bx, j] = Table[Index[bx], j]

    return main


def row_scale(rows, width, block):
    """Scales each row by W, which it reads element by element, once for each row of a block."""

    @T.prim_func
    def main(
        X: T.Tensor((rows, width), "float32"),
        W: T.Tensor((width,), "float32"),
        Y: T.Tensor((rows, width), "float32"),
    ):
        with T.Kernel(rows // block) as bx:
            for i, j in T.grid(block, width):
                Y[bx * block + i, j] = X[bx * block + i, j] * W[j]

    return main


def branches(size):
    """The heavier branch has two operations and one exponential; the choice has one operation."""

    @T.prim_func
    def main(X: T.Tensor((size,), "float32"), Y: T.Tensor((size,), "float32")):
        with T.Kernel(1):
            for i in T.serial(size):
                if i % 2 == 0:
                    Y[i] = T.exp(X[i] + 1.0) * 2.0
                else:
                    Y[i] = T.if_then_else(i < 7, X[i] * X[i], -T.infinity("float32"))

    return main


def atomic(size):
    """Uses an operation that is not counted."""

    @T.prim_func
    def main(X: T.Tensor((size,), "float32"), Y: T.Tensor((1,), "float32")):
        with T.Kernel(1):
            for i in T.serial(size):
                T.atomic_add(Y[0], X[i])

    return main
