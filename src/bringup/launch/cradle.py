"""The cradle: the small process between bringup and a server. It launches, waits, and keeps the exit exactly.

Run as ``python -I -S cradle.py DIR``: standard library only, nothing of bringup. What to run comes through
standard input and not through a file, since the environment holds secrets: NUL-terminated fields: the length of
the rest, ``cwd``, ``argc``, the argv, then ``NAME=value``. One line goes back through standard output::

    ok PID TICKS CRADLE CRADLE_TICKS STARTED     the server was started, its exec succeeded
    exec ERRNO CODE TEXT                         the command cannot be run; ``exit`` holds CODE (126 or 127)
    fail ERRNO TEXT                              nothing was started: the directory, the log or the cwd is at fault

DIR gets ``pid``, ``started``, ``log`` and, when the main process ends, ``exit``. Then the cradle stays until the
last orphan of the run has ended, so that each has a parent that reaps it and can name it.
"""

import errno
import os
import signal
import sys
import time

IGNORED = ("SIGHUP", "SIGINT", "SIGTERM", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTSTP", "SIGTTIN", "SIGTTOU")
#: Reserved for ``exit`` from the start: a server that dies of a full disk still leaves its exit behind.
ROOM = 4096
WRITE_AGAIN_S, WRITE_TRIES = 1.0, 600


def now() -> str:
    """The wall clock, RFC 3339 UTC with milliseconds."""
    t = time.time()
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(t)) + f".{int(t % 1 * 1000):03d}Z"


def write_atomic(folder: int, name: str, text: str, reserved: int | None = None) -> None:
    """Write *text* to *name* in the open directory *folder*; readers see all of it or nothing.

    *reserved* is a descriptor from ``reserve``: then no new disk space is needed.
    """
    temp = f".{name}.tmp"
    data = text.encode("utf-8", "backslashreplace")
    fd = reserved
    if fd is None:
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        done = 0
        while done < len(data):
            done += os.pwrite(fd, data[done:], done)
        os.ftruncate(fd, len(data))
    finally:
        if reserved is None:
            os.close(fd)
    os.rename(temp, name, src_dir_fd=folder, dst_dir_fd=folder)


def reserve(folder: int, name: str) -> int:
    """Take the disk space that ``write_atomic`` will need for *name*; returns the open descriptor."""
    fd = os.open(f".{name}.tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600, dir_fd=folder)
    os.write(fd, b" " * ROOM)
    return fd


def open_log(folder: int) -> int:
    """The log, for appending only: several writers never overwrite each other."""
    return os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600, dir_fd=folder)


def stat_fields(pid: int) -> list[str]:
    """The fields of ``/proc/PID/stat`` after the name: [0] state, [1] parent, [19] start ticks; [] if gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:  # noqa: PTH123
            return f.read().rpartition(")")[2].split()
    except OSError:
        return []


def ticks(pid: int) -> int | None:
    """Start of *pid* in clock ticks since boot; None where there is no ``/proc``."""
    fields = stat_fields(pid)
    return int(fields[19]) if len(fields) > 19 else None


def pid_line(pid: int, cradle: int) -> str:
    """The content of ``pid``: the server's process, its start, and who waits for it."""
    return (
        f'{{"pid": {pid}, "start_ticks": {ticks(pid) or "null"}, "pgid": {pid}, '
        f'"cradle": {cradle}, "cradle_ticks": {ticks(cradle) or "null"}}}\n'
    )


def started_line(at: str) -> str:
    """The content of ``started``: wall clock, and the boot in which the pid means something."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:  # noqa: PTH123
            boot = f'"{f.read().strip()}"'
    except OSError:
        boot = "null"
    return f'{{"at": "{at}", "boot_id": {boot}}}\n'


def exit_line(status: int, leftover: list[int]) -> str:
    """The content of ``exit`` for a wait *status*: code or signal, both certain."""
    code, name = "null", "null"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            name = f'"{signal.Signals(number).name}"'
        except ValueError:
            name = f'"SIG{number}"'
    else:
        code = str(os.WEXITSTATUS(status))
    return f'{{"code": {code}, "signal": {name}, "certain": true, "at": "{now()}", "leftover": {leftover}}}\n'


def why_not(argv0: bytes, path: bytes, error: int) -> tuple[int, str]:
    """(exit code, sentence) for a command that cannot be run; the codes are a shell's."""
    name = os.fsdecode(argv0)
    if error == errno.ENOENT and path:
        return 126, f"cannot run `{name}`: its interpreter or loader was not found"
    if error in (errno.ENOENT, errno.ENOTDIR):
        return 127, f"command not found: `{name}`"
    return 126, f"cannot run `{name}`: {os.strerror(error)}"


