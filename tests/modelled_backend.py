"""The fake backend as one that models its target: `time = "120"` is what its model gives, in microseconds.

Further directives: `again = "121"` is what the model gives when it runs once more, beside the interpreted call; `unsteady = "yes"`
has each build give another figure; `figure = "none"` leaves none.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from opratchet.backend.base import Artifact
from opratchet.errors import BadInput
from opratchet.ledger.words import MetricKind
from tests.fake_backend import FakeBackend

NAME = "tests.modelled_backend:ModelledBackend"


class ModelledBackend(FakeBackend):
    """See the module."""

    name = NAME
    metric_kind = MetricKind.SIMULATED
    runtime = "tests.modelled_runtime"
    waits = False

    def behaviour(self, text: str) -> dict[str, str]:
        said = super().behaviour(text)
        if "unsteady" in said:
            said["time"] = str(int.from_bytes(os.urandom(4), "little") + 1)
        return said

    def modelled_us(self, artifact: Artifact) -> float:
        said = json.loads(Path(artifact.path).read_text())
        if "figure" in said:
            raise BadInput("the file holds no figure")
        size = artifact.tensors[0].shape[0]
        return float(said.get(f"time_{size}", said["time"]))
