"""Reading an attempt's directory while it is written, half-written, damaged or out of date."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup import paths
from bringup.errors import UsageError
from bringup.facts import Exit
from bringup.launch.attempt import AttemptDir, Pid, attempts, new_attempt, shell_exit
from bringup.targets import procfs
from tests.io_helpers import until


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptDir:
    return AttemptDir(tmp_path)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("\n", None),
        ("{", None),
        ('{"code": 1', None),
        ("{}", None),
        ("null", None),
        ("true", None),
        ("[1]", None),
        ("-1", None),
        ("garbage \x00", None),
        ('{"code": true, "signal": 9}', None),
        ('{"code": null, "signal": null}', None),
        ("0", Exit(0)),
        ("1\n", Exit(1)),
        ("137", Exit(137, "SIGKILL", certain=False)),
        ("143\n", Exit(143, "SIGTERM", certain=False)),
        ("128\n", Exit(128)),
        ("255\n", Exit(255)),
        ('{"code": 137, "signal": null, "certain": true}', Exit(137)),
        ('{"code": null, "signal": "SIGKILL", "certain": true, "leftover": "x"}', Exit(None, "SIGKILL")),
        ('{"code": 137, "signal": "SIGKILL", "certain": false}', Exit(137, "SIGKILL", certain=False)),
        ('{"code": 2, "new_key": {"x": 1}}', Exit(2)),
    ],
)
def test_exit_files(attempt: AttemptDir, text: str, found: Exit | None) -> None:
    attempt.exit_file.write_text(text)
    assert attempt.read_exit() == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", None),
        ("{", None),
        ('{"pid": "7"}', None),
        ('{"pid": true}', None),
        ("0", None),
        ("-4", None),
        ("12\n", Pid(12)),
        ('{"pid": 12, "start_ticks": null}', Pid(12)),
        ('{"pid": 12, "start_ticks": 5, "cradle": "x"}', Pid(12, 5)),
    ],
)
def test_pid_files(attempt: AttemptDir, text: str, found: Pid | None) -> None:
    (attempt.path / "pid").write_text(text)
    assert attempt.read_pid() == found
    if not found:
        assert not attempt.alive() and not attempt.cradle_alive()


@given(st.binary(max_size=60), st.sampled_from(["exit", "pid", "started", "command.json"]))
def test_any_bytes_are_tolerated(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    attempt = AttemptDir(tmp_path_factory.getbasetemp())
    (attempt.path / name).write_bytes(data)
    try:
        attempt.read_exit_record(), attempt.read_pid(), attempt.read_started(), attempt.read_command()
    finally:
        (attempt.path / name).unlink()


def test_files_that_are_not_files(attempt: AttemptDir) -> None:
    for name in ("exit", "pid", "started", "command.json", "log"):
        (attempt.path / name).mkdir()
    assert attempt.read_exit() is attempt.read_pid() is attempt.read_started() is attempt.read_command() is None


def test_nothing_is_there_at_all(tmp_path: Path) -> None:
    gone = AttemptDir(tmp_path / "gone")
    assert gone.read_exit() is gone.read_pid() is gone.read_started() is gone.read_command() is None
    assert not gone.alive()


def _write_pid(attempt: AttemptDir, pid: int, ticks: int | None, boot: str | None = None) -> None:
    (attempt.path / "pid").write_text(
        json.dumps({"pid": pid, "start_ticks": ticks, "cradle": pid, "cradle_ticks": ticks})
    )
    (attempt.path / "started").write_text(json.dumps({"at": "2026-01-01T00:00:00.000Z", "boot_id": boot}))


def test_a_pid_that_was_given_to_another_process_is_not_alive(attempt: AttemptDir) -> None:
    ticks = procfs.start_ticks(os.getpid())
    assert ticks is not None
    _write_pid(attempt, os.getpid(), ticks, procfs.boot_id())
    assert attempt.alive() and attempt.cradle_alive()
    _write_pid(attempt, os.getpid(), ticks - 1, procfs.boot_id())
    assert not attempt.alive() and not attempt.cradle_alive()
    _write_pid(attempt, os.getpid(), None)
    assert attempt.alive()  # a shell's cradle knows no more


def test_nothing_outlives_a_reboot(attempt: AttemptDir) -> None:
    _write_pid(attempt, os.getpid(), procfs.start_ticks(os.getpid()), "another-boot")
    assert not attempt.alive() and not attempt.cradle_alive()


def test_a_zombie_is_dead(attempt: AttemptDir) -> None:
    child = subprocess.Popen(["true"])
    until(lambda: procfs.is_zombie(child.pid))
    _write_pid(attempt, child.pid, procfs.start_ticks(child.pid))
    assert not attempt.alive()
    child.wait()
    assert not attempt.alive()


def test_a_main_thread_that_ended_before_its_threads_is_no_zombie(attempt: AttemptDir) -> None:
    code = (
        "import ctypes, threading, sys\n"
        "threading.Thread(target=sys.stdin.read).start()\n"
        "ctypes.CDLL(None).syscall(60, 0)"  # exit of this one thread
    )
    if os.uname().machine != "x86_64":
        pytest.skip("the number of a system call is x86-64's")
    child = subprocess.Popen([os.sys.executable, "-c", code], stdin=subprocess.PIPE)  # type: ignore[attr-defined]
    until(lambda: (s := procfs.read_stat(child.pid)) and s.state == "Z")
    assert procfs.is_alive(child.pid)
    child.kill()
    child.communicate()
    assert not procfs.is_alive(child.pid)


def test_a_process_with_an_odd_name(tmp_path: Path) -> None:
    script = tmp_path / ") R 1 ("
    script.write_text("#!/bin/sh\nread x\n")
    script.chmod(0o755)
    child = subprocess.Popen([str(script)], stdin=subprocess.PIPE)
    stat = until(lambda: (s := procfs.read_stat(child.pid)) and s.name == ") R 1 (" and s)
    assert stat and stat.ppid == os.getpid()
    child.communicate()


def test_attempts_are_numbered_and_never_shared(tmp_path: Path) -> None:
    got: list[Path] = []
    threads = [threading.Thread(target=lambda: got.append(new_attempt(tmp_path, "r").path)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(p.name for p in got) == [str(n) for n in range(1, 9)]
    (tmp_path / "runs" / "r" / "notes").mkdir()
    assert [n for n, _ in attempts(tmp_path, "r")] == list(range(1, 9))
    assert new_attempt(tmp_path, "r").path.name == "9"
    assert attempts(tmp_path, "none") == []
    assert all(p.stat().st_mode & 0o777 == 0o700 for p in (tmp_path / "runs", *got))


@pytest.mark.parametrize(
    ("status", "found"),
    [(0, Exit(0)), (128, Exit(128)), (130, Exit(130, "SIGINT", certain=False)), (200, Exit(200))],
)
def test_shell_exit(status: int, found: Exit) -> None:
    assert shell_exit(status) == found


def test_state_dir_order(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    for name in ("BRINGUP_STATE_DIR", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert paths.state_dir() == Path("/home/u/.local/state/bringup")
    assert paths.data_dir() == Path("/home/u/.local/share/bringup")
    assert paths.config_dir() == Path("/home/u/.config/bringup")
    assert paths.cache_dir() == Path("/home/u/.cache/bringup")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert paths.state_dir() == Path("/home/u/.local/state/bringup")
    monkeypatch.setenv("XDG_STATE_HOME", "/xdg")
    assert paths.state_dir() == Path("/xdg/bringup")
    monkeypatch.setenv("BRINGUP_STATE_DIR", "~/mine")
    assert paths.state_dir() == Path("/home/u/mine")
    monkeypatch.chdir(tmp_path)
    assert paths.state_dir("over") == tmp_path / "over"


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/nope")):
        with pytest.raises(UsageError, match="cannot write to `") as caught:
            paths.ensure_private(path)
        assert "--state-dir" in (caught.value.hint or "") and "\n" not in caught.value.message


def test_a_read_only_home(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        tmp_path.chmod(0o500)
        with pytest.raises(UsageError, match="Permission denied"):
            paths.ensure_private(tmp_path / "x")
        return
    if subprocess.run(["mount", "--bind", "-o", "ro", tmp_path, tmp_path], capture_output=True).returncode:
        pytest.skip("a read-only mount is not possible here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", tmp_path], capture_output=True)
        for path in (tmp_path, tmp_path / "x"):
            with pytest.raises(UsageError, match="cannot write to `"):
                paths.ensure_private(path)
    finally:
        subprocess.run(["umount", tmp_path], check=True)