def execute(argv: list[bytes], env: dict[bytes, bytes]) -> tuple[int, bytes]:
    """Become *argv*. Returns only on failure: errno and the file that was there but could not be run, if any."""
    if b"/" in argv[0]:
        files = [argv[0]]
    else:
        path = env.get(b"PATH", os.fsencode(os.defpath))
        files = [os.path.join(d or b".", argv[0]) for d in path.split(b":")]  # noqa: PTH118
    worst, at = errno.ENOENT, b""
    for file in files if argv[0] else []:
        try:
            os.execve(file, argv, env)  # noqa: S606
        except OSError as e:
            if e.errno in (errno.ENOENT, errno.ENOTDIR) and not os.path.exists(file):  # noqa: PTH110
                continue
            if not at:
                worst, at = e.errno or errno.EIO, file
    return worst, at


def survivors(root: int) -> list[int]:
    """Pids of all living descendants of *root*."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:  # noqa: PTH112, PTH208
        fields = stat_fields(int(name)) if name.isdigit() else []
        if len(fields) > 1 and fields[0] not in "ZXx":
            parents.setdefault(int(fields[1]), []).append(int(name))
    found, queue = [], [root]
    while queue:
        children = parents.get(queue.pop(), [])
        found += children
        queue += children
    return sorted(found)


class Cradle:
    """One server: started in ``start``, waited for in ``wait``."""

    def __init__(self, directory: str) -> None:
        self.report = sys.stdout.fileno()
        self.directory = directory
        self.folder = self.log = self.exit_fd = -1
        self.pid = 0

    def tell(self, line: str) -> None:
        """One line to the launcher, if it still lives; then let go of its pipe."""
        try:
            os.write(self.report, line.encode("utf-8", "backslashreplace") + b"\n")
        except OSError:
            pass  # a launcher that was killed changes nothing here
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.close(null)

    def prepare(self) -> None:
        """Open and reserve all that is needed on disk. Raises OSError."""
        self.folder = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.log = open_log(self.folder)
        self.exit_fd = reserve(self.folder, "exit")
        os.chdir("/")

    def forget(self) -> None:
        """Nothing will run: take back what was made for it."""
        for name in (".exit.tmp", ".pid.tmp", ".started.tmp", "pid", "started"):
            try:
                os.unlink(name, dir_fd=self.folder)
            except (OSError, ValueError):
                pass

    def start(self, cwd: bytes, argv: list[bytes], env: dict[bytes, bytes]) -> bool:
        """Start the server and tell the launcher how that went; whether there is one to wait for."""
        go_r, go_w = os.pipe()
        err_r, err_w = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(go_w)
            os.close(err_r)
            self.child(cwd, argv, env, go_r, err_w)
        os.close(go_r)
        os.close(err_w)
        at = now()
        try:
            write_atomic(self.folder, "pid", pid_line(self.pid, os.getpid()))
            write_atomic(self.folder, "started", started_line(at))
        except OSError as e:
            os.close(go_w)  # the child ends without having become the server
            os.waitpid(self.pid, 0)
            self.forget()
            self.tell(f"fail {e.errno} {os.strerror(e.errno or 0)}")
            return False
        os.write(go_w, b"g")
        os.close(go_w)
        error = b"".join(iter(lambda: os.read(err_r, 4096), b""))
        os.close(err_r)
        if error:
            os.waitpid(self.pid, 0)
            self.refused(error.decode("utf-8", "replace"))
            return False
        me = os.getpid()
        self.tell(f"ok {self.pid} {ticks(self.pid) or 0} {me} {ticks(me) or 0} {at}")
        return True

    def child(self, cwd: bytes, argv: list[bytes], env: dict[bytes, bytes], go: int, err: int) -> None:
        """The forked side: own session, clean signals, then exec. Never returns."""
        try:
            os.setsid()
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(self.log, 1)
            os.dup2(self.log, 2)
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                if signal.getsignal(number) is signal.SIG_IGN:
                    signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            if os.read(go, 1):
                if cwd:
                    os.chdir(cwd)
                error, at = execute(argv, env)
                code, text = why_not(argv[0], at, error)
                os.write(err, f"exec {error} {code} {text}".encode("utf-8", "backslashreplace"))
        except OSError as e:
            os.write(err, f"fail {e.errno} {os.strerror(e.errno or 0)}".encode())
        finally:
            os._exit(127)

    def refused(self, line: str) -> None:
        """The command never became a process: say so in ``log`` and ``exit``, then to the launcher."""
        kind, _, rest = line.partition(" ")
        code = int(rest.split(" ")[1]) if kind == "exec" else 126
        text = rest.split(" ", 2)[2] if kind == "exec" else "cannot enter the working directory"
        try:
            os.write(self.log, f"bringup: {text}\n".encode("utf-8", "backslashreplace"))
            write_atomic(self.folder, "exit", exit_line(code << 8, []), self.exit_fd)
        except OSError:
            pass  # the launcher is told through the pipe in any case
        self.tell(line)

    def wait(self) -> None:
        """Reap until nothing of the run is left; the exit is written the moment the main process ends."""
        while True:
            try:
                pid, status = os.waitpid(-1, 0)
            except ChildProcessError:
                return
            if pid == self.pid:
                self.ended(status)

    def ended(self, status: int) -> None:
        """Write ``exit``; where the disk refuses, try again for some minutes."""
        line = exit_line(status, self.leftover())
        for _ in range(WRITE_TRIES):
            try:
                fits = len(line) <= ROOM
                return write_atomic(self.folder, "exit", line, self.exit_fd if fits else None)
            except FileNotFoundError:
                return None  # the whole directory was deleted
            except OSError:
                time.sleep(WRITE_AGAIN_S)
        return None

    def leftover(self) -> list[int]:
        """Who of the run is still alive. Without children there is nobody, and no need to look."""
        try:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return []
        return survivors(os.getpid())


def become_reaper() -> None:
    """Make orphans of this process's descendants its own children (Linux only)."""
    try:
        import ctypes

        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
    except (ImportError, OSError, AttributeError):
        pass


