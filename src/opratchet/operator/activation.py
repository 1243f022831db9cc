"""The activation gate of the PyPTO procedure: tuning begins only when accuracy is proven and frozen.

Both proofs have to be in the operator's MEMORY.md: the E2E tensor compare with `all_close: true` for every output, and
the layout check with exit 0. What was written last counts, as rows are appended. A proof of another version of the
implementation is none. Here only the text is read; whether it is true shows when `check --prove` makes both checks
again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from opratchet.operator.memory import Evidence, Memory, compare_evidence, layout_evidence

Proof = Literal["compare", "layout"]
Why = Literal["absent", "false", "stale", "unreadable"]
Remark = Literal["unbound", "module", "others"]
Language = Literal["zh", "en"]

FOLDER = "custom/<op>"
PROVE = "opratchet check --prove"

_WHAT: Mapping[Language, Mapping[Proof, str]] = {
    "zh": {
        "compare": "E2E tensor compare（{output}）all_close: true",
        "layout": "layout 检查 exit 0",
    },
    "en": {
        "compare": "E2E tensor compare of {output}, all_close: true",
        "layout": "layout check, exit 0",
    },
}
_ALL = {"zh": "所有输出", "en": "all outputs"}
_WHY: Mapping[Language, Mapping[Why, str]] = {
    "zh": {
        "absent": "没有记录",
        "false": "第 {line} 行记录为未通过",
        "stale": "第 {line} 行是实现的另一个版本的证据，已失效",
        "unreadable": "第 {line} 行看不出是否通过，不算证据",
    },
    "en": {
        "absent": "nothing is on record",
        "false": "line {line} says that it failed",
        "stale": "line {line} speaks of another version of the implementation",
        "unreadable": "line {line} says neither yes nor no, which is no proof",
    },
}
_FIX: Mapping[Language, Mapping[Why, str]] = {
    "zh": {
        "absent": "运行 `{prove}`，执行检查并追加证据",
        "false": "先修复实现，再运行 `{prove}`",
        "stale": "对当前版本重新运行 `{prove}`",
        "unreadable": "把该行写成 `all_close: true` 或 `exit 0`，或运行 `{prove}`",
    },
    "en": {
        "absent": "Run `{prove}`: it makes the check and appends what it finds.",
        "false": "Mend the implementation, then run `{prove}`.",
        "stale": "Run `{prove}` for the version that is there now.",
        "unreadable": "Write `all_close: true` or `exit 0` on that line, or run `{prove}`.",
    },
}
_REMARK: Mapping[Language, Mapping[Remark, str]] = {
    "zh": {
        "unbound": "第 {line} 行没有实现的哈希：予以采纳，但未与当前版本绑定",
        "module": "第 {line} 行只是一个模块的比对，不算整个算子的证据",
        "others": "第 {line} 行比对的是 {names}，不含缺少证据的输出",
    },
    "en": {
        "unbound": "line {line} carries no hash of the implementation: accepted, but not bound to this version",
        "module": "line {line} compares a module, not the whole operator",
        "others": "line {line} compares {names}, and none of the outputs that lack a proof",
    },
}
_BLOCK: Mapping[Language, tuple[str, str, str]] = {
    "zh": (
        "激活检查未通过：停止，不加载任何 tune-* 阶段，控制权交还 pypto-op-orchestrator。",
        "{folder}/MEMORY.md 中缺少的证据：",
        "补齐两项证据的命令：{prove}",
    ),
    "en": (
        "Activation refused: no tune-* stage is loaded, control goes back to pypto-op-orchestrator.",
        "Proofs that {folder}/MEMORY.md lacks:",
        "The command that makes both proofs: {prove}",
    ),
}


@dataclass(frozen=True)
class Missing:
    """A proof that is not there.

    Attributes:
        proof: Which of the two.
        output: The output that is not proven; empty for the layout check, and where no outputs are known.
        why: `absent`; or, of the last statement: `false`, `stale` (of another version) or `unreadable`.
        line: Its line; 0 when absent.
    """

    proof: Proof
    output: str
    why: Why
    line: int

    @property
    def what(self) -> str:
        """Which proof is missing, in English."""
        return self.what_in("en")

    @property
    def fix(self) -> str:
        """What to do about it, in English."""
        return self.fix_in("en")

    def what_in(self, language: Language) -> str:
        """Which proof is missing."""
        output = f"`{self.output}`" if self.output else _ALL[language]
        return _WHAT[language][self.proof].format(output=output)

    def why_in(self, language: Language) -> str:
        """Why what is there does not count."""
        return _WHY[language][self.why].format(line=self.line)

    def fix_in(self, language: Language, folder: str = FOLDER) -> str:
        """What to do about it."""
        return _FIX[language][self.why].format(prove=f"{PROVE} {folder}")


@dataclass(frozen=True)
class Note:
    """Something about the evidence that a reader should know; `str()` says it in English."""

    remark: Remark
    line: int
    names: tuple[str, ...] = ()

    def words(self, language: Language) -> str:
        """The note as a sentence."""
        return _REMARK[language][self.remark].format(line=self.line, names=", ".join(self.names))

    def __str__(self) -> str:
        return self.words("en")


@dataclass(frozen=True)
class Activation:
    """Whether tuning may begin.

    Attributes:
        missing: The proofs that are not there, the tensor compare first.
        notes: What else there is to know.
    """

    missing: tuple[Missing, ...]
    notes: tuple[Note, ...]

    @property
    def ok(self) -> bool:
        """Both proofs are there."""
        return not self.missing

    def block(self, language: Language = "zh", folder: str = FOLDER) -> str:
        """What is handed back to the orchestrator; empty when nothing is missing.

        Args:
            language: `zh` or `en`.
            folder: The operator's folder, for the command.
        """
        if self.ok:
            return ""
        head, listed, command = _BLOCK[language]
        colon = "：" if language == "zh" else ": "
        items = [
            f"- {one.what_in(language)}{colon}{one.why_in(language)}\n    {one.fix_in(language, folder)}"
            for one in self.missing
        ]
        notes = [f"- {note.words(language)}" for note in self.notes]
        end = command.format(prove=f"{PROVE} {folder}")
        return "\n".join([head, listed.format(folder=folder), *items, *notes, end])


def activation(memory: Memory, outputs: Sequence[str], impl_sha256: str) -> Activation:
    """Look for both proofs.

    Args:
        memory: The operator's MEMORY.md.
        outputs: Names of all outputs; without any, only what speaks of all outputs counts.
        impl_sha256: Hash of the implementation as it is now, 64 hex digits.
    """
    version = impl_sha256.lower()
    compared, laid_out = compare_evidence(memory), layout_evidence(memory)
    whole = [evidence for evidence in compared if not evidence.is_module]
    proofs: list[tuple[Proof, str, Evidence | None]] = [
        ("compare", output, _last(whole, output)) for output in outputs or [""]
    ]
    proofs.append(("layout", "", _last(laid_out, "")))
    missing = tuple(
        Missing(proof, output, why, evidence.line if evidence else 0)
        for proof, output, evidence in proofs
        if (why := _flaw(evidence, version))
    )
    lines = [one.line for _, _, one in proofs if one and not one.sha256 and not _flaw(one, version)]
    notes = [Note("unbound", line) for line in dict.fromkeys(lines)]
    if any(one.proof == "compare" and one.why == "absent" for one in missing):
        notes += _passed_over(compared, outputs)
    return Activation(missing, tuple(notes))


def _last(found: Sequence[Evidence], output: str) -> Evidence | None:
    """The last statement that covers an output."""
    covering = [
        evidence for evidence in found if not evidence.outputs or output in evidence.outputs
    ]
    return covering[-1] if covering else None


def _flaw(evidence: Evidence | None, version: str) -> Why | None:
    """Why a statement proves nothing about this version; None when it does."""
    if evidence is None:
        return "absent"
    if evidence.sha256 and not version.startswith(evidence.sha256):
        return "stale"
    if evidence.passed is None:
        return "unreadable"
    return None if evidence.passed else "false"


def _passed_over(compared: Sequence[Evidence], outputs: Sequence[str]) -> Iterator[Note]:
    """The last statement that did not count: because it is about a module, or about other tensors."""
    for evidence in reversed(compared):
        if evidence.is_module:
            yield Note("module", evidence.line)
        elif evidence.outputs and not set(evidence.outputs) & set(outputs):
            yield Note("others", evidence.line, evidence.outputs)
        else:
            continue
        return
