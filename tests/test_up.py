"""``bringup up`` and what can be done with a run afterwards, on a real llama.cpp server."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import urllib.request
from pathlib import Path

from bringup.engines.llamacpp.embedded import Embedded
from tests.conftest import Cli, eventually, marked


def served(endpoint: str) -> str:
    with urllib.request.urlopen(f"{endpoint}/health", timeout=10) as answer:
        return str(json.load(answer)["status"])


def test_ready_means_answered(cli: Cli, engine: Embedded, port: int) -> None:
    up = cli("up", "--json", "--", *engine.argv(port))
    assert up.code == 0, up.err
    run = up.json
    assert (run["schema"], run["state"], run["engine"]) == ("bringup.run/1", "ready", "llamacpp")
    assert run["endpoint"] == f"http://127.0.0.1:{port}"
    assert [(p["rung"], p["status"]) for p in run["probes"]] == [
        ("port", "ok"), ("health", "ok"), ("models", "ok"), ("completion", "ok"),
    ]  # fmt: skip
    assert run["probes"][-1]["data"]["text"].strip()
    assert run["probes"][-1]["data"]["tokens_per_s"] > 0
    assert served(run["endpoint"]) == "ok"

    assert cli("status", "--json").json["state"] == "ready"
    assert cli("wait", "--timeout", "5s").code == 0
    assert cli("watch", "--json").json["run"] == run["run"]
    assert run["name"] in cli("ps").out
    assert "model loaded" in cli("logs").out
    assert cli("diagnose", "--json").json["state"] == "ready"

    stop = cli("stop", "--json")
    assert (stop.code, stop.json["state"], stop.json["after"]) == (0, "stopped", "stopped"), stop.err
    assert marked(f"BRINGUP_RUN={run['run']}\0") == []
    assert cli("wait").code == 18
    assert cli("ps", "--json").json["runs"] == []
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


def test_events_are_numbered_without_gaps(cli: Cli, engine: Embedded, port: int) -> None:
    up = cli("up", "--jsonl", "--", *engine.argv(port))
    assert up.code == 0, up.err
    events = up.events
    assert [e["seq"] for e in events] == list(range(len(events)))
    assert {e["schema"] for e in events} == {"bringup.event/1"}
    states = [e["data"]["state"] for e in events if e["kind"] == "state"]
    assert states == ["launching", "starting", "ready"]
    phases = [e["data"]["name"] for e in events if e["kind"] == "phase"]
    assert phases.index("weights") < phases.index("serving")
    later = cli("watch", "--jsonl", "--from", "3")
    assert [e["seq"] for e in later.events] == list(range(3, len(events)))
    cli("stop")


def test_missing_model_is_told_with_its_cause(cli: Cli, engine: Embedded, port: int) -> None:
    argv = engine.argv(port)
    argv[argv.index("-m") + 1] = "/nonexistent/model.gguf"
    up = cli("up", "--json", "--", *argv)
    assert up.code == 10, up.err
    run = up.json
    assert (run["state"], run["diagnosis"]["cause"]["class"]) == ("failed", "missing-model-file")
    assert run["diagnosis"]["exit"] == {"code": 1, "signal": None, "certain": True}
    again = cli("diagnose", "--json")
    assert (again.code, again.json["cause"]) == (10, run["diagnosis"]["cause"])
    assert cli("wait").code == 10
    assert "missing-model-file" in cli("status").out


def test_taken_port_is_told(cli: Cli, engine: Embedded, port: int) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", port))
        holder.listen()
        up = cli("up", "--json", "--", *engine.argv(port))
    assert (up.code, up.json["diagnosis"]["cause"]["class"]) == (10, "port-in-use"), up.err


def test_a_foreign_server_on_the_port_is_never_taken_for_ours(cli: Cli, engine: Embedded, port: int) -> None:
    assert cli("up", "--json", "--name", "first", "--", *engine.argv(port)).code == 0
    second = cli("up", "--json", "--name", "second", "--", *engine.argv(port))
    assert (second.code, second.json["state"]) == (10, "failed")
    assert cli("status", "first", "--json").json["state"] == "ready"
    assert cli("stop", "first").code == 0


def test_killed_server_is_not_blamed_on_anything_it_said(cli: Cli) -> None:
    up = cli("up", "--json", "--", "sh", "-c", "echo all is well; kill -9 $$")
    assert up.code == 10
    assert up.json["diagnosis"]["exit"] == {"code": None, "signal": "SIGKILL", "certain": True}
    cause = up.json["diagnosis"]["cause"]
    assert cause["class"] == "interrupted"
    assert cause["confidence"] < 0.6


def test_code_137_is_no_signal(cli: Cli) -> None:
    up = cli("up", "--json", "--", "sh", "-c", "exit 137")
    assert up.json["diagnosis"]["exit"] == {"code": 137, "signal": None, "certain": True}
    cause = up.json["diagnosis"]["cause"]
    assert cause is None or (cause["class"], cause["confidence"] < 0.6) == ("interrupted", True)


def test_a_command_that_exits_at_once_with_0_has_failed(cli: Cli) -> None:
    up = cli("up", "--json", "--", "true")
    assert (up.code, up.json["state"], up.json["diagnosis"]["cause"]) == (11, "failed", None)


def test_missing_program_is_refused_before_the_launch(cli: Cli) -> None:
    up = cli("up", "--", "no-such-program", "--port", "1")
    assert up.code == 14
    assert "`no-such-program` is not on PATH" in up.err
    assert "Traceback" not in up.err
    assert cli("up", "--json", "--", "./nothing").json["schema"] == "bringup.error/1"


def test_forced_missing_program_fails_with_the_launcher_s_word(cli: Cli) -> None:
    up = cli("up", "--force", "--json", "--", "no-such-program")
    assert (up.code, up.json["diagnosis"]["cause"]["id"]) == (10, "command-not-found")


def test_kill_9_of_bringup_leaves_the_server_and_the_next_one_goes_on(cli: Cli, engine: Embedded, port: int) -> None:
    # The shell in front holds the start back until bringup is dead, so that the rest is seen by another one.
    gate = cli.cwd / "gate"
    script = 'while [ ! -e "$0" ]; do sleep 0.05; done; exec "$@"'
    process = cli.start("up", "--", "sh", "-c", script, str(gate), *engine.argv(port))
    run = eventually(lambda: next(iter((cli.state / "runs").glob("*/1/started")), None)).parent.parent.name
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    assert cli("status", "--json").json["state"] == "starting"
    gate.touch()
    watched = cli("watch", "--json", "--probe", "completion")
    assert (watched.code, watched.json["run"], watched.json["state"]) == (0, run, "ready"), watched.err
    seqs = [e["seq"] for e in cli("watch", "--jsonl").events]
    assert seqs == list(range(len(seqs)))
    assert cli("stop").code == 0


def test_ctrl_c_leaves_the_server_running_and_says_so(cli: Cli) -> None:
    process = cli.start("up", "--", "sh", "-c", "sleep 300")
    eventually(lambda: next(iter((cli.state / "runs").glob("*/1/started")), None))
    eventually(lambda: json.loads(next((cli.state / "runs").glob("*/run.json")).read_text())["state"] == "starting")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"goes on" in err
    assert cli("status", "--json").json["state"] == "starting"
    assert cli("stop").code == 0


def test_closed_terminal_leaves_the_server_running(cli: Cli) -> None:
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(cli.cwd)
        argv = cli.argv("up", "--", "sh", "-c", "sleep 300")
        os.execve(argv[0], argv, {**cli.env, "TERM": "xterm"})
    eventually(lambda: next(iter((cli.state / "runs").glob("*/1/started")), None))
    os.close(master)  # the terminal is gone: SIGHUP
    os.waitpid(pid, 0)
    assert cli("status", "--json").json["state"] in ("launching", "starting")
    assert cli("stop").code == 0


def test_two_watchers_see_the_same_run(cli: Cli, engine: Embedded, port: int) -> None:
    gate = cli.cwd / "gate"
    script = 'while [ ! -e "$0" ]; do sleep 0.05; done; exec "$@"'
    first = cli.start("up", "--json", "--", "sh", "-c", script, str(gate), *engine.argv(port))
    eventually(lambda: next(iter((cli.state / "runs").glob("*/1/started")), None))
    second = cli.start("wait", "--json")
    gate.touch()
    out, err = first.communicate(timeout=60)
    assert first.returncode == 0, err
    waited, err = second.communicate(timeout=60)
    assert second.returncode == 0, err
    assert json.loads(waited)["run"] == json.loads(out)["run"]
    assert cli("stop").code == 0


def test_stop_from_another_terminal_is_no_failure(cli: Cli) -> None:
    first = cli.start("up", "--json", "--", "sh", "-c", "sleep 300")
    eventually(lambda: next(iter((cli.state / "runs").glob("*/1/started")), None))
    eventually(lambda: (cli("status", "--json").json or {}).get("state") == "starting")
    assert cli("stop").code == 0
    out, _ = first.communicate(timeout=30)
    assert (first.returncode, json.loads(out)["state"]) == (18, "stopped")


def test_deadline_leaves_it_running(cli: Cli) -> None:
    up = cli("up", "--json", "--deadline", "300ms", "--", "sleep", "300")
    assert (up.code, up.json["state"]) == (13, "starting")
    assert cli("wait", "--timeout", "200ms").code == 13
    assert cli("stop").code == 0


def test_foreground_ends_with_the_server_s_own_code(cli: Cli) -> None:
    done = cli("up", "--foreground", "--", "sh", "-c", "echo from the server; exit 7")
    assert (done.code, done.out) == (7, "from the server\n"), done.err


def test_foreground_forwards_signals(cli: Cli) -> None:
    script = "trap 'echo told; exit 5' TERM; echo on; while :; do sleep 0.05; done"
    process = cli.start("up", "--foreground", "--", "sh", "-c", script)
    eventually(lambda: any(b"on\n" in p.read_bytes() for p in (cli.state / "runs").glob("*/1/log")))
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 5, err
    assert out.startswith(b"on\n")  # the whole group is told, so the shell's own child may have a word too
    assert out.endswith(b"told\n")


def test_generic_command_is_ready_by_port_and_http(cli: Cli, port: int) -> None:
    up = cli("up", "--json", "--", "python3", "-m", "http.server", str(port), "--bind", "127.0.0.1")
    assert (up.code, up.json["engine"]) == (0, "generic"), up.err
    assert up.json["endpoint"] == f"http://127.0.0.1:{port}"
    assert f"curl http://127.0.0.1:{port}/v1" not in cli("status").out
    assert cli("stop").code == 0


def test_names_are_given_and_kept_apart(cli: Cli) -> None:
    first = cli("up", "--json", "--deadline", "100ms", "--", "sleep", "300").json["name"]
    second = cli("up", "--json", "--deadline", "100ms", "--", "sleep", "300").json["name"]
    assert second == f"{first}-2"
    taken = cli("up", "--name", first, "--", "sleep", "1")
    assert taken.code == 2
    assert "still there" in taken.err
    assert cli("up", "--name", "a b", "--", "true").code == 2
    assert cli("stop", first).code == cli("stop", second).code == 0


def test_environment_is_the_user_s_plus_what_was_asked(cli: Cli) -> None:
    script = "echo $GIVEN $PASSED $PREFIX $PYTHONUNBUFFERED ${BRINGUP_RUN:+run}; exit 1"
    words = ("up", "--env", "GIVEN=a b", "--pass-env", "PASSED", "--", "PREFIX=x", "sh", "-c", script)
    cli(*words, PASSED="p")
    assert cli("logs").out == "a b p x 1 run\n"
    assert cli("up", "--pass-env", "NOT_SET_HERE", "--", "true").code == 2
    assert cli("up", "--env", "novalue", "--", "true").code == 2


def test_secrets_are_nowhere_on_disk(cli: Cli) -> None:
    secret = "s3cret-value-of-the-key"
    script = f"echo token {secret}; echo Authorization: Bearer {secret}; exit 3"
    cli("up", "--env", f"HF_TOKEN={secret}", "--", "sh", "-c", 'exec sh -c "$0"', script, "--api-key", secret)
    kept = [p for p in cli.state.rglob("*") if p.is_file() and p.name != "log"]
    assert kept
    for path in kept:
        assert secret.encode() not in path.read_bytes(), path
    for path in [cli.state, *cli.state.rglob("*")]:
        if path.is_dir():
            assert path.stat().st_mode & 0o077 == 0, path


def test_default_engine_without_a_command(cli: Cli, engine: Embedded, tmp_path: Path) -> None:
    data = tmp_path / "data" / "bringup"
    data.mkdir(parents=True)
    os.symlink(engine.python.parents[2], data / "engines")
    up = cli("up", XDG_DATA_HOME=str(tmp_path / "data"), limit=120)
    assert up.code == 0, up.err
    assert "no plan" in up.err
    for part in ("ready after", "tokens/s", "curl http://127.0.0.1:", "bringup stop smollm2-135m-instruct"):
        assert part in up.out + up.err
    assert cli("stop").code == 0


def test_full_terminal_run_restores_the_screen(cli: Cli, engine: Embedded, port: int) -> None:
    pid, master = pty.fork()
    if pid == 0:
        os.chdir(cli.cwd)
        argv = cli.argv("up", "--", *engine.argv(port))
        env = {k: v for k, v in cli.env.items() if k not in ("NO_COLOR", "CI")}
        os.execve(argv[0], argv, {**env, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"})
    seen = b""
    while True:
        try:
            block = os.read(master, 65536)
        except OSError:
            break
        if not block:
            break
        seen += block
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert b"ready after" in seen
    if b"\x1b[?25l" in seen:
        assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l")
    assert cli("stop").code == 0


def test_help_of_every_verb_has_examples(cli: Cli) -> None:
    verbs = ["up", "watch", "wait", "status", "ps", "logs", "diagnose", "stop"]
    done = [subprocess.run(cli.argv(v, "-h"), env=cli.env, capture_output=True, text=True, check=True) for v in verbs]
    for verb, shown in zip(verbs, done, strict=True):
        assert "Examples:" in shown.stdout
        assert f"bringup {verb}" in shown.stdout


def test_a_server_behind_a_script_fails_with_its_own_cause(cli: Cli, engine: Embedded, port: int) -> None:
    argv = engine.argv(port)
    argv[argv.index("-m") + 1] = "/nonexistent/model.gguf"
    script = cli.cwd / "serve.sh"
    script.write_text(f"#!/bin/sh\nexec {' '.join(argv)}\n")
    script.chmod(0o755)
    up = cli("up", "--json", "--", str(script))
    assert (up.code, up.json["engine"]) == (10, "generic")
    assert up.json["diagnosis"]["cause"]["class"] == "missing-model-file"


def test_status_never_calls_a_start_ready_that_nobody_has_asked(cli: Cli, engine: Embedded, port: int) -> None:
    gate = cli.cwd / "gate"
    script = 'while [ ! -e "$0" ]; do sleep 0.05; done; exec "$@"'
    process = cli.start("up", "--", "sh", "-c", script, str(gate), *engine.argv(port))
    eventually(lambda: next(iter((cli.state / "runs").glob("*/1/started")), None))
    os.kill(process.pid, signal.SIGKILL)
    process.wait(10)
    gate.touch()
    eventually(lambda: b"model loaded" in (cli.attempt() / "log").read_bytes())
    assert cli("status", "--json").json["state"] == "starting"
    assert cli("wait", "--json").json["state"] == "ready"
    assert cli("stop").code == 0


def test_usage_errors_say_what_to_write(cli: Cli) -> None:
    stray = cli("up", "vllm", "serve", "a b")
    assert (stray.code, "write `bringup up -- vllm serve 'a b'`" in stray.err) == (2, True)
    assert cli("up", "--").code == 2
    assert cli("up", "--on", "ssh://host", "--", "true").code == 2
    assert cli("status", "--on", "local").code == 2  # there is no run yet
    wrong = cli("wach")
    assert (wrong.code, "did you mean `bringup watch`?" in wrong.err) == (2, True)
    assert cli("wait", "--timeout", "soon").code == 2
    for done in (stray, wrong):
        assert "Traceback" not in done.err
