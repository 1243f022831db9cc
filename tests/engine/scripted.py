"""Runs of the real engine and lab on the fake backend, with a proposer that reads from a script."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from opratchet import session
from opratchet.edit.model import Edit, Situation
from opratchet.flow.model import StopRules
from opratchet.flow.registry import get_flow
from opratchet.lab.bench import Lab
from opratchet.lab.limits import Limits
from opratchet.ledger.events import Line
from opratchet.ledger.state import RunState
from opratchet.ledger.store import Ledger
from opratchet.ledger.words import TargetRecord, WorkloadKind
from opratchet.operator.model import Operator, Tolerance, Workload
from opratchet.propose.base import Answer, Point, Proposer
from opratchet.run import Clock, Run
from tests.fake_backend import NAME

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''"""Doubles a vector."""


def golden_double(X):
    return X * 2


def double(N, dtype="float32"):
    time = "400"
    return N
'''
LIMITS = Limits(build_seconds=2.0, call_seconds=2.0)
PATIENT = Limits(
    build_seconds=60.0, call_seconds=60.0
)  # for what hangs never, on a machine however busy


def candidate(*directives: str, time: int = 400) -> str:
    """The source with other directives, e.g. `candidate("build: fail")`."""
    pairs = [text.split(": ") for text in (f"time: {time}", *directives)]
    lines = [f'    {key} = "{value}"\n' for key, value in pairs]
    return SOURCE.replace('    time = "400"\n', "".join(lines))


def edit(name: str, *directives: str, time: int = 400) -> Edit:
    """An edit to that source."""
    return Edit("scripted", name, name, candidate(*directives, time=time))


class Script(Proposer):
    """Offers the points of a list, one after another; what was tried in the same state is left out."""

    def __init__(self, points: Sequence[Sequence[Edit]]) -> None:
        self.points = points

    def ask(self, state: RunState, situation: Situation) -> Answer:
        number = len(state.finished_rounds)
        if number >= len(self.points):
            return Answer(None)
        return Answer(Point("block_size", "the script says so", self.points[number], ["docs/x.md"]))

    def edits(self, state: RunState, situation: Situation, row: str) -> Sequence[Edit]:
        return [edit for point in self.points for edit in point]


def make_operator(
    folder: Path,
    text: str = SOURCE,
    target: TargetRecord | None = None,
    workloads: int = 1,
    backend: str = NAME,
) -> Operator:
    """The fake operator in a folder."""
    root = folder / "examples" / "toy" / "double"
    root.mkdir(parents=True, exist_ok=True)
    source = root / "double.py"
    source.write_text(text)
    tuned = [Workload(f"n{64 * k}", {"N": 64 * k}) for k in range(1, workloads + 1)]
    smoke = Workload("n7", {"N": 7}, kind=WorkloadKind.SMOKE)
    return Operator(
        name="double",
        project="toy",
        root=root,
        source=source,
        text=text,
        kernel="double",
        golden="golden_double",
        workloads=(*tuned, smoke),
        tolerances={"float32": Tolerance(1e-4, 1e-4)},
        inputs={},
        backend=backend,
        flow="tilelang",
        target=target,
    )


@dataclass
class Asked:
    """A stop switch that a test can turn on after some trials."""

    after: int = 10**9
    seen: list[str] = field(default_factory=list)

    def listen(self, line: Line, _state: RunState) -> None:
        self.seen.append(line.event.type)

    def __call__(self) -> bool:
        return self.seen.count("trial_finished") + self.seen.count("trial_passed") >= self.after


@contextmanager
def lab_for(operator: Operator, limits: Limits = LIMITS) -> Iterator[Lab]:
    """A lab whose workers can import the tests."""
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = str(ROOT)
    try:
        with Lab(operator, limits) as lab:
            yield lab
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def start(lab: Lab, folder: Path, rules: StopRules) -> Ledger:
    """Gate and baseline of a new run."""
    options = session.Options(rules)
    return session.begin(lab, folder, options, Clock(), lambda _text: None)


def assemble(
    lab: Lab, ledger: Ledger, points: Sequence[Sequence[Edit]], rules: StopRules, asked: Asked
) -> Run:
    """The engine's run with a scripted proposer."""
    options = session.Options(rules)
    return Run(
        lab=lab,
        ledger=ledger,
        flow=get_flow("tilelang"),
        proposer=Script(points),
        rules=rules,
        rule=options.rule,
        listener=asked.listen,
        progress=lambda _text: None,
        stop_asked=asked,
        clock=Clock(),
        situation=partial(session.situation_of, lab),
    )
