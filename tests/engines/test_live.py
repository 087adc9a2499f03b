"""Real engines through ``bringup up``: every start of ``cases.toml`` ends in the state and the class it must.

Each engine lives in a cached environment that ``scripts/engines/install.py`` made. An engine that is not
installed is skipped with its reason, unless BRINGUP_REQUIRE_ENGINES is set (CI): then it fails.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bringup.follow import processes

pytestmark = pytest.mark.engines

ROOT = Path(__file__).resolve().parents[2]
CASES = tomllib.loads((Path(__file__).with_name("cases.toml")).read_text())["case"]
BRINGUP = [sys.executable, "-m", "bringup.cli.main"]
UP_LIMIT_S = 300
CODES = {"ready": 0, "failed": 10, "stopped": 18}


def environment(engine: str) -> Path:
    """Directory of the installed engine, or a skip that says why there is none."""
    script = [sys.executable, str(ROOT / "scripts/engines/install.py"), "--path", engine]
    found = subprocess.run(script, capture_output=True, text=True, check=False)
    place = Path(found.stdout.strip() or "/nonexistent")
    if not (place / "bin/python").exists():
        why = f"{engine} is not installed: run `python3 scripts/engines/install.py {engine}`"
        if os.environ.get("BRINGUP_REQUIRE_ENGINES"):
            pytest.fail(why)
        pytest.skip(why)
    return place


def model(kind: str) -> str:
    """Path of the tiny checkpoint *kind*, made where it is missing; ``absent`` and ``hub:ID`` are none."""
    if kind == "absent":
        return "/nonexistent/models/absent"
    if kind.startswith("hub:"):
        return kind.removeprefix("hub:")
    script = [sys.executable, str(ROOT / "scripts/engines/make_models.py"), kind, "--cached"]
    return subprocess.run(script, capture_output=True, text=True, check=True).stdout.strip().splitlines()[-1]


@pytest.fixture
def port() -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    yield number


@pytest.fixture
def state(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "state"
    for pid, _ in run_processes(None, tmp_path):
        os.kill(pid, signal.SIGKILL)


def run_processes(run: str | None, tmp: Path | None = None) -> list[tuple[int, str]]:
    """Living processes of *run* (or of any run whose environment names *tmp*), zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            env = (entry / "environ").read_bytes()
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        mark = f"BRINGUP_RUN={run}\0" if run else f"BRINGUP_TEST_DIR={tmp}\0"
        if mark.encode() in env and state not in "ZX":
            found.append((int(entry.name), (entry / "comm").read_text().strip()))
    return found


def argv_of(case: dict[str, Any], place: Path, port: int) -> list[str]:
    words = {
        "python": str(place / "bin/python"),
        "bin": str(place / "bin"),
        "port": str(port),
        "model": model(case["model"]),
    }
    argv = [w.format(**words) for w in case["argv"]]
    if "limit_as" in case:
        argv = ["prlimit", f"--as={case['limit_as']}", *argv]
    return argv


