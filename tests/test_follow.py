"""Following a log and its processes: every way a file can change, with and without inotify and pidfd."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bringup.errors import UsageError
from bringup.follow import Data, Exited, ExitFile, Follower, Gone, Signal, Truncated, Woken
from bringup.follow import inotify as inotify_module
from bringup.targets import procfs
from tests.io_helpers import py

WAYS = ["inotify", "polling"]


class Watched:
    """A follower with everything that it brought so far."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.all: list[Signal] = []

    def until(self, what: Callable[[list[Signal]], object], seconds: float = 20.0) -> list[Signal]:
        deadline = time.monotonic() + seconds
        while not what(self.all):
            assert time.monotonic() < deadline, self.all
            self.all += self.follower.wait(deadline - time.monotonic())
        return self.all

    def until_text(self, text: bytes) -> None:
        self.until(lambda _: self.text.endswith(text))

    def until_kind(self, kind: type) -> None:
        self.until(lambda found: any(isinstance(s, kind) for s in found))

    @property
    def text(self) -> bytes:
        return b"".join(s.data for s in self.all if isinstance(s, Data))

    @property
    def kinds(self) -> list[str]:
        return [type(s).__name__ for s in self.all if not isinstance(s, Data)]


@pytest.fixture(params=WAYS)
def fast(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "inotify")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@contextlib.contextmanager
def follow(log: Path, fast: bool = True, **more: object) -> Iterator[Watched]:
    with Follower(log, use_inotify=fast, use_pidfd=fast, **more) as follower:  # type: ignore[arg-type]
        yield Watched(follower)


def append(path: Path, data: bytes) -> None:
    with path.open("ab", buffering=0) as f:
        f.write(data)


def test_what_is_there_then_what_comes(log: Path, fast: bool) -> None:
    append(log, b"one\n")
    with follow(log, fast) as w:
        w.until_text(b"one\n")
        append(log, b"two\n")
        w.until_text(b"two\n")
        append(log, b"torn")
        w.until_text(b"torn")
    assert [(s.offset, s.data) for s in w.all if isinstance(s, Data)] == [(0, b"one\n"), (4, b"two\n"), (8, b"torn")]


def test_nothing_happens(log: Path, fast: bool) -> None:
    log.touch()
    with follow(log, fast) as w:
        before = time.monotonic()
        assert w.follower.wait(0.15) == [] and time.monotonic() - before >= 0.15
        assert w.follower.wait(0) == []


def test_from_an_offset(log: Path, fast: bool) -> None:
    append(log, b"0123456789")
    with follow(log, fast, offset=6) as w:
        w.until_text(b"6789")
        assert w.text == b"6789" and w.follower.offset == 10


def test_an_offset_behind_the_end_is_a_truncation(log: Path, fast: bool) -> None:
    append(log, b"new")
    with follow(log, fast, offset=100) as w:
        w.until_text(b"new")
        assert w.all[0] == Truncated(100)


def test_bytes_pass_untouched(log: Path, fast: bool) -> None:
    data = bytes(range(256)) + b"\r 10%\r 20%\r\n\x1b[31mred\x1b[0m\xff\xfe\x00" + "é".encode()[:1]
    append(log, data)
    with follow(log, fast) as w:
        w.until_text(data)
        assert w.text == data


def test_created_later(log: Path, fast: bool) -> None:
    with follow(log, fast) as w:
        assert w.follower.wait(0.06) == []
        append(log, b"late\n")
        w.until_text(b"late\n")
        append(log, b"more\n")
        w.until_text(b"more\n")
        assert w.kinds == []


def test_created_later_and_so_is_its_folder(tmp_path: Path, fast: bool) -> None:
    log = tmp_path / "a" / "b" / "log"
    with follow(log, fast, exit_file=log.parent / "exit") as w:
        assert w.follower.wait(0.06) == []
        log.parent.mkdir(parents=True)
        append(log, b"late\n")
        w.until_text(b"late\n")
        append(log, b"more\n")
        w.until_text(b"more\n")
        (log.parent / "exit").write_text("0")
        w.until_kind(ExitFile)


