"""``watch --log`` and ``diagnose``: startups that bringup did not launch, and input that is none."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bringup.engines.llamacpp.embedded import Embedded
from tests.conftest import Cli, eventually

LOGS = Path(__file__).parent / "data" / "logs"


def test_finished_log_that_became_ready(cli: Cli) -> None:
    log = LOGS / "sglang" / "0523_kill_sigkill_main.log"
    watched = cli("watch", "--log", str(log), "--json")
    assert (watched.code, watched.json["state"], watched.json["engine"]) == (0, "ready", "sglang"), watched.err


def test_finished_log_that_failed(cli: Cli) -> None:
    watched = cli("watch", "--log", str(LOGS / "sglang" / "0523_fail_truncated_shard.log"), "--json")
    assert (watched.code, watched.json["diagnosis"]["cause"]["class"]) == (10, "corrupt-weights"), watched.err


def test_finished_log_that_ends_before_a_verdict(cli: Cli, tmp_path: Path) -> None:
    whole = (LOGS / "sglang" / "0523_ok_tp1.log").read_bytes()
    cut = tmp_path / "cut.log"
    cut.write_bytes(whole[: whole.index(b"Load weight end")])
    assert cli("watch", "--log", str(cut), "--json").code == 13
    assert cli("diagnose", str(cut), "--json").json["phase"] == "weights"


@pytest.fixture
def foreign(engine: Embedded, port: int, tmp_path: Path):  # type: ignore[no-untyped-def]
    """A server that somebody else launched, its output in a file."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*more: str) -> tuple[subprocess.Popen[bytes], Path]:
        log = tmp_path / "server.log"
        with log.open("wb") as out:
            started.append(subprocess.Popen([*engine.argv(port), *more], stdout=out, stderr=out))
        return started[-1], log

    yield start
    for process in started:
        process.kill()
        process.wait(10)


def test_live_foreign_server_is_watched_to_its_model_list_and_no_further(cli: Cli, foreign) -> None:  # type: ignore[no-untyped-def]
    process, log = foreign()
    watched = cli("watch", "--log", str(log), "--json")
    assert (watched.code, watched.json["state"], watched.json["pid"]) == (0, "ready", process.pid), watched.err
    assert [p["rung"] for p in watched.json["probes"]] == ["port", "health", "models"]
    assert process.poll() is None


def test_foreign_server_whose_key_is_not_known_is_ready_and_that_is_said(cli: Cli, foreign) -> None:  # type: ignore[no-untyped-def]
    process, log = foreign("--api-key", "k-of-somebody-else")
    words = ("watch", "--log", str(log), "--json", "--probe", "completion", "--pid", str(process.pid))
    watched = cli(*words)
    assert watched.code == 0, watched.err  # the key is read from the server's own command line
    assert watched.json["probes"][-1]["status"] == "ok"
    assert "k-of-somebody-else" not in watched.out + watched.err


def test_own_server_with_a_key(cli: Cli, engine: Embedded, port: int) -> None:
    key = "sk-a-key-of-the-test"
    up = cli("up", "--json", "--", *engine.argv(port), "--api-key", key)
    assert up.code == 0, up.err
    assert up.json["probes"][-1]["status"] == "ok"
    assert key not in up.out + up.err
    for path in cli.state.rglob("*"):
        if path.is_file():
            assert key.encode() not in path.read_bytes(), path
    assert cli("stop").code == 0


