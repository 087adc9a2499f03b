"""The machine on which bringup itself runs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bringup.targets.base import Ran

_CHUNK = 1 << 16


class LocalTarget:
    """This machine: always reachable, nothing to connect."""

    name = "local"

    def connect(self) -> None:
        """Nothing to do."""

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes | None = None,  # noqa: A002
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Ran:
        """See ``Target.run``."""
        own = {**os.environ, **env} if env else None
        stdin = subprocess.DEVNULL if input is None else None
        try:
            done = subprocess.run(
                list(argv), input=input, stdin=stdin, env=own, timeout=timeout, capture_output=True, check=False
            )
        except subprocess.TimeoutExpired as e:
            raise TimeoutError(f"`{argv[0]}` did not end within {timeout:g} s") from e
        except FileNotFoundError as e:
            return Ran(127, b"", str(e).encode())
        except OSError as e:
            return Ran(126, b"", str(e).encode())
        return Ran(done.returncode, done.stdout, done.stderr)

    def stream(self, argv: Sequence[str]) -> Iterator[bytes]:
        """See ``Target.stream``."""
        try:
            process = subprocess.Popen(
                list(argv), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError:
            return
        assert process.stdout
        try:
            while data := os.read(process.stdout.fileno(), _CHUNK):
                yield data
        finally:
            process.stdout.close()
            process.kill()
            process.wait()

    def put(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """See ``Target.put``."""
        there = Path(path)
        temp = there.with_name(f".{there.name}.{os.getpid()}.tmp")
        fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            with os.fdopen(fd, "wb") as f:
                f.write(data)
            temp.replace(there)
        except BaseException:
            temp.unlink(missing_ok=True)
            raise

    def get(self, path: str, offset: int = 0, limit: int | None = None) -> bytes:
        """See ``Target.get``."""
        with Path(path).open("rb") as f:
            f.seek(offset)
            return f.read() if limit is None else f.read(limit)

    def close(self) -> None:
        """Nothing to do."""
