"""What the check is given, and what it says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """One place where the layout is not kept.

    Attributes:
        rule: Id of the rule, a key of `RULES`.
        file: Name of the file within the operator's folder.
        line: Its line, from 1; 1 when the whole file is meant.
        message: What is wrong there and what to do.
    """

    rule: str
    file: str
    line: int
    message: str

    @property
    def place(self) -> tuple[str, int, str, str]:
        """What findings are sorted by: file, line, rule, and the message where all else is the same."""
        return self.file, self.line, self.rule, self.message

    def record(self) -> dict[str, Any]:
        """As one JSON object."""
        return asdict(self)


@dataclass(frozen=True)
class LayoutFiles:
    """The texts of an operator, so that a candidate can be checked without a folder.

    Attributes:
        op: Name of the operator; the names of the files follow from it.
        impl: Text of the implementation; None, here and below, where there is no file that can be read.
        golden: Text of the golden.
        test: Text of the test.
        spec: Text of SPEC.md, which only has to be there.
        memory: Text of MEMORY.md, likewise; a candidate has none of its own.
    """

    op: str
    impl: str | None
    golden: str | None
    test: str | None
    spec: str | None
    memory: str | None = ""

    spec_name = "SPEC.md"
    memory_name = "MEMORY.md"

    @property
    def impl_name(self) -> str:
        """`softmax_impl.py`."""
        return f"{self.op}_impl.py"

    @property
    def golden_name(self) -> str:
        """`softmax_golden.py`."""
        return f"{self.op}_golden.py"

    @property
    def test_name(self) -> str:
        """`test_softmax.py`."""
        return f"test_{self.op}.py"

    @property
    def texts(self) -> dict[str, str | None]:
        """Every text by the name of its file."""
        return {
            self.impl_name: self.impl,
            self.golden_name: self.golden,
            self.test_name: self.test,
            self.spec_name: self.spec,
            self.memory_name: self.memory,
        }