def test_created_by_renaming(log: Path, fast: bool) -> None:
    with follow(log, fast) as w:
        append(log.with_name("other"), b"text")
        log.with_name("other").rename(log)
        w.until_text(b"text")


def test_truncated(log: Path, fast: bool) -> None:
    append(log, b"a long old text\n")
    with follow(log, fast) as w:
        w.until_text(b"text\n")
        os.truncate(log, 0)
        w.until_kind(Truncated)
        append(log, b"new\n")
        w.until_text(b"new\n")
        assert [s for s in w.all if not isinstance(s, Data)] == [Truncated(16)]
        assert [s.offset for s in w.all if isinstance(s, Data)] == [0, 0]


def test_rotated_old_rest_first(log: Path, fast: bool) -> None:
    append(log, b"1")
    with follow(log, fast) as w:
        w.until_text(b"1")
        log.rename(log.with_name("log.1"))
        append(log.with_name("log.1"), b"2")
        append(log, b"3")
        w.until_text(b"3")
        append(log, b"4")
        w.until_text(b"4")
        assert w.text == b"1234" and w.kinds == ["Rotated"]
        last = w.all[-1]
        assert isinstance(last, Data) and last.offset == 1


def test_rotated_while_the_writer_stays_with_the_old_file(log: Path, fast: bool) -> None:
    with log.open("ab", buffering=0) as old, follow(log, fast) as w:
        old.write(b"1")
        w.until_text(b"1")
        log.rename(log.with_name("log.1"))
        log.touch()  # logrotate's `create`, before the writer was told
        assert w.follower.wait(0.15) == []
        old.write(b"2")
        w.until_text(b"2")
        assert w.kinds == []
        append(log, b"3")
        w.until_text(b"3")
        assert w.text == b"123" and w.kinds == ["Rotated"]


def test_rotated_many_times(log: Path, fast: bool) -> None:
    with follow(log, fast) as w:
        for n in range(20):
            append(log, b"%d " % n)
            w.until_text(b"%d " % n)
            log.rename(log.with_name(f"log.{n}"))
        append(log, b"end")
        w.until_text(b"end")
        assert w.text == b"".join(b"%d " % n for n in range(20)) + b"end"


def test_deleted(log: Path, fast: bool) -> None:
    with log.open("ab", buffering=0) as writer, follow(log, fast) as w:
        writer.write(b"1")
        w.until_text(b"1")
        log.unlink()
        w.until_kind(Gone)
        writer.write(b"2")  # it does not know
        w.until_text(b"12")
        assert w.follower.wait(0.15) == []  # told once
        append(log, b"3")
        w.until_text(b"3")
        assert w.kinds == ["Gone", "Rotated"]


def test_moved_away_and_back(log: Path, fast: bool) -> None:
    append(log, b"1")
    with follow(log, fast) as w:
        w.until_text(b"1")
        log.rename(log.with_name("x"))
        w.until_kind(Gone)
        log.with_name("x").rename(log)
        append(log, b"2")
        w.until_text(b"2")
        log.unlink()
        w.until(lambda found: sum(isinstance(s, Gone) for s in found) == 2)
        assert w.text == b"12" and "Rotated" not in w.kinds


def test_the_folder_is_replaced(tmp_path: Path, fast: bool) -> None:
    log = tmp_path / "d" / "log"
    log.parent.mkdir()
    append(log, b"1")
    with follow(log, fast) as w:
        w.until_text(b"1")
        log.parent.rename(tmp_path / "old")
        w.until_kind(Gone)
        log.parent.mkdir()
        append(log, b"2")
        w.until_text(b"2")
        append(log, b"3")
        w.until_text(b"3")
        assert w.kinds == ["Gone", "Rotated"]


