"""In the foreground: output is passed on, signals are forwarded, the exit is the server's own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bringup.errors import UsageError
from bringup.facts import Exit
from bringup.launch.attempt import AttemptDir
from bringup.launch.foreground import own_code, run_foreground
from bringup.launch.local import CommandNotRun, Launched
from bringup.targets import procfs
from tests.io_helpers import ENV, kill, py, until

SUPERVISED = """
import os, sys; sys.path[:0] = {path!r}
from pathlib import Path
from bringup.launch.foreground import run_foreground, own_code
sys.exit(own_code(run_foreground(Path({dir!r}), {argv!r}, dict(os.environ))))
"""


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptDir:
    return AttemptDir(tmp_path / "1")


def supervised(attempt: AttemptDir, argv: list[str]) -> subprocess.Popen[bytes]:
    code = SUPERVISED.format(path=sys.path, dir=str(attempt.path), argv=argv)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True)


def test_output_and_exit(attempt: AttemptDir) -> None:
    r, w = os.pipe()
    seen: list[Launched] = []
    code = run_foreground(attempt.path, ["sh", "-c", "echo a; echo b >&2; exit 3"], ENV, tee=w, started=seen.append)
    os.close(w)
    with os.fdopen(r, "rb") as f:
        assert f.read() == attempt.log.read_bytes() == b"a\nb\n"
    assert code == attempt.read_exit() == Exit(3) and own_code(code) == 3
    pid = attempt.read_pid()
    assert pid and [pid.pid] == [one.pid for one in seen] and pid.cradle == os.getpid()
    assert (attempt.path / "command.json").exists() and attempt.read_started()


def test_big_output_is_whole(attempt: AttemptDir) -> None:
    code = run_foreground(attempt.path, py("import sys; sys.stdout.write('x' * 5_000_000)"), ENV, tee=None)
    assert code == Exit(0) and attempt.log.stat().st_size == 5_000_000


def test_a_signal_is_kept(attempt: AttemptDir) -> None:
    code = run_foreground(attempt.path, ["sh", "-c", "kill -9 $$"], ENV, tee=None)
    assert code == attempt.read_exit() == Exit(signal="SIGKILL") and own_code(code) == 137


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT"])
def test_signals_are_forwarded(attempt: AttemptDir, name: str) -> None:
    script = f"trap 'echo got {name}; exit 21' {name[3:]}; echo ready; while :; do read x < fifo; done"
    attempt.path.parent.mkdir(exist_ok=True)
    os.mkfifo(attempt.path.parent / "fifo")
    process = supervised(attempt, ["sh", "-c", f"cd {attempt.path.parent}; {script}"])
    assert process.stdout and process.stdout.readline() == b"ready\n"
    process.send_signal(signal.Signals[name])
    assert process.communicate(timeout=20)[0].endswith(f"got {name}\n".encode())
    assert process.returncode == 21 and attempt.read_exit() == Exit(21)


def test_the_servers_own_signal_becomes_128_plus(attempt: AttemptDir) -> None:
    process = supervised(attempt, py("import time; print('ready', flush=True); time.sleep(60)"))
    assert process.stdout and process.stdout.readline() == b"ready\n"
    process.terminate()
    process.communicate(timeout=20)
    assert process.returncode == 143 and attempt.read_exit() == Exit(signal="SIGTERM")


def test_kill_9_of_bringup_ends_the_server(attempt: AttemptDir) -> None:
    process = supervised(attempt, py("import time; print('ready', flush=True); time.sleep(60)"))
    assert process.stdout and process.stdout.readline() == b"ready\n"
    pid = attempt.read_pid() or until(attempt.read_pid)
    assert pid
    process.kill()
    process.communicate()
    until(lambda: not procfs.is_alive(pid.pid, pid.start_ticks))


def test_a_terminal_that_is_gone_does_not_end_the_server(attempt: AttemptDir) -> None:
    r, w = os.pipe()
    os.close(r)
    code = run_foreground(attempt.path, ["sh", "-c", "echo a; sleep 0.05; echo b"], ENV, tee=w)
    os.close(w)
    assert code == Exit(0) and attempt.log.read_bytes() == b"a\nb\n"


def test_a_child_that_keeps_the_output_open_does_not_keep_bringup(attempt: AttemptDir) -> None:
    code = run_foreground(attempt.path, ["sh", "-c", "sleep 60 & echo $!; exit 6"], ENV, tee=None)
    assert code == Exit(6)
    orphan = int(attempt.log.read_text())
    record = json.loads(attempt.exit_file.read_text())
    assert record["leftover"] == [orphan]
    kill(orphan)


def test_a_server_that_closes_its_output_is_still_waited_for(attempt: AttemptDir) -> None:
    code = run_foreground(attempt.path, ["sh", "-c", "exec >&- 2>&-; sleep 0.2; exit 8"], ENV, tee=None)
    assert code == Exit(8)


def test_outside_the_main_thread(attempt: AttemptDir) -> None:
    got: list[Exit] = []
    argv = ["sh", "-c", "sleep 60 & echo $!; exit 2"]
    thread = threading.Thread(target=lambda: got.append(run_foreground(attempt.path, argv, ENV, tee=None)))
    thread.start()
    thread.join(20)
    assert got == [Exit(2)]
    kill(int(attempt.log.read_text()))


def test_handlers_are_put_back(attempt: AttemptDir) -> None:
    before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)]
    run_foreground(attempt.path, ["true"], ENV, tee=None)
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)] == before


@pytest.mark.parametrize(("name", "code"), [("no-such-command", 127), ("/etc/passwd", 126)])
def test_what_cannot_be_run(attempt: AttemptDir, name: str, code: int) -> None:
    with pytest.raises(CommandNotRun) as caught:
        run_foreground(attempt.path, [name], ENV, tee=None)
    assert caught.value.exit == attempt.read_exit() == Exit(code)
    assert attempt.log.read_text().startswith("bringup: ")


def test_bad_cwd(attempt: AttemptDir) -> None:
    with pytest.raises(UsageError, match="no such working directory"):
        run_foreground(attempt.path, ["true"], ENV, "/no/such", tee=None)
