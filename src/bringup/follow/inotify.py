"""The three calls of Linux's inotify that following a file needs."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from pathlib import Path

MODIFY, ATTRIB, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF, IGNORED, ONLYDIR = 0x400, 0x800, 0x8000, 0x1000000

FILE = MODIFY | ATTRIB | MOVE_SELF | DELETE_SELF
FOLDER = CREATE | MOVED_TO | MOVED_FROM | DELETE | DELETE_SELF | MOVE_SELF | ONLYDIR

_HEAD = struct.Struct("iIII")
#: other machines write to these without this kernel being told
_REMOTE = ("nfs", "cifs", "smb", "9p", "fuse", "lustre", "gpfs", "ceph", "beegfs", "afs", "virtiofs", "glusterfs")


class Inotify:
    """One inotify instance. Raises ``OSError`` where the system has none, or no more (EMFILE, ENOSPC)."""

    def __init__(self) -> None:
        try:
            self._libc = ctypes.CDLL(None, use_errno=True)
            self.fd = int(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        except AttributeError as e:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS)) from e
        if self.fd < 0:
            raise _error()

    def add(self, path: str, mask: int) -> int:
        """Watch *path*; returns the watch's number."""
        number = int(self._libc.inotify_add_watch(self.fd, os.fsencode(path), ctypes.c_uint32(mask)))
        if number < 0:
            raise _error()
        return number

    def remove(self, number: int) -> None:
        """End a watch; one that is gone already is no error."""
        self._libc.inotify_rm_watch(self.fd, number)

    def read(self) -> list[tuple[int, int]]:
        """(watch, what happened) of all events that wait; never blocks."""
        events: list[tuple[int, int]] = []
        while True:
            try:
                data = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return events
            at = 0
            while at < len(data):
                number, mask, _, length = _HEAD.unpack_from(data, at)
                events.append((number, mask))
                at += _HEAD.size + length

    def close(self) -> None:
        """End all watches."""
        os.close(self.fd)


def told_of_all_writes(path: Path) -> bool:
    """Whether this kernel hears of every write to *path*: not so on a network file system."""
    try:
        device = path.stat().st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
            fields, _, rest = line.partition(" - ")
            if fields.split()[2] == wanted:
                return not rest.startswith(_REMOTE)
    except (OSError, IndexError):
        pass
    return True


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