def read_orders() -> tuple[bytes, list[bytes], dict[bytes, bytes]]:
    """(cwd, argv, environment) from standard input. Raises ValueError when it was cut short."""
    raw = b"".join(iter(lambda: os.read(0, 1 << 16), b""))
    length, _, body = raw.partition(b"\0")
    if int(length) != len(body):
        raise ValueError
    cwd, argc, *rest = body.split(b"\0")[:-1]
    env: dict[bytes, bytes] = {}
    for pair in rest[int(argc) :]:
        name, _, value = pair.partition(b"=")
        env[name] = value
    return cwd, rest[: int(argc)], env


def close_inherited() -> None:
    """Keep standard input and output only: a socket of the launcher must not stay open in here."""
    try:
        highest = max(map(int, os.listdir("/proc/self/fd")))  # noqa: PTH208
    except (OSError, ValueError):
        highest = 1024
    os.closerange(3, highest + 1)


def main() -> None:
    try:
        orders = read_orders()
    except ValueError:
        return  # the launcher died before it had said what to run
    if os.fork():
        os._exit(0)  # the launcher's child ends here; the cradle belongs to nobody
    os.setsid()
    close_inherited()
    for name in IGNORED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, it would swallow the exit status
    become_reaper()
    cradle = Cradle(sys.argv[1])
    try:
        cradle.prepare()
        alive = cradle.start(*orders)
    except OSError as e:
        cradle.forget()
        cradle.tell(f"fail {e.errno} {os.strerror(e.errno or 0)}")
        return
    del orders  # it holds the secrets, and this process may live for months
    if alive:
        cradle.wait()


if __name__ == "__main__":
    main()
