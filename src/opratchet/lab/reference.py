"""The reference: a trusted worker that runs the golden of the original source, and nothing of any candidate."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from opratchet.backend.base import TensorSpec
from opratchet.errors import BadInput
from opratchet.lab.builders import Nursery
from opratchet.lab.channel import ChannelClosed
from opratchet.lab.failure import WorkerFailed
from opratchet.lab.limits import Limits
from opratchet.lab.tensors import Array, SharedTensors
from opratchet.ledger.words import Outcome
from opratchet.operator.model import Operator, Workload


def split_tensors(
    operator: Operator, tensors: Sequence[TensorSpec]
) -> tuple[list[TensorSpec], list[TensorSpec]]:
    """Inputs and outputs of a kernel: its leading tensors that the golden takes, and the rest.

    Raises:
        BadInput: no leading tensor is a parameter of the golden, or nothing is left as an output.
    """
    taken = {name.lower() for name in operator.golden_parameters}
    count = 0
    while count < len(tensors) and tensors[count].name.lower() in taken:
        count += 1
    if count == 0 or count == len(tensors):
        names = ", ".join(spec.name for spec in tensors)
        raise BadInput(
            f"the kernel's tensors ({names}) do not fit the golden's parameters "
            f"({', '.join(operator.golden_parameters)})",
            where=str(operator.source),
            fix="Give the golden one parameter for each input tensor, with the same name; outputs come last.",
        )
    return list(tensors[:count]), list(tensors[count:])


class ReferenceLost(Exception):
    """The golden's worker is gone: killed, e.g. because the system ran out of memory, or crashed by the golden.

    Attributes:
        refusal: What to tell when it happens again.
    """

    def __init__(self, refusal: BadInput) -> None:
        super().__init__(str(refusal))
        self.refusal = refusal


class Reference:
    """The golden of one operator, computed in a worker of its own.

    Raises:
        BadInput: the original source cannot be run, or has no golden.
        ReferenceLost: the worker is gone.
    """

    def __init__(self, nursery: Nursery, operator: Operator, limits: Limits, folder: Path) -> None:
        self._operator = operator
        self._limits = limits
        home = Path(tempfile.mkdtemp(prefix="reference-", dir=folder))
        source = home / (operator.golden_file or operator.source).name
        text = operator.golden_text or operator.text
        source.write_text(text, encoding="utf-8", newline="")
        job = {"source": str(source), "golden": operator.golden, "memory": limits.build_bytes}
        self._worker = nursery.fork("reference", home, job)
        self.alive = True
        reply = self._receive()
        if "error" in reply:
            raise self._refused(reply["error"])

    def expected(
        self, workload: Workload, specs: Sequence[TensorSpec], inputs: Sequence[Array]
    ) -> list[Array]:
        """The golden's outputs for these inputs.

        Args:
            workload: The workload.
            specs: The kernel's tensors in the order of its signature; the leading ones are the inputs.
            inputs: Their values.

        Raises:
            BadInput: the golden fails on these inputs.
            ReferenceLost: the worker is gone; with another one it may go.
        """
        given = SharedTensors(specs[: len(inputs)])
        outputs = SharedTensors(specs[len(inputs) :])
        for index, values in enumerate(inputs):
            given.array(index)[...] = values
        try:
            self._send(self._request(workload, given, outputs), [given.fd, outputs.fd])
            reply = self._receive()
            results = [outputs.array(index).copy() for index in range(len(outputs.slots))]
        finally:
            given.close()
            outputs.close()
        if "error" in reply:
            raise self._refused(f"workload {workload.id}: {reply['error']}")
        return results

    def _request(
        self, workload: Workload, given: SharedTensors, outputs: SharedTensors
    ) -> dict[str, object]:
        by_name = {slot.spec.name.lower(): slot for slot in given.slots}
        order = [n.lower() for n in self._operator.golden_parameters if n.lower() in by_name]
        offered = {**workload.shape, **workload.params, "dtype": workload.dtype}
        names = [n for n in self._operator.golden_parameters if n.lower() not in by_name]
        return {
            "inputs": [by_name[name].to_json() for name in order],
            "outputs": [slot.to_json() for slot in outputs.slots],
            "bytes": [given.size, outputs.size],
            "keywords": {name: offered[name] for name in names if name in offered},
        }

    def _send(self, request: dict[str, object], fds: Sequence[int]) -> None:
        try:
            self._worker.channel.send(request, fds)
        except ChannelClosed:
            self.alive = False
            raise ReferenceLost(self._refused("its process ended")) from None

    def _receive(self) -> dict[str, object]:
        try:
            return self._worker.receive(self._limits.golden_seconds)
        except WorkerFailed as failure:
            self.alive = False
            last = failure.log.strip().splitlines()[-1:] or [""]
            refusal = self._refused(f"{failure.reason} {last[0]}")
            if failure.outcome is Outcome.TIMEOUT:
                raise refusal from None
            raise ReferenceLost(refusal) from None

    def _refused(self, text: object) -> BadInput:
        return BadInput(
            f"the golden `{self._operator.golden}` cannot be used: {text}",
            where=str(self._operator.golden_file or self._operator.source),
            fix="The golden must run on the workload's inputs and return one tensor for each output.",
        )
