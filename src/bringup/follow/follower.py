"""One loop that sleeps until a start brings something: log bytes, the end of a process, the exit file, a wake.

On Linux nothing is polled: inotify tells of the log, pidfds of the processes. Where either is missing (other
systems, no watches left, a network file system, a folder that does not exist yet) that part is looked at
every 50 ms until it is there.
"""

from __future__ import annotations

import os
import selectors
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bringup.follow import inotify
from bringup.follow.reader import LogReader
from bringup.follow.signals import Exited, ExitFile, Signal, Woken
from bringup.targets import procfs

TICK_S = 0.05
#: Bytes of log per call, so that the end of a process is not hidden behind a flood.
BUDGET = 1 << 20


class Follower:
    """Follows one log and the processes that belong to it. Not for several threads, but for ``wake``.

    *pids* are (pid, start ticks or None); *offset* is where in *log* to begin. Raises ``UsageError`` where *log*
    is no plain file or may not be read; it need not exist yet.
    """

    def __init__(
        self,
        log: Path,
        *,
        offset: int = 0,
        pids: Sequence[tuple[int, int | None]] = (),
        exit_file: Path | None = None,
        use_inotify: bool = True,
        use_pidfd: bool = True,
    ) -> None:
        self._reader = LogReader(log.absolute(), offset)
        self._exit_file = exit_file.absolute() if exit_file else None
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._wake_r, self._wake_w = os.pipe()
        for fd in (self._wake_r, self._wake_w):
            os.set_blocking(fd, False)
        self._selector.register(self._wake_r, selectors.EVENT_READ)
        self._watches = _Watches(use_inotify)
        if self._watches.fd is not None:
            self._selector.register(self._watches.fd, selectors.EVENT_READ)
        self._use_pidfd = use_pidfd
        self._pidfds: dict[int, int] = {}  # descriptor -> pid
        self._polled: dict[int, int | None] = {}  # pid -> ticks, for those without a descriptor
        self._ended: list[int] = []
        self._look = True
        self._closed = False
        for pid, ticks in pids:
            self.add_pid(pid, ticks)

    @property
    def offset(self) -> int:
        """Up to where the present file was read."""
        return self._reader.offset

    @property
    def behind(self) -> bool:
        """Whether bytes are known to wait: the next ``wait`` returns at once."""
        return self._reader.more

    def add_pid(self, pid: int, ticks: int | None = None) -> None:
        """Watch one more process; ``Exited`` comes once, also when it has ended already."""
        fd = self._pidfd(pid)
        if not procfs.is_alive(pid, ticks):  # asked after the descriptor is open: the pid cannot change hands now
            if fd is not None:
                os.close(fd)
            self._ended.append(pid)
        elif fd is None:
            self._polled[pid] = ticks
        else:
            self._pidfds[fd] = pid
            self._selector.register(fd, selectors.EVENT_READ)

    def wake(self) -> None:
        """Make the present or next ``wait`` return with ``Woken``. Safe from any thread, also after ``close``."""
        with self._lock:
            if not self._closed:
                try:
                    os.write(self._wake_w, b"w")
                except BlockingIOError:
                    pass  # it is awake already

    def wait(self, timeout: float | None = None) -> list[Signal]:
        """Sleep until something happened, at most *timeout* seconds; returns all of it, log first, or []."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._closed:
            woken = self._select(self._pause(deadline))
            out = self._log_signals()
            if woken:
                out.append(Woken())
            out += [Exited(pid) for pid in self._ended]
            self._ended.clear()
            if self._exit_file is not None and os.path.lexists(self._exit_file):
                self._exit_file = None
                out.append(ExitFile())
            if out or (deadline is not None and time.monotonic() >= deadline):
                return out
        return []

    def close(self) -> None:
        """Give back all descriptors; ``wait`` returns nothing from then on."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._selector.close()
            for fd in (self._wake_r, self._wake_w, *self._pidfds):
                os.close(fd)
        self._watches.close()
        self._reader.close()

    def __enter__(self) -> Follower:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _pause(self, deadline: float | None) -> float | None:
        """How long to sleep: not at all, to the next look, to the deadline, or (None) for ever."""
        if self._look or self._reader.more or self._ended:
            return 0.0
        now = time.monotonic()
        until = [t for t in (deadline, self._reader.look_again) if t is not None]
        if self._polled or not self._watches.complete:
            until.append(now + TICK_S)
        return max(0.0, min(until) - now) if until else None

    def _select(self, pause: float | None) -> bool:
        """Sleep, then note what happened; returns whether somebody called ``wake``."""
        woken = False
        events = self._selector.select(pause)
        for key, _ in events:
            if key.fd == self._wake_r:
                os.read(self._wake_r, 4096)
                woken = True
            elif key.fd == self._watches.fd:
                self._watches.drain()
            else:
                self._selector.unregister(key.fd)
                self._ended.append(self._pidfds.pop(key.fd))
                os.close(key.fd)
        for pid, ticks in list(self._polled.items()):
            if not procfs.is_alive(pid, ticks):
                del self._polled[pid]
                self._ended.append(pid)
        # What a process wrote before it ended is in the file by now, so the log is read after the processes.
        self._look = True
        return woken

    def _log_signals(self) -> list[Signal]:
        self._look = False
        folders = [self._reader.path.parent]
        if self._exit_file is not None:
            folders.append(self._exit_file.parent)
        self._watches.arm(folders, self._reader.path, self._reader.fd)
        before = self._reader.fd
        out = self._reader.read(BUDGET)
        if self._reader.fd != before or (out and not self._watches.holds(self._reader.fd)):
            self._look = True  # the new file is watched from the next turn on, and read once more after that
        elif self._watches.arm_successor(self._reader.path, self._reader.successor):
            self._look = True
        return out

    def _pidfd(self, pid: int) -> int | None:
        if not self._use_pidfd or not hasattr(os, "pidfd_open"):
            return None
        try:
            return os.pidfd_open(pid)
        except (OSError, ValueError):
            return None


