"""What `selftest noise` shows: while it runs one status line, then a table and what follows from it, or one JSON object."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from statistics import median
from typing import Any

from rich.console import Console
from rich.markup import escape

from opratchet.cli.inspect import print_json
from opratchet.errors import UserStopped
from opratchet.judge.decision import TOTAL
from opratchet.judge.power import POWER, ToldApart, share_interval
from opratchet.ledger.plural import counted
from opratchet.ledger.remarks import remarks
from opratchet.ledger.words import MetricKind
from opratchet.profile.machine import read_machine
from opratchet.selftest import EFFECTS, Findings, Options, SelfTest, Tried, by_effect, label

USER_STOP_EXIT = 5
UNITS = {"compute": "SHA-256 blocks", "memory": "cache lines read"}
HEAD = ("planted", "comparisons", "adopted", "share, 95 % interval", "seen", "pairs", "bouts", "s")
WIDTHS = (22, 12, 8, 21, 8, 6, 6, 6)


def try_noise(options: Options, *, as_json: bool) -> int:
    """Run the self-test and show what was found; gives the exit code.

    Raises:
        UserStopped: Ctrl-C before the noise was known.
        OpratchetError: a worker failed.
    """
    console = Console(stderr=as_json)
    with _status(console, options) as tell, SelfTest(options, tell) as test:
        try:
            test.run()
        except KeyboardInterrupt:
            if test.findings.spread is None:
                raise UserStopped("stopped before anything was compared") from None
    if as_json:
        print_json(record(test.findings))
    else:
        for line in lines(test.findings):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    return 0 if test.findings.complete else USER_STOP_EXIT


@contextmanager
def _status(console: Console, options: Options) -> Iterator[Callable[[str], None]]:
    """A status line on a terminal, nothing elsewhere."""
    if not console.is_terminal:
        yield lambda _text: None
        return
    begun = time.monotonic()
    with console.status("") as status:

        def tell(text: str) -> None:
            left = max(0.0, options.seconds - (time.monotonic() - begun))
            status.update(escape(f"{text}   about {left:.0f} s left"))

        yield tell


def record(found: Findings) -> dict[str, Any]:
    """All of it as data. Shares are fractions of 1, deviations standard deviations of log ratios."""
    rule, machine, apart = found.options.rule, found.machine, found.told_apart
    return {
        "metric_kind": MetricKind.MEASURED.value,
        "machine": str(read_machine()),
        "kind": found.options.kind,
        "units": found.units,
        "call_us": found.call_us,
        "seed": found.options.seed,
        "seconds": found.seconds,
        "complete": found.complete,
        "rule": {**asdict(rule), "confidence": rule.confidence},
        "noise": {"pair": found.pair_noise, "process": _process_noise(found)},
        "comparisons": [_row(effect, tried) for effect, tried in by_effect(found.tried).items()],
        "false_adoption": _share(found.not_faster),
        "told_apart": None if apart is None else {**asdict(apart), "power": POWER},
        "conditions": None if machine is None else machine.model_dump(mode="json"),
        "remarks": [] if machine is None else remarks(machine),
        "summary": " ".join(verdict(found)),
    }


def _row(effect: float, tried: Sequence[Tried]) -> dict[str, Any]:
    """The comparisons of one effect; medians are None where there were none."""

    def middle(name: str) -> float | None:
        return median(getattr(one, name) for one in tried) if tried else None

    return {
        "planted": label(effect),
        "effect": effect,
        **_share(tried),
        "verdicts": [one.verdict.value for one in tried],
        **{name: middle(name) for name in ("ratio", "pairs", "bouts", "seconds")},
    }


def _share(tried: Sequence[Tried]) -> dict[str, Any]:
    """How many were adopted, with the interval of the share."""
    adopted = sum(one.adopted for one in tried)
    low, high = share_interval(adopted, len(tried))
    share = adopted / len(tried) if tried else None
    return {
        "comparisons": len(tried),
        "adopted": adopted,
        "share": share,
        "low": low,
        "high": high,
    }


def _process_noise(found: Findings) -> float:
    """What one fresh process varies by: half the variance of a pair of them."""
    return math.sqrt(found.spread.variance(TOTAL) / 2) if found.spread else 0.0


def lines(found: Findings) -> Iterator[str]:
    """All of it for people."""
    work = f"{found.units} {UNITS[found.options.kind]}, {found.call_us:.0f} us a call"
    yield f"selftest noise   {found.options.kind}: {work}   measured: {read_machine()}"
    yield f"noise            {_noise_text(found)}"
    yield ""
    yield _columns(HEAD)
    for effect, tried in by_effect(found.tried).items():
        yield _columns(_cells(_row(effect, tried)))
    yield ""
    yield f"false adoption   {_share_text(found.not_faster)} of what was no faster"
    for index, sentence in enumerate(verdict(found)):
        yield f"{'' if index else 'told apart':<17}{sentence}"
    for effect in sorted(e for e in EFFECTS if 0.0 < e <= found.options.rule.minimum_effect):
        yield f"note             {_edge(effect, found.options.rule.minimum_effect)}"
    for remark in remarks(found.machine) if found.machine else ():
        yield f"remark           {remark}"
    how = "" if found.complete else ", stopped by the user"
    yield f"took             {found.seconds:.0f} s, {counted(len(found.tried), 'comparison')}{how}"


def _edge(effect: float, minimum: float) -> str:
    """Why a gain that was planted is not found, or not always, however quiet the machine is."""
    if effect < minimum:
        return f"a gain of {100 * effect:g} % is below the minimum effect, so it is not meant to be adopted"
    return f"{100 * effect:g} % is the minimum effect: such a gain is adopted half the time at best"


def _noise_text(found: Findings) -> str:
    """Standard deviations of a pair and of a process."""
    pair = f"one pair {100 * found.pair_noise:.2f} %"
    process = _process_noise(found)
    if process == 0.0:
        return f"{pair} (standard deviation); fresh processes add nothing that can be seen"
    return f"{pair}, a fresh process {100 * process:.2f} % (standard deviations)"


def _columns(cells: Sequence[str]) -> str:
    first, *others = (
        cell.ljust(width) if index == 0 else cell.rjust(width)
        for index, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    )
    return "  ".join([first, *others])


def _cells(row: dict[str, Any]) -> list[str]:
    counts = [row["planted"], str(row["comparisons"]), str(row["adopted"])]
    if not row["comparisons"]:
        return [*counts, "", "", "", "", ""]
    share = f"{100 * row['share']:.0f} % [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
    cost = [f"{row['pairs']:.0f}", f"{row['bouts']:.0f}", f"{row['seconds']:.1f}"]
    return [*counts, share, f"{row['ratio']:.3f}x", *cost]


def _share_text(tried: Sequence[Tried]) -> str:
    share = _share(tried)
    if not tried:
        return "0 of 0"
    interval = f"[{100 * share['low']:.1f}, {100 * share['high']:.1f}]"
    return (
        f"{share['adopted']} of {share['comparisons']}, {100 * share['share']:.1f} % {interval} %,"
    )


def verdict(found: Findings) -> list[str]:
    """What follows, in sentences."""
    apart = found.told_apart
    if apart is None:
        return []
    return [_said(found, apart), *_checked(found, apart), *_broken(found)]


def _said(found: Findings, apart: ToldApart) -> str:
    """What can be told apart here, rounded to the careful side."""
    gain = math.ceil(1000 * min(apart.gain, 1.0)) / 10
    if apart.gain <= found.options.rule.worthwhile:
        return (
            f"here a gain of {gain:.1f} % or more is found nine times out of ten "
            f"in {apart.seconds:.1f} s."
        )
    tried = found.not_faster
    clean = tried and not any(one.adopted for one in tried)
    nothing = "nothing false was adopted, but " if clean else ""
    if apart.gain > 1.0:
        return (
            "too little is known of this machine's noise, or it is too large, to tell even a twofold gain: "
            f"{nothing}gains will be missed. Try again for longer, or on a quieter machine."
        )
    return (
        f"changes under {gain:.1f} % cannot be told from noise here: "
        f"{nothing}small gains will be missed. A quieter machine finds more."
    )


def _checked(found: Findings, apart: ToldApart) -> Iterator[str]:
    """What was seen of that: the gains that were planted and are as large, or larger."""
    large = [one for one in found.tried if one.effect >= apart.gain]
    if not large:
        return
    share = _share(large)
    yield f"Of the planted gains of that size or more, {share['adopted']} of {len(large)} were found."
    if share["high"] < POWER:
        yield "That is fewer than the noise explains: the machine's load changes while it is timed."


def _broken(found: Findings) -> Iterator[str]:
    """An adoption that was false. With so few comparisons, the rule allows hardly any."""
    false = sum(one.adopted for one in found.not_faster)
    rule = found.options.rule
    if false:
        yield (
            f"{false} false: the rule allows about one in {rule.trials / rule.run_error:.0f} "
            "comparisons, so this machine does something that it does not foresee. "
            "Do not trust close calls here, and please report the output of --json."
        )
