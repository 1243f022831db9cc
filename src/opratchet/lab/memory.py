"""Memory files that processes share. Standard library only, as run workers import this."""

from __future__ import annotations

import fcntl
import os


def memory_file(name: str, size: int = 0) -> int:
    """Descriptor of a memory file that can grow but that nobody can make smaller: who maps it would die by it."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    return fd
