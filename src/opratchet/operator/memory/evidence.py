"""The two proofs that an operator's accuracy is frozen, as a MEMORY.md may state them.

Upstream has no one form for them, so both are found as `key: value` lines and in tables:

- E2E tensor compare: `all_close: true`, `E2E tensor compare：所有输出 all_close: true`, or a table with a column
  `all_close`, as in upstream's "Per-module verification log". `Tensors compared` names the outputs; where nothing is
  named, all are meant.
- Layout check: `layout: exit 0`, `layout 检查 | exit 0`, or a table with the columns layout and exit code.

A statement may carry the hash of the implementation that was checked (`impl sha256: 0123456789ab…`, or a column
`impl_sha256`). What has the form of a statement without saying yes or no is kept as unreadable, so that it hides the
older one before it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from opratchet.operator.markdown import plain
from opratchet.operator.memory.reading import Memory, Pair, Row, Section, Table

_VERDICTS = {
    **dict.fromkeys(("true", "yes", "✅", "1", "通过"), True),
    **dict.fromkeys(("false", "no", "❌", "0", "失败"), False),
}
_NAME = r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+|\[[0-9]+\])*"
_ALL = r"(?:all(?: leaf)?(?: outputs)?|every output|(?:所有|全部)的?(?:输出)?)"
_SUBJECT = r"(?:(?:e2e|端到端|(?:detailed[ _])?tensor[ _-]?compare|张量(?:比对|对比|比较))[ _.-]*)"
_CLOSE = r"all[ _]?close"
_EXIT = r"(?:exit(?:[ _-]?(?:code|status))?|退出码|返回码|rc)"

_CLOSE_KEY = re.compile(
    rf"{_SUBJECT}*(?:(?:{_ALL}|(?P<names>{_NAME}))[ .]+)?{_CLOSE}(?: *[\[(](?P<within>{_NAME})[\])])?",
    re.IGNORECASE,
)
_SUBJECT_KEY = re.compile(rf"{_SUBJECT}+", re.IGNORECASE)
_CLOSE_VALUE = re.compile(
    rf"(?:{_ALL} *|(?P<names>{_NAME}(?:[ ,、]+{_NAME})*?) +)?[,:]? *{_CLOSE} *[:=]? *(?P<said>.*)",
    re.IGNORECASE,
)
_LAYOUT_KEY = re.compile(
    rf"(?:layout|布局)(?P<check>[ _-]*(?:check|lint|检查|校验))?(?P<exit>[ _-]*{_EXIT})?",
    re.IGNORECASE,
)
_EXIT_VALUE = re.compile(rf"{_EXIT} *[:=]? *(-?[0-9]+)", re.IGNORECASE)
_HASH_KEY = re.compile(r"impl(?:ementation)?[ _-]*sha(?:[ _-]?256)?", re.IGNORECASE)
_HASH = re.compile(rf"[ ,;(]*{_HASH_KEY.pattern} *[:=]? *(?P<hex>\w*)\)?", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]{12,64}")
_MODULE_FILE = re.compile(r"_module\d", re.IGNORECASE)

# Titles of columns, in lower case, without what stands in brackets and with one space between words.
_CLOSE_COLUMN = re.compile(r"all ?close")
_TENSOR_COLUMN = re.compile(
    r"(?:tensors?|outputs?)(?: (?:names?|compared))?|(?:比较|对比|比对)?的?(?:输出)?张量|输出"
)
_WHEN_COLUMN = re.compile(r"when|date|time|时间|日期")
_FILE_COLUMN = re.compile(r"(?:staged )?file|文件")
_HASH_COLUMN = re.compile(r"impl(?:ementation)? sha(?: ?256)?")
_EXIT_COLUMN = re.compile(_EXIT)

_BLANK = ("", "-", "--", "—", "–", "n/a", "无")
_LONGEST = 500  # characters of a key or cell that is looked at


@dataclass(frozen=True)
class Evidence:
    """One statement that a proof was made.

    Attributes:
        line: Line in the MEMORY.md.
        outputs: Outputs that it names; empty when it speaks of all.
        passed: What it says; None when that cannot be read.
        sha256: Hash of the implementation it speaks of, 12 to 64 hex digits; empty when it names none.
        text: The line.
        is_module: It is the check of a module of the operator, not of the whole.
    """

    line: int
    outputs: tuple[str, ...]
    passed: bool | None
    sha256: str
    text: str
    is_module: bool = False


@dataclass(frozen=True)
class _Said:
    """What a key and its value state."""

    passed: bool | None
    outputs: tuple[str, ...] = ()


Reader = Callable[[str, str], "_Said | None"]


def compare_evidence(memory: Memory) -> list[Evidence]:
    """Statements about the E2E tensor compare, in order of their lines."""
    return _all(memory, _compare_said, _compare_table)


def layout_evidence(memory: Memory) -> list[Evidence]:
    """Statements about the layout check, in order of their lines."""
    return _all(memory, _layout_said, _layout_table)


def _all(
    memory: Memory, said: Reader, of_table: Callable[[Table], Iterator[Evidence]]
) -> list[Evidence]:
    found = [
        evidence
        for section in memory.sections
        for evidence in (
            *_of_pairs(section, said),
            *(e for table in section.tables for e in of_table(table)),
        )
    ]
    return sorted(found, key=lambda evidence: evidence.line)


def _evidence(said: _Said, place: Pair | Row, sha256: str, *, is_module: bool = False) -> Evidence:
    """The statement; one whose hash is damaged cannot be read, as nobody can tell which version it speaks of."""
    is_sound = bool(_HEX.fullmatch(sha256)) or not sha256
    return Evidence(
        line=place.line,
        outputs=said.outputs,
        passed=said.passed if is_sound else None,
        sha256=sha256 if is_sound else "",
        text=place.text,
        is_module=is_module,
    )


# --- key: value ---------------------------------------------------------------------------------------------


def _of_pairs(section: Section, reader: Reader) -> Iterator[Evidence]:
    for pair in section.pairs:
        value, sha256 = _without_hash(pair.value)
        said = reader(pair.key, value)
        if said:
            yield _evidence(said, pair, sha256 or _hash_beside(pair, section))


def _without_hash(value: str) -> tuple[str, str]:
    """A value without the hash that it carries, and the hash; empty without one."""
    found = _HASH.search(value[:_LONGEST])
    if found is None:
        return value, ""
    return (value[: found.start()] + value[found.end() :]).strip(" ,;"), found["hex"].lower()


def _hash_beside(pair: Pair, section: Section) -> str:
    """The hash on a line of its own directly around a pair: the next below it, else the last above."""
    hashes = [
        other
        for other in section.pairs
        if other.group == pair.group and _HASH_KEY.fullmatch(other.key[:_LONGEST])
    ]
    below = [other for other in hashes if other.line > pair.line]
    nearest = below[:1] or hashes[-1:]
    return nearest[0].value.lower() if nearest else ""


def _compare_said(key: str, value: str) -> _Said | None:
    if max(len(key), len(value)) > _LONGEST:
        return None
    if found := _CLOSE_KEY.fullmatch(key):
        return _Said(_verdict(value), _names(found["names"] or found["within"] or ""))
    if _SUBJECT_KEY.fullmatch(key) and (found := _CLOSE_VALUE.fullmatch(value)):
        return _Said(_verdict(found["said"]), _names(found["names"] or ""))
    return None


def _layout_said(key: str, value: str) -> _Said | None:
    """What is stated about the layout check. `layout: BSND` speaks of the layout of a tensor, and states nothing."""
    found = _LAYOUT_KEY.fullmatch(key) if max(len(key), len(value)) <= _LONGEST else None
    if found is None:
        return None
    code = re.fullmatch(r"(-?[0-9]+)", value) if found["exit"] else _EXIT_VALUE.fullmatch(value)
    if code:
        return _Said(not code.group(1).strip("-0"))
    return _Said(None) if found["check"] or found["exit"] else None


def _verdict(word: str) -> bool | None:
    return _VERDICTS.get(word.lower())


def _names(cell: str) -> tuple[str, ...]:
    """Names in a cell or value; none when it is blank or says that all outputs are meant."""
    if cell.lower() in _BLANK or re.search(r"\ball\b|所有|全部", cell, re.IGNORECASE):
        return ()
    return tuple(re.findall(_NAME, cell[:_LONGEST]))


# --- tables -------------------------------------------------------------------------------------------------


class _Columns:
    """The columns of a table, found by their titles."""

    def __init__(self, table: Table) -> None:
        self.titles = [_title(cell) for cell in table.header]

    def find(self, pattern: re.Pattern[str]) -> int | None:
        """The first column with such a title."""
        return next((at for at, title in enumerate(self.titles) if pattern.fullmatch(title)), None)

    def cell(self, row: Row, pattern: re.Pattern[str]) -> str:
        """The cell of a row in such a column, without emphasis; empty where there is none."""
        at = self.find(pattern)
        return "" if at is None else plain(row.cells[at])

    def sha256(self, row: Row) -> str:
        """The hash that a row carries, in its own column or in any cell."""
        own = self.cell(row, _HASH_COLUMN).lower()
        if own not in _BLANK:
            return own
        return next((found for cell in row.cells if (found := _without_hash(plain(cell))[1])), "")


def _title(cell: str) -> str:
    words = plain(cell)[:_LONGEST].lower().split("(", 1)[0]
    return re.sub(r"[\s_-]+", " ", words).strip()


def _compare_table(table: Table) -> Iterator[Evidence]:
    columns = _Columns(table)
    close = columns.find(_CLOSE_COLUMN)
    for row in table.rows:
        if close is None:
            said = _said_in(row, _compare_said)
        elif _is_blank(row, columns):
            continue
        else:
            verdict = _verdict(_without_hash(plain(row.cells[close]))[0])
            said = _Said(verdict, _names(columns.cell(row, _TENSOR_COLUMN)))
        if said:
            is_module = bool(_MODULE_FILE.search(columns.cell(row, _FILE_COLUMN)))
            yield _evidence(said, row, columns.sha256(row), is_module=is_module)


def _is_blank(row: Row, columns: _Columns) -> bool:
    """Whether a row of the template was not filled in yet: it has neither verdict, nor time, nor tensors."""
    return all(
        columns.cell(row, column) in _BLANK
        for column in (_CLOSE_COLUMN, _WHEN_COLUMN, _TENSOR_COLUMN)
    )


def _layout_table(table: Table) -> Iterator[Evidence]:
    columns = _Columns(table)
    for row in table.rows:
        said = _layout_in(row, columns)
        if said:
            yield _evidence(said, row, columns.sha256(row))


def _layout_in(row: Row, columns: _Columns) -> _Said | None:
    """What a row states: in its layout column, in the exit code of a row on layout, or in one cell after another."""
    layout, code = columns.find(_LAYOUT_KEY), columns.find(_EXIT_COLUMN)
    if layout is None and code is None:
        return _said_in(row, _layout_said)
    cell = "" if layout is None else plain(row.cells[layout])
    if code is None:
        said = _without_hash(cell)[0]
        return None if said in _BLANK else _layout_said(columns.titles[layout or 0], said)
    is_about_layout = layout is not None or any(_LAYOUT_KEY.fullmatch(plain(c)) for c in row.cells)
    exit_code = plain(row.cells[code])
    if not is_about_layout or (cell in _BLANK and exit_code in _BLANK):
        return None
    return _layout_said("layout exit", exit_code) or _layout_said("layout check", exit_code)


def _said_in(row: Row, reader: Reader) -> _Said | None:
    """What two cells side by side state, the left one being the key."""
    cells = [plain(cell) for cell in row.cells]
    for key, value in pairwise(cells):
        if said := reader(key, _without_hash(value)[0]):
            return said
    return None
