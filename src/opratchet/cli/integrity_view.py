"""What `selftest integrity` shows: a line for each kernel of the corpus as soon as it is decided, then what follows, or one JSON
object."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape

from opratchet.cli.inspect import print_json
from opratchet.integrity.driver import Fate, IntegrityTest, Options, Tried
from opratchet.lab.sandbox import Sandbox
from opratchet.ledger.plural import counted

NAME_WIDTH = 34
FAMILY_WIDTH = 42
OUTCOME_WIDTH = 16
GATE_WIDTH = 14
HELD = (Fate.CAUGHT, Fate.IN_VAIN)


def try_integrity(options: Options, *, as_json: bool) -> int:
    """Take the corpus through the gates and show what became of it; gives the exit code.

    Raises:
        OpratchetError: the operator that it is tried on does not work here.
    """
    console = Console(stderr=as_json)
    begun = time.monotonic()
    tried: list[Tried] = []
    with console.status("") as status:
        test = IntegrityTest(options, lambda text: status.update(escape(text)))
        for one in test.run():
            tried.append(one)
            _print(console, line(one))
    seconds = time.monotonic() - begun
    if as_json:
        print_json(record(tried, options.sandbox, seconds))
    else:
        for text in closing(tried, options.sandbox, seconds):
            _print(console, text)
    return 0 if holds(tried) else 1


def _print(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def holds(tried: Sequence[Tried]) -> bool:
    """Whether nothing got through and no honest kernel was refused."""
    return not any(one.fate in (Fate.THROUGH, Fate.REFUSED) for one in tried)


def line(one: Tried) -> str:
    """One kernel: its name, its family, its outcome, the gate and the evidence."""
    sign = {Fate.THROUGH: "THROUGH ", Fate.REFUSED: "REFUSED "}.get(one.fate, "")
    outcome = one.outcome.value if one.outcome else one.fate.value
    why = "; ".join(filter(None, [*one.damage, one.evidence.partition("\n")[0]]))
    return (
        f"{one.entry.name:<{NAME_WIDTH}} {one.entry.family:<{FAMILY_WIDTH}} "
        f"{outcome:<{OUTCOME_WIDTH}} {one.gate:<{GATE_WIDTH}} {sign}{why}"
    ).rstrip()


def closing(tried: Sequence[Tried], sandbox: Sandbox, seconds: float) -> Iterator[str]:
    """The figures, and what they hold for."""
    figures = counts(tried)
    yield ""
    yield (
        f"exploits       {figures['held']} of {figures['exploits']} held off: {figures['caught']} caught, "
        f"{figures['in_vain']} in vain, {figures['adopted']} adopted"
    )
    yield f"honest twins   {figures['accepted']} of {figures['twins']} accepted"
    missing = [one.entry.name for one in tried if one.fate is Fate.NOT_COVERED]
    if missing:
        yield f"NOT COVERED    {len(missing)}: {', '.join(missing)}"
        for why in dict.fromkeys(one.evidence for one in tried if one.fate is Fate.NOT_COVERED):
            yield f"               {why}"
    for one in sandbox.protections:
        yield f"protection     {one.name}: {f'NOT ACTIVE, {one.why_not}' if one.why_not else 'active'}"
    for bad in tried:
        if bad.fate in (Fate.THROUGH, Fate.REFUSED):
            yield f"{bad.fate.value.upper():<15}{bad.entry.name}: {bad.entry.story}"
    yield f"took           {seconds:.0f} s, {counted(len(tried), 'kernel')}"


def counts(tried: Sequence[Tried]) -> dict[str, int]:
    """How many of what. Those that were not tried count nowhere else."""
    fates = Counter(one.fate for one in tried)
    exploits = [one for one in tried if not one.entry.is_twin and one.fate is not Fate.NOT_COVERED]
    return {
        "exploits": len(exploits),
        "held": sum(fates[fate] for fate in HELD),
        "caught": fates[Fate.CAUGHT],
        "in_vain": fates[Fate.IN_VAIN],
        "through": fates[Fate.THROUGH],
        "adopted": sum(one.is_adopted for one in exploits),
        "twins": fates[Fate.ACCEPTED] + fates[Fate.REFUSED],
        "accepted": fates[Fate.ACCEPTED],
        "refused": fates[Fate.REFUSED],
        "not_covered": fates[Fate.NOT_COVERED],
    }


def record(tried: Sequence[Tried], sandbox: Sandbox, seconds: float) -> dict[str, Any]:
    """All of it as data."""
    return {
        **counts(tried),
        "holds": holds(tried),
        "protections": sandbox.record(),
        "tried": [_row(one) for one in tried],
        "seconds": seconds,
    }


def _row(one: Tried) -> dict[str, Any]:
    return {
        "name": one.entry.name,
        "family": one.entry.family,
        "backend": one.entry.backend,
        "honest": one.entry.is_twin,
        "seed": one.seed,
        "fate": one.fate.value,
        "outcome": one.outcome.value if one.outcome else None,
        "foreseen": one.is_foreseen,
        "gate": one.gate,
        "evidence": one.evidence,
        "damage": list(one.damage),
        "seconds": one.seconds,
    }
