"""The run worker: a small fresh process that loads built artefacts and calls them when told. Standard library only.

It never sees the source of a candidate, the golden or the ledger: only a shared object and the memory that the
supervisor made. Commands, each answered by one message:

- `load` (with the memory attached): map the memory, load an artefact under a workload's id, bound to every set of tensors.
- `batch`: run the kernel `n` times, on one set after another; answers the nanoseconds on this side's clock.

Each answer repeats the nonce of its command. Nothing in here is trusted once a candidate is loaded: it shares the process.
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
from opratchet.lab.flags import DONE, Flags


class Runner:
    """State of one run worker: the kernels it has loaded, by workload id."""

    def __init__(self, runtime: str, flags: Flags) -> None:
        self.flags = flags
        self.load_artifact = import_module(runtime).load
        self.calls: dict[str, list[Callable[[], object]]] = {}
        self.memory: list[Any] = []

    def load(self, message: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Map the memory and bind the kernel to each set of tensors in it."""
        memory = mmap.mmap(fds[0], message["bytes"])
        os.close(fds[0])
        base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        self.memory.append(memory)
        self.calls[message["workload"]] = [
            self.load_artifact(
                message["artifact"], [base + of_set + offset for offset in message["offsets"]]
            )
            for of_set in range(0, message["bytes"], message["stride"])
        ]
        return {"ok": True}

    def batch(self, message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Run the kernel `n` times back to back and tell how long that took here."""
        n, calls = message["n"], self.calls.get(message["workload"], [])
        order = calls[:n] if n <= len(calls) else [calls[i % len(calls)] for i in range(n)]
        clock = time.perf_counter_ns
        words, number = self.flags.wait_for_start()
        start = clock()
        try:
            for call in order:
                call()
        finally:
            words[DONE] = number  # nothing before it: what runs here is timed, with cold caches
        return {"ok": True, "ns": clock() - start}

    def hello(self, _message: dict[str, Any], _fds: list[int]) -> dict[str, Any]:
        """Nothing but an answer: the process has started."""
        return {"ok": True}

    def serve(self, channel: Channel) -> None:
        """Answer commands until the supervisor closes the channel."""
        commands = {"hello": self.hello, "load": self.load, "batch": self.batch}
        while True:
            message, fds = channel.receive()
            try:
                reply = commands[message["op"]](message, fds)
            except Exception as error:  # whatever a kernel raises is the answer
                said = f"{type(error).__name__}: {error}"
                reply = {"ok": False, "error": said, "outcome": getattr(error, "outcome", "")}
            channel.send({**reply, "nonce": message.get("nonce")})


def main(arguments: list[str]) -> None:
    """Entry point: descriptors of the channel and of the flags, runtime module, CPU to keep to (or -1), memory in bytes."""
    descriptor, flags, runtime, cpu, memory = arguments
    die_with_parent()
    if int(cpu) >= 0:
        pin(int(cpu))
    runner = Runner(runtime, Flags(int(flags)))
    limit_memory(int(memory))
    try:
        runner.serve(Channel(socket.socket(fileno=int(descriptor))))
    except ChannelClosed:
        return


if __name__ == "__main__":
    main(sys.argv[1:])
