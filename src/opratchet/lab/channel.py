"""A private channel between the supervisor and one worker: JSON messages and open files over a socket pair.

A message is a four-byte length and a JSON object; descriptors travel with it. Standard library only, because run
workers import this.
"""

from __future__ import annotations

import json
import socket
import struct
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
            timeout: Seconds to wait at most; None waits for ever.

        Raises:
            TimeoutError: nothing came in time.
            ChannelClosed: the other side is gone.
        """
        self.sock.settimeout(timeout)
        try:
            head, fds, _flags, _address = socket.recv_fds(self.sock, _HEAD.size, _MAX_FDS)
            head += self._exactly(_HEAD.size - len(head)) if head else b""
            if not head:
                raise ChannelClosed("the worker is gone")
            (length,) = _HEAD.unpack(head)
            if length > LIMIT:
                raise ChannelClosed("a message of impossible length")
            message = json.loads(self._exactly(length))
        except (OSError, ValueError) as error:
            if isinstance(error, TimeoutError):
                raise
            raise ChannelClosed(str(error)) from None
        if not isinstance(message, dict):
            raise ChannelClosed("a message that is no object")
        return message, fds

    def _exactly(self, count: int) -> bytes:
        parts = []
        while count:
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
