"""Takes the corpus through the gates, exactly as a run takes candidates, against an honest incumbent.

Gates 1 and 2 look at the source (`gates.static_gates`), then it is built, and the rest is `trial.take_trial`. What happens on
disk meanwhile is watched (`scene`). An exploit is *caught* when it ends as what it is, and *in vain* when nothing stops it and
nothing is gained; it is *through* when it is adopted, or has changed what it must not be able to reach.
"""

from __future__ import annotations

import copy
import hashlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from opratchet.backend.registry import BACKENDS, get_backend
from opratchet.contest import learn_noise
from opratchet.edit.source import KernelSource
from opratchet.errors import OpratchetError
from opratchet.flow.registry import FLOWS
from opratchet.gates import GateClosed, static_gates
from opratchet.integrity.entries import HOST_OF_BACKEND, HOSTS, Entry, in_place_of
from opratchet.integrity.scene import Scene
from opratchet.judge.decision import Rule
from opratchet.lab.bench import Lab
from opratchet.lab.calls import Build
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.sandbox import Sandbox
from opratchet.ledger.events import TrialFinished
from opratchet.ledger.words import Outcome
from opratchet.operator.discover import load_operator
from opratchet.session import situation_of
from opratchet.trial import take_trial

TRIALS = 120  # as many as a run may hold, so that the rule is a run's
IN_VAIN = (Outcome.NO_GAIN, Outcome.REGRESSED)
GATES = {
    Outcome.PRUNED: "legality",
    Outcome.COMPILE_FAILED: "build",
    Outcome.ACCURACY_FAILED: "accuracy",
    Outcome.CHEATED: "integrity",
    Outcome.PROFILE_INVALID: "integrity",
    Outcome.NO_GAIN: "performance",
    Outcome.REGRESSED: "performance",
}
WITHOUT_SANDBOX = "needs bubblewrap: without it, what these do can be neither undone nor seen, so they are not tried"

Tell = Callable[[str], None]


class Fate(str, Enum):
    """What became of an entry of the corpus."""

    CAUGHT = "caught"
    IN_VAIN = "in vain"
    THROUGH = "through"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOT_COVERED = "not covered"


@dataclass(frozen=True)
class Tried:
    """One entry of the corpus, taken through the gates once.

    Attributes:
        entry: The entry.
        seed: Number of the round through the corpus.
        fate: What became of it.
        outcome: Outcome of its trial; None where it was not tried.
        gate: Gate that stopped it, in a word.
        evidence: Why, in one line.
        damage: What it has changed that it must not reach.
        seconds: Wall time.
    """

    entry: Entry
    seed: int
    fate: Fate
    outcome: Outcome | None = None
    gate: str = ""
    evidence: str = ""
    damage: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def is_adopted(self) -> bool:
        """Whether a run would have adopted it."""
        return self.outcome is Outcome.ADOPTED

    @property
    def is_foreseen(self) -> bool:
        """Whether it ended as its file says."""
        return self.outcome is None or self.entry.is_twin or self.outcome in self.entry.ends


@dataclass(frozen=True)
class Options:
    """What is tried.

    Attributes:
        entries: The entries of the corpus.
        seeds: How many times all of them are tried, each time in another order.
        sandbox: What stands around the candidates.
    """

    entries: Sequence[Entry]
    sandbox: Sandbox
    seeds: int = 1


class IntegrityTest:
    """Tries the entries, one after another.

    Args:
        options: What is tried.
        tell: Told what is being done.

    """

    def __init__(self, options: Options, tell: Tell) -> None:
        self._options = options
        self._tell = tell

    def run(self) -> Iterator[Tried]:
        """Each entry as soon as it is decided.

        Raises:
            OpratchetError: the honest operator does not work here.
        """
        possible: dict[str, list[Entry]] = {}
        for entry in self._options.entries:
            if why := self._why_not(entry):
                yield Tried(entry, 0, Fate.NOT_COVERED, evidence=why)
            else:
                possible.setdefault(entry.backend, []).append(entry)
        for backend, entries in possible.items():
            yield from self._of_backend(backend, entries)

    def _why_not(self, entry: Entry) -> str:
        """Why an entry cannot be tried here; empty when it can."""
        if missing := get_backend(entry.backend).missing():
            return f"{entry.backend} needs {', '.join(need.what for need in missing)}"
        return WITHOUT_SANDBOX if needs_sandbox(entry, self._options.sandbox) else ""

    def _of_backend(self, backend: str, entries: Sequence[Entry]) -> Iterator[Tried]:
        self._tell(f"{backend}: building the honest incumbent, learning the noise")
        with Bench(backend, self._options.sandbox) as bench:
            for seed in range(self._options.seeds):
                order = list(entries)
                if self._options.seeds > 1:
                    random.Random(seed).shuffle(order)
                for number, entry in enumerate(order, start=1):
                    self._tell(f"{backend}: {number} of {len(order)}   {entry.name}")
                    yield bench.tried(entry, seed)