def test_foreign_server_that_hangs_after_a_fatal_line_is_left_alone(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "hang.log"
    text = (LOGS / "sglang" / "0523_fail_port_in_use.log").read_text()
    script = f"import sys,time; sys.stdout.write({text!r}); sys.stdout.flush(); time.sleep(300)"
    with log.open("wb") as out:
        process = subprocess.Popen([sys.executable, "-c", script], stdout=out)
    try:
        watched = cli("watch", "--log", str(log), "--json", "--engine", "sglang")
        assert (watched.code, watched.json["diagnosis"]["cause"]["class"]) == (10, "port-in-use"), watched.err
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(10)


def test_foreign_server_that_is_killed(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "killed.log"
    with log.open("wb") as out:
        process = subprocess.Popen(["sh", "-c", "echo loading; exec sleep 300"], stdout=out)
    watch = cli.start("watch", "--log", str(log), "--json")
    eventually(lambda: Path(f"/proc/{watch.pid}/fd").exists() and log.stat().st_size)
    process.send_signal(signal.SIGKILL)
    process.wait(10)
    out_, err = watch.communicate(timeout=30)
    assert watch.returncode in (10, 11, 17), err
    assert json.loads(out_)


@pytest.mark.parametrize("verb", ["watch", "diagnose"])
def test_a_log_that_is_none(cli: Cli, verb: str, tmp_path: Path) -> None:
    flag = ("--log",) if verb == "watch" else ()
    for path, words in ((tmp_path, "is a directory"), (tmp_path / "nothing.log", "there is no file")):
        done = cli(verb, *flag, str(path))
        assert (done.code, words in done.err, done.out) == (2, True, ""), done.err
        assert "Traceback" not in done.err


@pytest.mark.parametrize(
    "data",
    [b"", b"\x00\xff\xfe\x01" * 5000, bytes(range(256)) * 64, b"Reading package lists...\nDone\n", b"hello"],
    ids=["empty", "junk", "bytes", "apt", "no-newline"],
)
def test_input_without_a_startup_is_said_to_be_none(cli: Cli, data: bytes, tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    log.write_bytes(data)
    assert cli("diagnose", str(log)).code == 17
    assert cli("diagnose", "-", stdin=data).code == 17
    done = cli("watch", "--log", str(log), "--json")
    assert done.code in (13, 17), done.err
    assert done.json


def test_a_line_of_100_mb_is_read_with_flat_memory(cli: Cli, tmp_path: Path) -> None:
    log = tmp_path / "long.log"
    with log.open("wb") as out:
        for _ in range(100):
            out.write(b"x" * (1 << 20))
        out.write(b"\nbringup: command not found: `vllm`\n")
    limited = ["prlimit", f"--as={600 << 20}", *cli.argv("diagnose", str(log), "--json")]
    done = subprocess.run(limited, env=cli.env, capture_output=True, timeout=60, check=False)
    assert done.returncode == 10, done.stderr
    assert json.loads(done.stdout)["cause"]["id"] == "command-not-found"


def test_files_and_runs_are_not_mixed_up(cli: Cli, tmp_path: Path) -> None:
    cli("up", "--name", "x.log", "--", "false")
    (tmp_path / "x.log").write_bytes(b"")
    assert cli("diagnose", "x.log").code == 17  # a file of that name is taken for the file
    assert cli("diagnose", "run:x.log").code == 11
    assert cli("diagnose", "x.log", "run:x.log").code == 2
    assert cli("status", "nothing").code == 2


def test_no_permission(cli: Cli, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        words = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    else:
        words = []
    log = tmp_path / "secret.log"
    log.write_bytes(b"x")
    log.chmod(0)
    probe = subprocess.run([*words, *cli.argv("--version")], env=cli.env, capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("another user cannot run this Python here (its files are not readable for others)")
    argv = [*words, *cli.argv("diagnose", str(log))]
    done = subprocess.run(argv, env=cli.env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "error:" in done.stderr
    assert "Traceback" not in done.stderr


def test_full_disk_in_mid_run_is_said_and_the_server_runs_on(cli: Cli, engine: Embedded, port: int) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    cli.state.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs", str(cli.state)], check=True)
    try:
        script = 'head -c 4m /dev/zero > "$0"/fill; exec "$@"'
        up = cli("up", "--json", "--", "sh", "-c", script, str(cli.state), *engine.argv(port))
        assert "Traceback" not in up.err
        # The log itself cannot be written any more, so the server may be ready without a word in it.
        assert up.code in (0, 13), (up.code, up.err)
        assert "cannot record this run" in up.err
        (cli.state / "fill").unlink()
        assert cli("stop").code == 0
    finally:
        subprocess.run(["umount", "-l", str(cli.state)], check=False)


def test_state_that_cannot_be_written(cli: Cli) -> None:
    with socket.socket():
        done = cli("up", "--state-dir", "/proc/nowhere", "--", "true")
    assert done.code in (1, 2)
    assert "error:" in done.err
    assert "hint:" in done.err
    assert "Traceback" not in done.err


def test_ledger_holds_the_run_and_its_events(cli: Cli) -> None:
    import sqlite3

    run = cli("up", "--json", "--", "false").json["run"]
    with sqlite3.connect(cli.state / "ledger.sqlite3") as db:
        assert db.execute("SELECT state FROM runs WHERE run = ?", (run,)).fetchone() == ("failed",)
        assert db.execute("SELECT count(*) FROM attempts WHERE run = ?", (run,)).fetchone() == (1,)
        assert db.execute("SELECT exit_code FROM outcomes WHERE run = ?", (run,)).fetchone() == (1,)
        seqs = [s for (s,) in db.execute("SELECT seq FROM events WHERE run = ? ORDER BY seq", (run,))]
    assert seqs == list(range(len(seqs)))
    (cli.state / "ledger.sqlite3").write_bytes(b"not a database" * 100)
    broken = cli("up", "--", "false")
    assert broken.code == 11
    assert "the ledger cannot be written" in broken.err
