"""The channel against a side that does not keep to the rules."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time

import pytest

from opratchet.lab.channel import LIMIT, Channel, ChannelClosed


def packet(data: bytes) -> bytes:
    return struct.pack("!I", len(data)) + data


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


def test_a_message_with_its_files_arrives() -> None:
    ours, theirs = Channel.pair()
    with open(os.devnull) as file:  # noqa: PTH123
        Channel(theirs).send({"a": ["b", 1]}, [file.fileno()])
        message, fds = ours.receive(5)
    assert message == {"a": ["b", 1]}
    assert len(fds) == 1
    os.close(fds[0])
    ours.close()
    theirs.close()


@pytest.mark.parametrize(
    "data",
    [
        struct.pack("!I", LIMIT + 1),
        packet(b"[1]"),
        packet(b"{"),
        packet(b"\xff"),
        packet(b"[" * 200_000),
        struct.pack("!I", 10) + b"123",
        b"\0",
        b"",
    ],
)
def test_what_is_no_message_closes_the_channel(data: bytes) -> None:
    ours, theirs = Channel.pair()
    sender = threading.Thread(
        target=lambda: (theirs.sendall(data), theirs.shutdown(socket.SHUT_WR))
    )
    sender.start()
    with pytest.raises(ChannelClosed):
        ours.receive(5)
    sender.join()
    ours.close()
    theirs.close()


def test_files_that_come_with_rubbish_are_closed() -> None:
    ours, theirs = Channel.pair()
    with open(os.devnull) as file:  # noqa: PTH123
        socket.send_fds(theirs, [packet(b"[]")], [file.fileno()] * 8)
    before = open_descriptors()
    with pytest.raises(ChannelClosed):
        ours.receive(5)
    assert open_descriptors() == before
    ours.close()
    theirs.close()


def test_a_message_that_drips_takes_no_longer_than_allowed() -> None:
    ours, theirs = Channel.pair()
    done = threading.Event()

    def drip() -> None:
        for byte in packet(json.dumps({"long": "x" * 100_000}).encode()):
            if done.wait(0.01):
                return
            theirs.send(bytes([byte]))

    sender = threading.Thread(target=drip)
    sender.start()
    start = time.monotonic()
    with pytest.raises(TimeoutError):
        ours.receive(0.3)
    assert time.monotonic() - start < 5
    done.set()
    sender.join()
    ours.close()
    theirs.close()