class Bench:
    """The honest operator of one backend, ready to be challenged. A context manager.

    Args:
        backend: Name of the backend.
        sandbox: What stands around the candidates; the one that is there, unless told otherwise.

    Raises:
        OpratchetError: it does not build, or cannot be timed.
    """

    def __init__(self, backend: str, sandbox: Sandbox | None = None) -> None:
        self._scene = Scene(HOSTS / HOST_OF_BACKEND[backend])
        self._operator = load_operator(
            self._scene.folder, known_backends=BACKENDS.keys(), known_flows=FLOWS.keys()
        )
        self._lab = Lab(self._operator, sandbox=sandbox)
        self._number = 0
        self._rule = Rule(trials=TRIALS)
        try:
            self._build_incumbent()
            self._spread = learn_noise(self._lab, self._incumbent)[1]
        except (GateClosed, WorkerFailed) as failure:
            self.close()
            raise OpratchetError(
                f"the honest operator of {backend} does not work here: {failure.reason}",
                fix=f"Run `opratchet doctor`; what {backend} needs may be incomplete.",
            ) from None

    def _build_incumbent(self) -> None:
        self._incumbent = self._lab.build(self._operator.text, self._operator.checked)
        self._built = self._on_disk()

    def _on_disk(self) -> list[str]:
        """Identity of the incumbent's artefacts as they lie on disk."""
        paths = [Path(artifact.path) for artifact in self._incumbent.artifacts.values()]
        return [hashlib.sha256(p.read_bytes()).hexdigest() if p.exists() else "" for p in paths]

    def tried(self, entry: Entry, seed: int = 0) -> Tried:
        """Take one entry through the gates."""
        start = time.monotonic()
        if needs_sandbox(entry, self._lab.sandbox):
            return Tried(entry, seed, Fate.NOT_COVERED, evidence=WITHOUT_SANDBOX)
        result = self._trial(self._candidate(entry))
        damage = tuple(self._scene.damage())
        self._renew_incumbent()
        return Tried(
            entry,
            seed,
            fate(entry, result.outcome, damage),
            result.outcome,
            GATES.get(result.outcome, "run"),
            result.reason or (f"{result.ratio.value:.2f}x" if result.ratio else ""),
            damage,
            time.monotonic() - start,
        )

    def _candidate(self, entry: Entry) -> str:
        """Source of a candidate: the operator with the entry's factory, which knows where everything lies."""
        text = in_place_of(self._operator.text, self._operator.kernel, entry.factory)
        places = {"@scene@": str(self._scene.folder), "@lab@": str(self._lab.folder)}
        for word, place in places.items():
            text = text.replace(word, place)
        return text

    def _trial(self, text: str) -> TrialFinished:
        """The gates, in their order."""
        self._number += 1
        operator = self._operator
        situation = situation_of(self._lab, KernelSource(operator.text, operator.kernel))
        refused = static_gates(situation, text, operator)
        if refused is not None:
            return TrialFinished(trial=self._number, outcome=refused[0], reason=refused[1])
        built: Build | WorkerFailed
        try:
            built = self._lab.build(text, operator.checked)
        except WorkerFailed as failure:
            built = failure
        spread = copy.deepcopy(self._spread)
        return take_trial(self._lab, self._number, self._incumbent, built, self._rule, spread)

    def _renew_incumbent(self) -> None:
        """Build the incumbent anew when its artefacts were changed on disk; a lab does not load what was."""
        if self._on_disk() != self._built:
            self._build_incumbent()

    def close(self) -> None:
        """End the lab, remove the scene."""
        self._lab.close()
        self._scene.close()

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def needs_sandbox(entry: Entry, sandbox: Sandbox) -> bool:
    """Whether an entry may only be tried in a sandbox, and there is none."""
    return entry.needs == "sandbox" and not sandbox.active


def fate(entry: Entry, outcome: Outcome, damage: Sequence[str]) -> Fate:
    """What became of an entry whose trial ended so.

    An honest kernel is refused when it is discarded; being no faster is no refusal.
    """
    judged = outcome in (Outcome.ADOPTED, *IN_VAIN)
    if entry.is_twin:
        return Fate.ACCEPTED if judged and not damage else Fate.REFUSED
    if damage or outcome is Outcome.ADOPTED:
        return Fate.THROUGH
    return Fate.IN_VAIN if judged else Fate.CAUGHT