def bringup(
    *words: str, state: Path, env: dict[str, str] | None = None, limit: float = 60
) -> tuple[int, dict[str, Any], str]:
    """One bringup command with --json: exit code, object, talk."""
    done = subprocess.run(
        [*BRINGUP, words[0], "--json", "--state-dir", str(state), *words[1:]],
        capture_output=True, text=True, timeout=limit, env=env, check=False,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


class Holder:
    """A foreign server that holds the port: accepts, never answers."""

    def __init__(self, port: int) -> None:
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", port))
        self.socket.listen(128)

    def close(self) -> None:
        self.socket.close()


class Killer(threading.Thread):
    """Kills a process of the run as soon as its log holds a text."""

    def __init__(self, state: Path, kill: dict[str, str]) -> None:
        super().__init__(daemon=True)
        self.state, self.kill = state, kill
        self.over = threading.Event()
        self.killed: list[int] = []

    def run(self) -> None:
        while not self.over.wait(0.02):
            log = next(self.state.glob("runs/*/1/log"), None)
            pid_file = next(self.state.glob("runs/*/1/pid"), None)
            if log is None or pid_file is None:
                continue
            if re.search(self.kill["when"], log.read_text(errors="replace")):
                self.killed = self.strike(json.loads(pid_file.read_text())["pid"])
                if self.killed:
                    return

    def strike(self, main: int) -> list[int]:
        if self.kill["who"] == "group":
            os.killpg(main, signal.SIGKILL)
            return [main]
        if self.kill["who"] == "parent":
            os.kill(main, signal.SIGKILL)
            return [main]
        # By descent and not by environment: a process that sets its title overwrites its environment.
        chosen = [p for p in processes.descendants(main) if re.search(self.kill["match"], cmdline(p))]
        for pid in chosen:
            os.kill(pid, signal.SIGKILL)
        return chosen


def cmdline(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def unsettled(run: dict[str, Any], seconds: float = 10.0) -> list[Any]:
    """Processes of *run* (by its mark, and by its group) that are still there after at most *seconds*."""
    until = time.monotonic() + seconds
    while (left := [*run_processes(run["run"]), *processes.group_members(run["pid"])]) and time.monotonic() < until:
        time.sleep(0.1)
    return left


@pytest.mark.parametrize("case", CASES, ids=[f"{c['engine']}/{c['case']}" for c in CASES])
def test_start(case: dict[str, Any], state: Path, port: int, tmp_path: Path) -> None:
    place = environment(case["engine"])
    argv = argv_of(case, place, port)
    env = {**os.environ, "BRINGUP_TEST_DIR": str(tmp_path)}
    given = [w for k, v in case.get("env", {}).items() for w in ("--env", f"{k}={v.format(stubs=place)}")]
    holder = Holder(port) if case.get("occupy_port") else None
    killer = Killer(state, case["kill"]) if "kill" in case else None
    if killer:
        killer.start()
    try:
        # What preflight would refuse is launched all the same where the case is about what the engine does with it.
        force = () if case["state"] == "refused" else ("--force",)
        words = ("up", "--no-plan", *force, *given, "--", *argv)
        code, run, talk = bringup(*words, state=state, env=env, limit=UP_LIMIT_S)
    finally:
        if killer:
            killer.over.set()
        if holder:
            holder.close()
    if killer:
        killer.join(5)
        assert killer.killed, f"nothing was killed: {talk}"
    if case["state"] == "refused":
        assert (code, run["schema"]) == (14, "bringup.error/1"), talk
        assert case["evidence"] in talk
        return
    log = next(state.glob("runs/*/1/log")).read_text(errors="replace")
    told = f"{json.dumps(run.get('diagnosis'), indent=1)[:3000]}\n--- talk\n{talk}\n--- log\n{log[-4000:]}"
    assert run["state"] == case["state"], told
    assert code == CODES[case["state"]], told
    if case["state"] == "ready":
        assert_ready(run, state)
    else:
        cause = run["diagnosis"]["cause"]
        assert cause is not None, told
        assert cause["class"] in (case["class"], *case.get("also", ())), told
        assert not unsettled(run), "the failed start left processes behind"
        again, diagnosis, _ = bringup("diagnose", f"run:{run['run']}", state=state)
        assert (again, diagnosis["cause"]) == (code, cause)


def assert_ready(run: dict[str, Any], state: Path) -> None:
    """It answered, a later status sees it, and stop proves that nothing is left."""
    completion = run["probes"][-1]
    assert (completion["rung"], completion["status"]) == ("completion", "ok")
    assert completion["data"]["tokens"] > 0
    assert [p["status"] for p in run["probes"]].count("failed") == 0
    code, seen, talk = bringup("status", run["run"], state=state)
    assert (code, seen.get("state")) == (0, "ready"), talk
    code, stopped, talk = bringup("stop", run["run"], state=state, limit=90)
    assert code == 0, talk
    assert (stopped["state"], stopped["after"]) == ("stopped", "stopped")
    assert not unsettled(run)


def test_child_killed_after_ready_is_seen(state: Path, port: int, tmp_path: Path) -> None:
    """SGLang 0.5.9 says nothing when its scheduler is killed: the main process lives on and never answers."""
    case = next(c for c in CASES if (c["engine"], c["case"]) == ("sglang-0.5.9", "ok"))
    place = environment(case["engine"])
    given = [w for k, v in case.get("env", {}).items() for w in ("--env", f"{k}={v.format(stubs=place)}")]
    env = {**os.environ, "BRINGUP_TEST_DIR": str(tmp_path)}
    words = ("up", "--no-plan", *given, "--", *argv_of(case, place, port))
    code, run, talk = bringup(*words, state=state, env=env, limit=UP_LIMIT_S)
    assert code == 0, talk
    scheduler = [p for p in processes.descendants(run["pid"]) if "sglang::scheduler" in cmdline(p)]
    assert scheduler
    os.kill(scheduler[0], signal.SIGKILL)
    until = time.monotonic() + 30
    while True:
        _, seen, _ = bringup("status", run["run"], state=state)
        if seen["state"] == "failed" or time.monotonic() > until:
            break
        time.sleep(0.2)
    assert (seen["state"], seen["after"]) == ("failed", "died")
    assert seen["diagnosis"]["cause"]["class"] == "interrupted"
    code, _, talk = bringup("stop", run["run"], state=state, limit=60)
    assert code == 0, talk
    assert not unsettled(run)
