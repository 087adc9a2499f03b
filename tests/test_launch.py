"""Launching on this machine: what is run, what is kept, and what survives."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bringup.errors import UsageError
from bringup.facts import Exit
from bringup.launch.attempt import AttemptDir
from bringup.launch.local import CommandNotRun, Launched, launch
from bringup.targets import procfs
from tests.io_helpers import ENV, kill, py, until

Start = Callable[..., Launched]


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptDir:
    return AttemptDir(tmp_path / "runs" / "r" / "1")


def _gone(one: Launched) -> bool:
    """Kills what is left of a launch, also what was forked since the last look; whether its cradle has ended."""
    for stat in procfs.all_stats():
        if stat.session == one.pid:
            kill(stat.pid)
    return not procfs.is_alive(one.cradle_pid, one.cradle_ticks)


@pytest.fixture
def start(attempt: AttemptDir) -> Iterator[Start]:
    begun: list[Launched] = []

    def go(argv: list[str], env: dict[str, str] = ENV, cwd: str | Path | None = None) -> Launched:
        begun.append(launch(attempt.path, argv, env, cwd))
        return begun[-1]

    yield go
    for one in begun:
        until(lambda one=one: _gone(one))


def ended(attempt: AttemptDir) -> Exit:
    return until(attempt.read_exit) or Exit()


@pytest.mark.parametrize("code", [0, 1, 3, 42, 127, 137, 255])
def test_the_exit_code_is_kept(start: Start, attempt: AttemptDir, code: int) -> None:
    start(["sh", "-c", f"exit {code}"])
    assert ended(attempt) == Exit(code)


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM", "SIGSEGV", "SIGINT", "SIGHUP", "SIGPIPE", "SIGXFSZ"])
def test_the_signal_is_kept(start: Start, attempt: AttemptDir, name: str) -> None:
    start(["sh", "-c", f"kill -{name[3:]} $$; sleep 60"])
    assert ended(attempt) == Exit(signal=name)


def test_a_realtime_signal_is_kept(start: Start, attempt: AttemptDir) -> None:
    start(["sh", "-c", "kill -40 $$; sleep 60"])
    assert ended(attempt) == Exit(signal="SIG40")


def test_what_is_in_the_directory(start: Start, attempt: AttemptDir) -> None:
    launched = start(["sleep", "60"])
    assert attempt.alive() and attempt.cradle_alive() and attempt.read_exit() is None
    assert attempt.path.stat().st_mode & 0o777 == 0o700
    assert {p.name for p in attempt.path.iterdir() if not p.name.startswith(".")} == {
        "command.json",
        "pid",
        "started",
        "log",
    }
    assert all(p.stat().st_mode & 0o077 == 0 for p in attempt.path.iterdir())
    pid = attempt.read_pid()
    assert pid and (pid.pid, pid.start_ticks, pid.pgid) == (launched.pid, launched.start_ticks, launched.pgid)
    assert (pid.cradle, pid.cradle_ticks) == (launched.cradle_pid, launched.cradle_ticks)
    began = attempt.read_started()
    assert began and began.at == launched.started_at and began.boot_id == procfs.boot_id()
    command = attempt.read_command()
    assert command and command["protocol"] == 1 and command["argv"] == ["sleep", "60"]
    kill(launched.pid)
    assert ended(attempt) == Exit(signal="SIGKILL")
    assert not attempt.alive()
    record = attempt.read_exit_record()
    assert record and record.leftover == () and record.at and record.at >= began.at
    assert not [p for p in attempt.path.iterdir() if p.name.startswith(".")]


def test_it_has_a_session_and_group_of_its_own_and_so_has_the_cradle(start: Start) -> None:
    launched = start(["sleep", "60"])
    server, cradle = procfs.read_stat(launched.pid), procfs.read_stat(launched.cradle_pid)
    assert server and cradle
    assert server.session == server.pgrp == launched.pid == launched.pgid
    assert cradle.session == cradle.pgrp == launched.cradle_pid
    assert os.getsid(0) not in (server.session, cradle.session)
    assert server.ppid == launched.cradle_pid and cradle.ppid != os.getpid()


def test_it_starts_fast(tmp_path: Path) -> None:
    took = []
    for n in range(8):
        before = time.perf_counter()
        launch(tmp_path / str(n), ["true"], ENV)
        took.append(time.perf_counter() - before)
    assert min(took) < 0.1  # about 25 ms on an idle machine


def test_every_byte_of_argv_arrives(start: Start, attempt: AttemptDir) -> None:
    nasty = ["", " ", "a b", "'", '"', "$HOME", "`id`", "$(id)", "\\", "\n", "\t", "*", "?", "~", "!", "#", ";", "&"]
    nasty += ["|", "<>", "(", "{a,b}", "--", "-", "=", "%s", "\x01\x7f", "é🎉", os.fsdecode(b"\xff\xfe"), "x" * 100_000]
    code = "import sys,os; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    start([*py(code), *nasty])
    assert ended(attempt) == Exit(0)
    assert attempt.log.read_bytes() == b"\0".join(map(os.fsencode, nasty))


def test_the_environment_is_exactly_the_given_one(start: Start, attempt: AttemptDir) -> None:
    env = {"PATH": "/usr/bin:/bin", "EMPTY": "", "LINES_": "a\nb", "EQ": "a=b=c", "ODD": os.fsdecode(b"\xff")}
    start(["env", "-0"], env)
    assert ended(attempt) == Exit(0)
    seen = {tuple(pair.split(b"=", 1)) for pair in attempt.log.read_bytes().split(b"\0") if pair}
    assert seen == {(os.fsencode(k), os.fsencode(v)) for k, v in env.items()}


def test_no_secret_reaches_the_disk_or_the_cradle(start: Start, attempt: AttemptDir) -> None:
    secret = "s3cr3t-value-0123456789"
    env = {**ENV, "HF_TOKEN": secret, "OTHER": f"https://u:{secret}@host/x"}
    launched = start(["sh", "-c", "sleep 60", "sh", "--api-key", secret], env)
    for path in attempt.path.iterdir():
        assert secret.encode() not in path.read_bytes(), path
    for part in ("environ", "cmdline"):
        assert secret.encode() not in Path(f"/proc/{launched.cradle_pid}/{part}").read_bytes()
    environ = Path(f"/proc/{launched.cradle_pid}/environ").read_bytes()
    assert b"BRINGUP_RUN" not in environ  # the cradle is no part of the run
    command = attempt.read_command()
    assert command and command["env"]["HF_TOKEN"] == "[redacted]" and command["env"]["BRINGUP_RUN"] == "test"


def test_standard_streams(start: Start, attempt: AttemptDir) -> None:
    code = "import os,sys; print(sys.stdin.read() == '', os.listdir('/proc/self/fd'), file=sys.stderr); print('out')"
    start(py(code))
    assert ended(attempt) == Exit(0)
    err, out = attempt.log.read_text().splitlines()
    assert out == "out"
    assert err == "True ['0', '1', '2', '3']"  # 3 is the listing itself: nothing else was inherited


def test_signals_arrive_at_the_server_unblocked_and_by_default(start: Start, attempt: AttemptDir) -> None:
    old = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
    try:
        start(["sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status"])
    finally:
        signal.signal(signal.SIGINT, old)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    assert ended(attempt) == Exit(0)
    # 32 and 33 belong to the C library itself; no program can set them
    own = 0b11 << 31
    assert {int(line.split()[1], 16) & ~own for line in attempt.log.read_text().splitlines()} == {0}


def test_the_cradle_ignores_what_would_end_it(start: Start, attempt: AttemptDir) -> None:
    launched = start(["sh", "-c", "read x < fifo; exit 5"], cwd=_with_fifo(attempt.path.parent.parent))
    for name in ("SIGHUP", "SIGINT", "SIGTERM", "SIGQUIT"):
        os.kill(launched.cradle_pid, signal.Signals[name])
    (attempt.path.parent.parent / "fifo").write_text("go\n")
    assert ended(attempt) == Exit(5)


def _with_fifo(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    os.mkfifo(folder / "fifo")
    return folder


@pytest.mark.parametrize("how", ["none", "empty PATH", "path"])
def test_a_missing_command_is_127(start: Start, attempt: AttemptDir, how: str) -> None:
    env = {**ENV, "PATH": ""} if how == "empty PATH" else ENV
    name = "./no-such-thing" if how == "path" else "no-such-thing"
    with pytest.raises(CommandNotRun, match="command not found: `") as caught:
        start([name], env)
    assert caught.value.exit == Exit(127) and caught.value.hint and caught.value.code == 2
    assert attempt.read_exit() == Exit(127)
    assert attempt.log.read_text() == f"bringup: command not found: `{name}`\n"
    assert not attempt.alive()


def _script(path: Path, text: str, mode: int) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        ("#!/bin/sh\n", 0o644, "Permission denied"),
        ("#!/no/such/interpreter\n", 0o755, "its interpreter or loader was not found"),
        ("no shebang\n", 0o755, "Exec format error"),
    ],
)
def test_a_command_that_cannot_be_run_is_126(
    start: Start, attempt: AttemptDir, tmp_path: Path, text: str, mode: int, why: str
) -> None:
    with pytest.raises(CommandNotRun, match=why) as caught:
        start([_script(tmp_path / "it", text, mode)])
    assert caught.value.exit == attempt.read_exit() == Exit(126)
    assert attempt.log.read_text().startswith("bringup: cannot run `")


def test_a_directory_or_a_file_as_directory_is_no_command(start: Start, tmp_path: Path) -> None:
    with pytest.raises(CommandNotRun, match="Permission denied"):
        start([str(tmp_path)])


def test_an_argument_list_that_is_too_long(start: Start, attempt: AttemptDir) -> None:
    with pytest.raises(CommandNotRun, match="Argument list too long"):
        start(["true", "x" * 4_000_000])
    assert attempt.read_exit() == Exit(126)


def test_the_command_is_found_on_its_own_path_and_in_its_own_cwd(
    start: Start, attempt: AttemptDir, tmp_path: Path
) -> None:
    _script(tmp_path / "mine", "#!/bin/sh\npwd\n", 0o755)
    start(["mine"], {"PATH": ".:/usr/bin:/bin"}, tmp_path)
    assert ended(attempt) == Exit(0)
    assert attempt.log.read_text() == f"{tmp_path}\n"


@pytest.mark.parametrize(
    ("argv", "env", "cwd", "message"),
    [
        ([], {}, None, "no command"),
        ([""], {}, None, "no command"),
        (["a\0b"], {}, None, "NUL"),
        (["true"], {"A": "\0"}, None, "NUL"),
        (["true"], {"A=B": "c"}, None, "not a name"),
        (["true"], {}, "/no/such/place", "no such working directory"),
        (["true"], {}, "/etc/passwd", "not a directory"),
    ],
)
def test_bad_input_is_one_line(
    attempt: AttemptDir, argv: list[str], env: dict[str, str], cwd: str | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        launch(attempt.path, argv, env, cwd)
    assert "\n" not in caught.value.message
    assert not attempt.path.exists()


def test_an_attempt_directory_is_used_once(start: Start, attempt: AttemptDir) -> None:
    start(["true"])
    ended(attempt)
    with pytest.raises(UsageError, match="already holds an attempt"):
        launch(attempt.path, ["true"], ENV)
    assert attempt.read_exit() == Exit(0)


def _launch_in_a_child(attempt: AttemptDir, argv: list[str], before: str = "", after: str = "") -> list[str]:
    code = (
        f"import os, sys; sys.path[:0] = {sys.path!r}\n"
        "from pathlib import Path\nfrom bringup.launch.local import launch\n"
        f"{before}\nlaunch(Path({str(attempt.path)!r}), {argv!r}, dict(os.environ))\n{after}"
    )
    return [sys.executable, "-c", code]


def test_kill_9_of_the_launcher_leaves_the_server_running(attempt: AttemptDir) -> None:
    code = "import sys; print('up', flush=True); sys.stdin.read(); open('fifo').read(); print('done'); sys.exit(7)"
    cwd = _with_fifo(attempt.path.parent.parent)
    argv = _launch_in_a_child(attempt, py(code), f"os.chdir({str(cwd)!r})", "print('launched', flush=True); input()")
    launcher = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert launcher.stdout and launcher.stdout.readline() == "launched\n"
        launcher.kill()
        assert launcher.wait(10) == -signal.SIGKILL
        until(lambda: attempt.log.read_text() == "up\n")
        assert attempt.alive() and attempt.read_exit() is None
    finally:
        (cwd / "fifo").write_text("go")
        launcher.communicate()
    assert ended(attempt) == Exit(7)
    assert attempt.log.read_text() == "up\ndone\n"


def test_closing_the_terminal_leaves_the_server_running(attempt: AttemptDir) -> None:
    argv = _launch_in_a_child(attempt, ["sleep", "60"], after="print('launched', flush=True); input()")
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(argv[0], argv)
    said = b""
    while b"launched" not in said:
        said += os.read(terminal, 1024)
    os.write(terminal, b"\x03")  # Ctrl-C
    os.close(terminal)  # and the hang-up
    _, status = os.waitpid(pid, 0)
    assert status != 0
    server = attempt.read_pid()
    assert server and attempt.alive() and attempt.cradle_alive()
    stat = procfs.read_stat(server.pid)
    assert stat and stat.session == server.pid
    kill(server.pid)
    assert ended(attempt) == Exit(signal="SIGKILL")


def test_leftovers_are_named_reaped_and_outlived(start: Start, attempt: AttemptDir, tmp_path: Path) -> None:
    _with_fifo(tmp_path / "x")
    launched = start(["sh", "-c", "setsid sh -c 'read y < fifo' & echo $!; exit 4"], cwd=tmp_path / "x")
    assert ended(attempt) == Exit(4)
    record = attempt.read_exit_record()
    assert record and len(record.leftover) >= 1
    orphan = record.leftover[0]
    stat = procfs.read_stat(orphan)
    assert stat and stat.ppid == launched.cradle_pid  # the cradle is the orphan's parent now
    assert attempt.cradle_alive()
    (tmp_path / "x" / "fifo").write_text("go\n")
    until(lambda: procfs.read_stat(orphan) is None)
    until(lambda: not attempt.cradle_alive())


def test_the_exit_survives_a_full_disk(attempt: AttemptDir, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        one = AttemptDir(small / "1")
        launch(one.path, ["sh", "-c", "yes | head -c 200000; echo; exit 9"], ENV)
        assert ended(one) == Exit(9)
        assert os.statvfs(small).f_bavail <= 1  # it really was full
        launched = one.read_pid()
        assert launched and launched.cradle
        until(lambda: not procfs.is_alive(launched.cradle or 0, launched.cradle_ticks))
        with pytest.raises(UsageError, match="No space left on device") as caught:
            launch(small / "2", ["true"], ENV)
        assert caught.value.hint
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_disk_that_fails_in_the_cradle_starts_nothing(attempt: AttemptDir) -> None:
    marker = attempt.path.parent / "ran"
    attempt.path.mkdir(parents=True)
    (attempt.path / ".exit.tmp").mkdir()  # what the cradle wants to write is in the way
    with pytest.raises(UsageError, match=r"cannot write to .*Is a directory") as caught:
        launch(attempt.path, ["touch", str(marker)], ENV)
    assert caught.value.hint and not marker.exists() and attempt.read_pid() is None


def test_the_pid_must_be_on_disk_before_the_server_runs(attempt: AttemptDir) -> None:
    marker = attempt.path.parent / "ran"
    attempt.path.mkdir(parents=True)
    (attempt.path / ".started.tmp").mkdir()
    with pytest.raises(UsageError, match="Is a directory"):
        launch(attempt.path, ["touch", str(marker)], ENV)
    assert not marker.exists() and attempt.read_pid() is None and attempt.read_exit() is None


def test_the_cradle_is_small(start: Start) -> None:
    launched = start(["sleep", "60"])
    pages = int(Path(f"/proc/{launched.cradle_pid}/statm").read_text().split()[1])
    assert pages * resource.getpagesize() < 20 << 20


def test_limits_and_umask_are_the_users_own(start: Start, attempt: AttemptDir) -> None:
    old = os.umask(0o027)
    try:
        start(["sh", "-c", "umask; ulimit -n"])
    finally:
        os.umask(old)
    assert ended(attempt) == Exit(0)
    assert attempt.log.read_text().split() == ["0027", str(resource.getrlimit(resource.RLIMIT_NOFILE)[0])]


def test_the_cradle_stays_when_its_directory_is_deleted(start: Start, attempt: AttemptDir) -> None:
    launched = start(["sleep", "60"])
    for path in attempt.path.iterdir():
        path.unlink()
    attempt.path.rmdir()
    kill(launched.pid)
    until(lambda: not procfs.is_alive(launched.cradle_pid, launched.cradle_ticks))


def test_command_json_is_whole_json(start: Start, attempt: AttemptDir) -> None:
    start(["true", os.fsdecode(b"\xff"), "é\n"])
    ended(attempt)
    raw = (attempt.path / "command.json").read_bytes()
    assert json.loads(raw)["argv"][2] == "é\n"