class _Watches:
    """The inotify watches: the folders, and the file that is open. ``complete`` says whether they suffice."""

    def __init__(self, use: bool) -> None:
        self._inotify: inotify.Inotify | None = None
        self._folders: dict[str, int] = {}
        self._file: tuple[tuple[int, int], int] | None = None  # identity of the file, its watch
        self._successor: tuple[int, int] | None = None
        self._wanted: set[str] = set()
        self._fd_open = self._remote = False
        if use:
            try:
                self._inotify = inotify.Inotify()
            except OSError:
                pass

    @property
    def fd(self) -> int | None:
        return self._inotify.fd if self._inotify else None

    @property
    def complete(self) -> bool:
        return (
            self._inotify is not None
            and not self._remote
            and self._wanted <= self._folders.keys()
            and (self._file is not None or not self._fd_open)
        )

    def holds(self, fd: int) -> bool:
        """Whether the open file *fd* is the one that is watched."""
        return self._file is not None and fd >= 0 and self._file[0] == _identity(fd)

    def arm(self, folders: Sequence[Path], log: Path, fd: int) -> None:
        """Make sure that *folders* (and where a symbolic link leads) and the open file are watched."""
        self._fd_open = fd >= 0
        if self._inotify is None:
            return
        self._wanted = {str(folder) for folder in folders}
        if log.is_symlink():
            self._wanted.add(os.path.dirname(os.path.realpath(log)))  # noqa: PTH120
        for folder in self._wanted - self._folders.keys():
            try:
                self._folders[folder] = self._inotify.add(folder, inotify.FOLDER)
            except OSError:
                continue
        if fd >= 0 and not self.holds(fd):
            if self._file is not None:
                self._inotify.remove(self._file[1])
            try:
                self._file = (_identity(fd), self._inotify.add(f"/proc/self/fd/{fd}", inotify.FILE))
            except OSError:
                self._file = None
            self._remote = not inotify.told_of_all_writes(log)

    def arm_successor(self, log: Path, identity: tuple[int, int] | None) -> bool:
        """Watch the empty file that stands in the log's place; whether that watch is new.

        Its watch is not kept: it ends with the file, or becomes the log's own watch.
        """
        if identity == self._successor or self._inotify is None:
            return False
        self._successor = identity
        if identity is None:
            return False
        try:
            self._inotify.add(str(log), inotify.FILE)
        except OSError:
            self._successor = None
        return True

    def drain(self) -> None:
        """Read the events away; a watch that ended by itself is set again (or polled for)."""
        assert self._inotify
        for number, mask in self._inotify.read():
            if mask & (inotify.IGNORED | inotify.MOVE_SELF | inotify.DELETE_SELF):
                for folder in [f for f, n in self._folders.items() if n == number]:
                    del self._folders[folder]
                    self._inotify.remove(number)

    def close(self) -> None:
        if self._inotify:
            self._inotify.close()


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino
