"""Run a server as a child in the foreground, for supervisors: signals go on to it, its exit becomes ours.

The same attempt directory as a detached launch is written, so ``status``, ``logs`` and ``stop`` work alike.
Unlike there, the server belongs to bringup: a supervisor that kills bringup with SIGKILL expects no server
to remain, so the kernel is asked to end it then (Linux).
"""

from __future__ import annotations

import ctypes
import os
import select
import selectors
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from bringup.facts import Exit
from bringup.launch import cradle
from bringup.launch.local import Launched, not_run, record, unwritable
from bringup.targets import procfs

FORWARDED = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT")
_CHUNK = 1 << 16


def run_foreground(
    attempt_dir: Path,
    argv: Sequence[str],
    env: Mapping[str, str],
    cwd: str | Path | None = None,
    *,
    tee: int | None = 1,
    started: Callable[[Launched], None] | None = None,
    additions: Mapping[str, str] | None = None,
) -> Exit:
    """Run *argv* until it ends and return how; *tee* is the descriptor that gets a copy of its output.

    *started* is called once with the running server; what follows it does so in a thread of its own. Must be
    called in the main thread for signals to be forwarded. Raises what ``launch`` raises.
    """
    place = record(attempt_dir, argv, env, cwd, additions)
    try:
        folder = os.open(attempt_dir, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as e:
        raise unwritable(attempt_dir, e.strerror or str(e)) from e
    try:
        server = _Server(attempt_dir, folder, tee)
        with _forwarding(server):
            launched = server.start(argv, env, place)
            if started:
                started(launched)
            return server.finish()
    finally:
        os.close(folder)


def own_code(ended: Exit) -> int:
    """What ``bringup up --foreground`` ends with: the server's code, or 128 + its signal, as shells do."""
    if ended.code is not None:
        return ended.code
    try:
        return 128 + signal.Signals[ended.signal or ""]
    except KeyError:
        return 1


class _Server:
    """The child, its output and its files."""

    def __init__(self, attempt_dir: Path, folder: int, tee: int | None) -> None:
        self.attempt_dir, self.folder, self.tee = attempt_dir, folder, tee
        self.process: subprocess.Popen[bytes] | None = None
        self.pending: list[int] = []
        #: how often to look at the child where no signal tells of its end, in seconds
        self.tick: float | None = 0.05
        self.wake_r, self.wake_w = os.pipe()
        os.set_blocking(self.wake_r, False)
        os.set_blocking(self.wake_w, False)
        try:
            self.log, self.exit_fd = cradle.open_log(folder), cradle.reserve(folder, "exit")
        except OSError as e:
            raise unwritable(attempt_dir, e.strerror or str(e)) from e

    def start(self, argv: Sequence[str], env: Mapping[str, str], cwd: str) -> Launched:
        """Spawn the child in a session of its own and record it."""
        out_r, out_w = os.pipe()
        try:
            self.process = subprocess.Popen(
                argv,
                env=env,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=out_w,
                stderr=out_w,
                start_new_session=True,
                preexec_fn=_die_with_parent(),
            )
        except OSError as e:
            self._refuse(argv[0], env, e)
        finally:
            os.close(out_w)
        assert self.process
        pid, me, at = self.process.pid, os.getpid(), cradle.now()
        self.out = out_r
        os.set_blocking(out_r, False)
        try:
            cradle.write_atomic(self.folder, "pid", cradle.pid_line(pid, me))
            cradle.write_atomic(self.folder, "started", cradle.started_line(at))
        except OSError as e:
            self.send(signal.SIGKILL)
            self.process.wait()
            raise unwritable(self.attempt_dir, e.strerror or str(e)) from e
        for number in self.pending:
            self.send(number)
        return Launched(pid, pid, me, at, procfs.start_ticks(pid), procfs.start_ticks(me))

    def on_signal(self, number: int, _frame: FrameType | None) -> None:
        """Pass a signal on; one that comes before there is a child waits for it."""
        if self.process is None:
            self.pending.append(number)
        else:
            self.send(number)

    def send(self, number: int) -> None:
        """Signal the server's whole group, as a terminal would."""
        assert self.process
        if self.process.returncode is None:
            try:
                os.killpg(self.process.pid, number)
            except (ProcessLookupError, PermissionError):
                pass

    def finish(self) -> Exit:
        """Pass output on until the child has ended, then record and return its exit."""
        assert self.process
        with selectors.DefaultSelector() as selector:
            selector.register(self.out, selectors.EVENT_READ)
            selector.register(self.wake_r, selectors.EVENT_READ)
            while self.process.poll() is None:
                for key, _ in selector.select(self.tick):
                    if key.fd == self.wake_r:
                        os.read(self.wake_r, 4096)
                    elif not self._pump():
                        selector.unregister(self.out)
        while self._pump():  # what is in the pipe now; a child that lives on may hold it open for ever
            pass
        status = -self.process.returncode if self.process.returncode < 0 else self.process.returncode << 8
        left = [s.pid for s in procfs.all_stats() if s.session == self.process.pid and not s.dead]
        try:
            cradle.write_atomic(self.folder, "exit", cradle.exit_line(status, left), self.exit_fd)
        except OSError:
            pass  # the caller has the exit in any case
        for fd in (self.out, self.log, self.exit_fd):
            os.close(fd)
        return _exit(self.process.returncode)

    def _pump(self) -> bool:
        """Copy one chunk to log and terminal; False when there is none."""
        try:
            data = os.read(self.out, _CHUNK)
        except BlockingIOError:
            return self.process is not None and self.process.returncode is None
        if not data:
            return False
        _write(self.log, data)  # a full disk costs log lines, not the server
        if self.tee is not None and not _write(self.tee, data):
            self.tee = None  # the terminal is gone
        return True

    def _refuse(self, name: str, env: Mapping[str, str], error: OSError) -> None:
        found = shutil.which(name, os.F_OK, env.get("PATH", os.defpath))
        code, text = cradle.why_not(os.fsencode(name), os.fsencode(found or ""), error.errno or 0)
        _write(self.log, f"bringup: {text}\n".encode("utf-8", "backslashreplace"))
        try:
            cradle.write_atomic(self.folder, "exit", cradle.exit_line(code << 8, []), self.exit_fd)
        except OSError:
            pass
        raise not_run(text, code) from error


@contextmanager
def _forwarding(server: _Server) -> Iterator[None]:
    """Install the handlers, and put back what was there. Outside the main thread nothing is forwarded."""
    before: dict[int, object] = {}
    wakeup = -1
    try:
        wakeup = signal.set_wakeup_fd(server.wake_w, warn_on_full_buffer=False)
        before[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        for name in FORWARDED:
            number = int(signal.Signals[name])
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
                before[number] = signal.signal(number, server.on_signal)
        server.tick = None
    except ValueError:
        pass
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        if before:
            signal.set_wakeup_fd(wakeup)
        os.close(server.wake_r)
        os.close(server.wake_w)


def _write(fd: int, data: bytes) -> bool:
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(fd, view) :]
        except BlockingIOError:  # a terminal that somebody else has made non-blocking
            select.select([], [fd], [])
        except OSError:
            return False
    return True


def _exit(returncode: int) -> Exit:
    if returncode >= 0:
        return Exit(returncode)
    try:
        return Exit(signal=signal.Signals(-returncode).name)
    except ValueError:
        return Exit(signal=f"SIG{-returncode}")


def _die_with_parent() -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:
        prctl(1, int(signal.SIGTERM), 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:
            os._exit(1)

    return ask
