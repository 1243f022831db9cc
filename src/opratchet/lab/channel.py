"""A private channel between the supervisor and one worker: JSON messages and open files over a socket pair.

A message is a four-byte length and a JSON object; descriptors travel with it. Standard library only, because run
workers import this.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any

_HEAD = struct.Struct("!I")
_MAX_FDS = 8
LIMIT = 16 << 20


class ChannelClosed(Exception):
    """The other side is gone, or sent something that is no message."""


class Channel:
    """One end of a channel. Not for use by several threads at once."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    @classmethod
    def pair(cls) -> tuple[Channel, socket.socket]:
        """Our end, and the socket to hand to the worker."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        return cls(ours), theirs

    def send(self, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one message, with open files attached.

        Raises:
            ChannelClosed: the other side is gone.
        """
        data = json.dumps(message).encode("utf-8")
        packet = _HEAD.pack(len(data)) + data
        try:
            sent = socket.send_fds(self.sock, [packet], list(fds)) if fds else 0
            self.sock.sendall(packet[sent:])
        except OSError as error:
            raise ChannelClosed(str(error)) from None

    def receive(self, timeout: float | None = None) -> tuple[dict[str, Any], list[int]]:
        """The next message and its open files.

        Args:
            timeout: Seconds to wait at most for all of it; None waits for ever.

        Raises:
            TimeoutError: nothing came in time.
            ChannelClosed: the other side is gone.
        """
        until = None if timeout is None else time.monotonic() + timeout
        self.sock.settimeout(timeout)
        fds: list[int] = []
        try:
            head, fds, _flags, _address = socket.recv_fds(self.sock, _HEAD.size, _MAX_FDS)
            return self._message(head, until), fds
        except BaseException as error:
            for descriptor in fds:
                os.close(descriptor)
            if isinstance(error, (OSError, ValueError, RecursionError)) and not isinstance(
                error, TimeoutError
            ):
                raise ChannelClosed(str(error)) from None
            raise

    def _message(self, head: bytes, until: float | None) -> dict[str, Any]:
        if not head:
            raise ChannelClosed("the worker is gone")
        (length,) = _HEAD.unpack(head + self._exactly(_HEAD.size - len(head), until))
        if length > LIMIT:
            raise ChannelClosed("a message of impossible length")
        message = json.loads(self._exactly(length, until))
        if not isinstance(message, dict):
            raise ChannelClosed("a message that is no object")
        return message

    def _exactly(self, count: int, until: float | None) -> bytes:
        parts = []
        while count:
            if until is not None:
                self.sock.settimeout(_left(until))
            part = self.sock.recv(count)
            if not part:
                raise ChannelClosed("the worker is gone")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def ask(self, message: Mapping[str, Any], timeout: float | None = None) -> dict[str, Any]:
        """Send a message and wait for the answer."""
        self.send(message)
        return self.receive(timeout)[0]

    def close(self) -> None:
        """Close our end."""
        self.sock.close()


def _left(until: float) -> float:
    """Seconds that are left: whoever sends a byte now and then gains no time.

    Raises:
        TimeoutError: none.
    """
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError("the message did not come in time")
    return left
