"""The nursery: a process that has imported the backend's heavy modules and forks a worker for each job.

Importing TileLang and torch takes seconds; forking takes milliseconds. The nursery itself never runs anything of a
candidate or of the user: it imports, forks and waits. Each worker is the leader of its own session, so its whole
process tree can be killed, and orphans of workers become children of the nursery, where the supervisor finds them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from importlib import import_module
from typing import Any

from opratchet.lab.bounds import adopt_orphans, die_with_parent, limit_memory, limit_stack
from opratchet.lab.channel import Channel, ChannelClosed


def serve(channel: Channel) -> None:
    """Answer `fork` (with the worker's channel and its log attached) and `wait` until the supervisor is gone."""
    while True:
        message, fds = channel.receive()
        if message["op"] == "fork":
            pid = os.fork()
            if pid == 0:
                channel.close()
                _become_worker(message, fds)
            for descriptor in fds:
                os.close(descriptor)
            channel.send({"pid": pid})
        elif message["op"] == "wait":
            channel.send({"status": _status(message["pid"])})


def _status(pid: int) -> int:
    """Exit code of an ended worker, negative for a signal."""
    try:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:
        return 0


def _become_worker(message: dict[str, Any], fds: list[int]) -> None:
    """Run one job in the forked child and leave without returning to the nursery's loop."""
    code = 1
    try:
        os.setsid()
        die_with_parent()
        sock, log = fds
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(message["folder"])
        limit_memory(message["memory"])
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
    channel.send({"ready": True})
    with contextlib.suppress(ChannelClosed):
        serve(channel)


if __name__ == "__main__":
    main(sys.argv[1:])