def test_a_symbolic_link_that_is_turned(tmp_path: Path, fast: bool) -> None:
    for name in "ab":
        (tmp_path / name).mkdir()
    append(tmp_path / "a" / "f", b"1")
    append(tmp_path / "b" / "f", b"3")
    log = tmp_path / "log"
    log.symlink_to("a/f")
    with follow(log, fast) as w:
        w.until_text(b"1")
        append(tmp_path / "a" / "f", b"2")
        w.until_text(b"2")
        (tmp_path / "new").symlink_to("b/f")
        (tmp_path / "new").rename(log)
        w.until_text(b"3")
        append(tmp_path / "b" / "f", b"4")
        w.until_text(b"4")
        (tmp_path / "b" / "f").rename(tmp_path / "b" / "f.1")  # rotation behind the link
        append(tmp_path / "b" / "f", b"5")
        w.until_text(b"5")
        assert w.text == b"12345"


def test_100_mb_on_one_line_with_flat_memory(log: Path, fast: bool) -> None:
    size = 100 << 20
    with log.open("wb") as f:
        for _ in range(100):
            f.write(b"x" * (1 << 20))
    with follow(log, fast) as w:
        got, calls, biggest = 0, 0, 0
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        while got < size:
            found = sum(len(s.data) for s in w.follower.wait(20) if isinstance(s, Data))
            assert found and (w.follower.behind or got + found == size)
            got, calls, biggest = got + found, calls + 1, max(biggest, found)
        grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert biggest <= 1 << 20 and calls >= 100 and grown_kib < 16 << 10


def test_signals_come_through_a_flood(log: Path, fast: bool) -> None:
    log.write_bytes(b"x" * (5 << 20))
    process = subprocess.Popen(["true"])
    process.wait()
    with follow(log, fast, pids=[(process.pid, None)]) as w:
        first = w.follower.wait(20)
    assert Exited(process.pid) in first and sum(len(s.data) for s in first if isinstance(s, Data)) == 1 << 20


def test_the_last_words_come_with_the_end(log: Path, fast: bool) -> None:
    code = f"import sys; sys.stdin.read(); open({str(log)!r}, 'a').write('last words')"
    log.touch()
    process = subprocess.Popen(py(code), stdin=subprocess.PIPE)
    with follow(log, fast, pids=[(process.pid, procfs.start_ticks(process.pid))]) as w:
        assert w.follower.wait(0.06) == []
        assert process.stdin
        process.stdin.close()
        w.until_kind(Exited)
        assert w.text == b"last words" and isinstance(w.all[-1], Exited)  # text first
        process.wait()
        assert w.follower.wait(0.06) == []  # told once


def test_an_end_is_seen_before_anybody_reaps(log: Path, fast: bool) -> None:
    process = subprocess.Popen(["true"])
    with follow(log, fast, pids=[(process.pid, None)]) as w:
        w.until_kind(Exited)
    assert procfs.is_zombie(process.pid)
    process.wait()


def test_a_pid_that_never_was_or_is_another_now(log: Path, fast: bool) -> None:
    ticks = procfs.start_ticks(os.getpid())
    assert ticks
    with follow(log, fast, pids=[(4_194_304, None), (os.getpid(), ticks - 1), (os.getpid(), ticks)]) as w:
        assert w.follower.wait(5) == [Exited(4_194_304), Exited(os.getpid())]
        assert w.follower.wait(0.06) == []


def test_a_process_is_added_on_the_way(log: Path, fast: bool) -> None:
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    with follow(log, fast) as w:
        w.follower.add_pid(process.pid, procfs.start_ticks(process.pid))
        assert w.follower.wait(0.06) == []
        process.communicate()
        w.until_kind(Exited)


def test_the_exit_file(log: Path, fast: bool) -> None:
    exit_file = log.with_name("exit")
    with follow(log, fast, exit_file=exit_file) as w:
        assert w.follower.wait(0.06) == []
        temp = log.with_name(".exit.tmp")
        temp.write_text("{}")
        temp.rename(exit_file)
        w.until_kind(ExitFile)
        append(log, b"x")
        w.until_text(b"x")
        assert w.kinds == ["ExitFile"]
    with follow(log, fast, exit_file=exit_file) as w:
        w.until_kind(ExitFile)


