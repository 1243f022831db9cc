"""The run worker: a small fresh process that loads built artefacts and calls them when told. Standard library only.

It never sees the source of a candidate, the golden or the ledger: only a shared object and the memory that the
supervisor made. Commands, each answered by one message:

- `load` (with the memory attached): map the memory, load an artefact under a workload's id.
- `batch`: run the kernel `n` times; answers the nanoseconds on this side's clock.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import socket
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from opratchet.lab.bounds import die_with_parent, limit_memory, pin
from opratchet.lab.channel import Channel, ChannelClosed


class Runner:
    """State of one run worker: the kernels it has loaded, by workload id."""

    def __init__(self, runtime: str) -> None:
        self.load_artifact = import_module(runtime).load
        self.calls: dict[str, Callable[[], object]] = {}
        self.memory: list[Any] = []

    def load(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Map the memory and bind the kernel to the tensors in it."""
        memory = mmap.mmap(fds[0], message["bytes"])
        os.close(fds[0])
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.memory.append(memory)
        addresses = [base + offset for offset in message["offsets"]]
        self.calls[message["workload"]] = self.load_artifact(message["artifact"], addresses)
        return {"ok": True}

    def batch(self, message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Run the kernel `n` times back to back and tell how long that took here."""
        call, count = self.calls[message["workload"]], range(message["n"])
        start = time.perf_counter_ns()
        for _ in count:
            call()
        return {"ok": True, "ns": time.perf_counter_ns() - start}

    def serve(self, channel: Channel) -> None:
        """Answer commands until the supervisor closes the channel."""
        commands = {"load": self.load, "batch": self.batch}
        while True:
            message, fds = channel.receive()
            try:
                reply = commands[message["op"]](message, fds)
            except (OSError, AttributeError, MemoryError) as error:
                reply = {"ok": False, "error": f"{type(error).__name__}: {error}"}
            channel.send(reply)


def main(arguments: list[str]) -> None:
    """Entry point: descriptor of the channel, runtime module, CPU to keep to (or -1), memory limit in bytes."""
    descriptor, runtime, cpu, memory = arguments
    die_with_parent()
    if int(cpu) >= 0:
        pin(int(cpu))
    runner = Runner(runtime)
    limit_memory(int(memory))
    try:
        runner.serve(Channel(socket.socket(fileno=int(descriptor))))
    except ChannelClosed:
        return


if __name__ == "__main__":
    main(sys.argv[1:])
