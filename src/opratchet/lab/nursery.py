"""The nursery: a process that has imported the backend's heavy modules and forks a worker for each job.

Importing TileLang and torch takes seconds; forking takes milliseconds. The nursery itself never runs anything of a
candidate or of the user: it imports, forks, kills and waits. There are two of them, so that the golden's process and those
of candidates have nothing in common: one outside of any sandbox for the golden, one inside for candidates. In there it is
the first process, which no other one in the sandbox can kill or stop.

Each worker is the leader of its own session, and in a sandbox that allows it of namespaces of its own (`lab.apart`).
Orphans of workers become children of the nursery, which kills what it did not fork itself whenever a worker is ended.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from importlib import import_module
from typing import Any

from opratchet.lab.apart import live_apart
from opratchet.lab.bounds import (
    adopt_orphans,
    children_of,
    collect,
    die_with_parent,
    limit_counts,
    limit_memory,
    limit_stack,
    outlive_parent,
)
from opratchet.lab.channel import Channel, ChannelClosed

PATIENCE = 5.0  # seconds for a killed process to be gone
LOST = -signal.SIGKILL


class Workers:
    """The workers that this nursery has forked and that are not ended yet."""

    def __init__(self) -> None:
        self._alive: set[int] = set()

    def fork(self, channel: Channel, message: dict[str, Any], fds: list[int]) -> int:
        """Start a worker, with its channel and its output; gives its process id."""
        pid = os.fork()
        if pid == 0:
            channel.close()
            _become_worker(message, fds)
        self._alive.add(pid)
        for descriptor in fds:
            os.close(descriptor)
        return pid

    def end(self, pid: int, grace: float) -> int:
        """Kill a worker with its session and whatever it has left; gives its exit code, negative for a signal.

        Args:
            pid: The worker.
            grace: Seconds in which it may end by itself before.
        """
        if pid not in self._alive:
            return 0
        status = collect(pid, grace) if grace else None
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(OSError):
                kill(pid, signal.SIGKILL)
        status = collect(pid, PATIENCE) if status is None else status
        self._alive.discard(pid)
        self._end_strays()
        return LOST if status is None else status

    def end_all(self) -> None:
        """The supervisor is gone, perhaps killed: nothing may outlive it, not even a compiler that hangs."""
        self._alive.clear()
        self._end_strays()

    def _end_strays(self) -> None:
        while strays := set(children_of(os.getpid())) - self._alive:
            for pid in strays:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            if any(collect(pid, PATIENCE) is None for pid in strays):
                return


def serve(channel: Channel) -> None:
    """Answer `fork` (with the worker's channel and its output attached) and `end` until the supervisor is gone."""
    workers = Workers()
    try:
        while True:
            message, fds = channel.receive()
            if message["op"] == "fork":
                channel.send({"pid": workers.fork(channel, message, fds)})
            elif message["op"] == "end":
                channel.send({"status": workers.end(message["pid"], message["grace"])})
    finally:
        workers.end_all()


def _become_worker(message: dict[str, Any], fds: list[int]) -> None:
    """Run one job in the forked child and leave without returning to the nursery's loop."""
    code = 1
    try:
        os.setsid()
        die_with_parent()
        if message["jobs"]:
            live_apart(message["folder"], message["jobs"], message["scratch"], fds)
        sock, log = fds
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        os.chdir(message["folder"])
        os.environ["TMPDIR"] = message["folder"]
        limit_memory(message["memory"])
        limit_counts(os.getpid(), message["file_bytes"], message["processes"])
        from opratchet.lab.worker import ROLES

        ROLES[message["role"]](Channel(socket.socket(fileno=sock)), message)
        code = 0
    except ChannelClosed:
        code = 0
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def main(arguments: list[str]) -> None:
    """Entry point: descriptor of the channel, then the modules to import."""
    die_with_parent()
    adopt_orphans()
    limit_stack(64 << 20)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    channel = Channel(socket.socket(fileno=int(arguments[0])))
    try:
        for module in arguments[1:]:
            import_module(module)
    except Exception as error:  # whatever stops an import is the message for the user
        channel.send({"error": f"{type(error).__name__}: {error}"})
        return
    outlive_parent()  # for as long as it takes to end what is below; the channel tells of the supervisor's end
    with contextlib.suppress(ChannelClosed):
        channel.send({"ready": True})
        serve(channel)


if __name__ == "__main__":
    main(sys.argv[1:])