def test_woken_from_another_thread(log: Path, fast: bool) -> None:
    with follow(log, fast) as w:
        timer = threading.Timer(0.05, w.follower.wake)
        timer.start()
        before = time.monotonic()
        assert w.follower.wait(20) == [Woken()]
        assert time.monotonic() - before < 5
        timer.join()
        for _ in range(100_000):  # more than the pipe holds
            w.follower.wake()
        w.until_kind(Woken)
    w.follower.wake()
    assert w.follower.wait(1) == []
    w.follower.close()


def test_latency(log: Path) -> None:
    log.touch()
    took = []
    with follow(log) as w:
        w.follower.wait(0)
        for _ in range(20):
            threading.Timer(0.002, lambda: append(log, b"%.9f\n" % time.monotonic())).start()
            (found,) = w.follower.wait(20)
            assert isinstance(found, Data)
            took.append(found.at - float(found.data))
    assert sorted(took)[len(took) // 2] < 0.005


def test_the_fast_path_sleeps(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting costs no turns of the loop: it is asked to sleep for as long as the caller allows."""
    log.touch()
    with follow(log, pids=[(os.getpid(), procfs.start_ticks(os.getpid()))], exit_file=log.with_name("exit")) as w:
        w.follower.wait(0)
        slept: list[float | None] = []
        real = w.follower._selector.select
        monkeypatch.setattr(w.follower._selector, "select", lambda t=None: (slept.append(t), real(t))[1])
        w.follower.wait(0.3)
        assert len(slept) <= 2 and slept[0] is not None and slept[0] > 0.25


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EMFILE])
def test_no_more_watches(log: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def full(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(inotify_module.Inotify, "__init__" if number == errno.EMFILE else "add", full)
    with follow(log, exit_file=log.with_name("exit")) as w:
        append(log, b"1")
        w.until_text(b"1")
        log.rename(log.with_name("old"))
        append(log, b"2")
        w.until_text(b"2")
        log.with_name("exit").touch()
        w.until_kind(ExitFile)


def test_a_network_file_system_is_polled_too(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inotify_module, "told_of_all_writes", lambda _: False)
    monkeypatch.setattr(inotify_module.Inotify, "read", lambda _: [])
    append(log, b"1")
    with follow(log) as w:
        w.until_text(b"1")
        append(log, b"2")
        w.until_text(b"2")


def test_no_pidfd_on_this_system(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    with follow(log, pids=[(process.pid, None)]) as w:
        process.communicate()
        w.until_kind(Exited)


def _make(kind: str, path: Path) -> None:
    if kind == "directory":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(str(path))


@pytest.mark.parametrize("kind", ["directory", "pipe", "socket"])
def test_what_is_no_plain_file(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    _make(kind, Path("log"))
    with pytest.raises(UsageError, match=f"it is a {kind}") as caught:
        Follower(Path("log"))
    assert "\n" not in caught.value.message and caught.value.hint


def test_a_file_that_may_not_be_read(log: Path) -> None:
    append(log, b"x")
    log.chmod(0)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)
        with pytest.raises(UsageError, match="Permission denied"):
            Follower(log)
    finally:
        os.seteuid(user)


def test_a_name_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="File name too long"):
        Follower(tmp_path / ("x" * 300))


def test_no_descriptor_is_lost(log: Path, fast: bool) -> None:
    def count() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = count()
    process = subprocess.Popen(["sleep", "60"])
    for _ in range(5):
        with follow(log, fast, pids=[(process.pid, None), (1, None)]) as w:
            append(log, b"x")
            w.until_text(b"x")
            log.rename(log.with_name("old"))
            append(log, b"y")
            w.until_text(b"y")
        log.unlink()
    process.kill()
    process.wait()
    assert count() == before
