"""Questions about processes, and the counters of kills for memory."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from bringup.follow import oom, processes
from bringup.follow.oom import OomCounters, killed_since, snapshot
from bringup.targets import procfs
from tests.io_helpers import kill, py, until


def test_writers_of_a_file(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("ab"), log.open("rb"):
        script = "exec cat >> log"
        writer = subprocess.Popen(["sh", "-c", script], cwd=tmp_path, stdin=subprocess.PIPE)
        reader = subprocess.Popen(["sh", "-c", "exec < log; read x; exec sleep 60"], cwd=tmp_path)
        try:
            until(lambda: writer.pid in processes.writers_of(log))
            assert sorted(processes.writers_of(log)) == sorted([os.getpid(), writer.pid])
            (tmp_path / "link").symlink_to("log")
            assert writer.pid in processes.writers_of(tmp_path / "link")
        finally:
            reader.kill()
            reader.wait()
            writer.communicate()
    assert processes.writers_of(log) == []
    assert processes.writers_of(tmp_path / "none") == []


def test_descendants_groups_sessions() -> None:
    process = subprocess.Popen(
        ["sh", "-c", "sh -c 'sleep 60 & sleep 60' & setsid sleep 60 & echo; wait"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    below = until(lambda: len(found := processes.descendants(process.pid)) == 4 and found)
    assert below
    outside = until(lambda: [p for p in below if (s := procfs.read_stat(p)) and s.session == p])
    group = processes.group_members(process.pid)
    assert sorted([*group, *outside]) == sorted([process.pid, *below])
    assert processes.session_members(process.pid) == group
    for pid in below:
        kill(pid)
    process.communicate()
    # killed is not yet dead: the kernel takes its time on a loaded machine
    until(lambda: processes.descendants(process.pid) == processes.group_members(process.pid) == [])


def test_run_members_match_the_whole_id() -> None:
    name = f"r{os.getpid()}"
    process = subprocess.Popen(["sleep", "60"], env={"BRINGUP_RUN": name + "x", "X": f"BRINGUP_RUN={name}"})
    until(lambda: processes.run_members(name + "x") == [process.pid])
    assert processes.run_members(name) == []
    process.kill()
    until(lambda: procfs.is_zombie(process.pid))
    assert processes.run_members(name + "x") == []
    process.wait()


def test_exe_and_cmdline() -> None:
    argv = [*py("import sys; sys.stdin.read()"), "", "a b", ""]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE)
    exe, seen = until(lambda: (r := processes.exe_and_cmdline(process.pid)) and r[1][1:2] == ["-I"] and r)  # type: ignore[misc]
    assert exe and Path(exe).samefile(os.path.realpath(argv[0])) and seen == argv
    process.communicate()
    assert processes.exe_and_cmdline(process.pid) == (None, [])


def test_listening_ports_of_nobody() -> None:
    assert processes.listening_ports([]) == processes.listening_ports([4_194_304]) == []


def test_killed_since() -> None:
    assert killed_since(OomCounters(cgroup=1, machine=5), OomCounters(cgroup=3, machine=9)) == 2
    assert killed_since(OomCounters(cgroup=1, machine=5), OomCounters(cgroup=1, machine=9)) == 0
    assert killed_since(OomCounters(cgroup=1, machine=5), OomCounters(machine=6)) == 1  # the cgroup is gone
    assert killed_since(OomCounters(cgroup=4), OomCounters(cgroup=0)) is None  # another cgroup of that name
    assert killed_since(OomCounters(), OomCounters()) is None


def test_snapshot_of_a_v2_cgroup(tmp_path: Path) -> None:
    (tmp_path / "memory.events").write_text("low 0\nhigh 3\nmax 17\noom 2\noom_kill 1\noom_group_kill 0\n")
    found = snapshot(folder=tmp_path)
    assert (found.cgroup, found.limit_hits, found.folder) == (1, 17, tmp_path)


def test_snapshot_of_a_v1_cgroup(tmp_path: Path) -> None:
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n")
    (tmp_path / "memory.failcnt").write_text("99\n")
    found = snapshot(folder=tmp_path)
    assert (found.cgroup, found.limit_hits) == (4, 99)


@pytest.mark.parametrize(
    ("lines", "files", "chosen"),
    [
        ("0::/a/b\n", ["a/b/memory.events"], "a/b"),
        ("0::/host/path\n", ["memory.events"], "."),  # a container that sees its own cgroup as the root
        ("4:memory:/x\n0::/\n", ["memory/x/memory.oom_control", "memory.events"], "memory/x"),
        ("5:cpu,memory:/x\n", ["memory/x/memory.oom_control"], "memory/x"),
        ("0::/a\n", ["unified/a/memory.events"], "unified/a"),
        ("0::/\n", [], None),
        ("", [], None),
        ("garbage\n", [], None),
    ],
)
def test_which_cgroup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str, files: list[str], chosen: str | None
) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "cg"
    (proc / "7").mkdir(parents=True)
    (proc / "7" / "cgroup").write_text(lines)
    for name in files:
        (groups / name).parent.mkdir(parents=True, exist_ok=True)
        (groups / name).write_text("oom_kill 3\n")
    monkeypatch.setattr(oom, "PROC", proc)
    monkeypatch.setattr(oom, "CGROUPS", groups)
    found = snapshot(7)
    assert found.folder == (groups / chosen if chosen else None)
    assert found.cgroup == (3 if chosen else None) and found.machine is None


def test_snapshot_of_this_process_and_of_none() -> None:
    assert snapshot(os.getpid()) == snapshot(os.getpid(), folder=snapshot(os.getpid()).folder)
    gone = snapshot(4_194_304)
    assert gone.cgroup is None and gone.folder is None


def test_a_real_kill_for_memory_is_counted(tmp_path: Path) -> None:
    base = Path("/sys/fs/cgroup/memory")
    if not (base / "memory.limit_in_bytes").exists() and not (base.parent / "cgroup.subtree_control").exists():
        pytest.skip("no memory cgroup here")
    v1 = (base / "memory.oom_control").exists()
    group = (base if v1 else base.parent) / f"bringup-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / ("memory.limit_in_bytes" if v1 else "memory.max")).write_text(str(32 << 20))
    except OSError:
        if group.exists():
            group.rmdir()
        pytest.skip("making a memory cgroup is not allowed here")
    code = "import sys; sys.stdin.read(1); x = bytearray(b'x') * (256 << 20); print('lived')"
    process = subprocess.Popen(py(code), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        (group / "cgroup.procs").write_text(str(process.pid))
        before = snapshot(process.pid)
        assert before.folder == group
        process.communicate(b"go", timeout=60)
        after = snapshot(folder=before.folder)
        assert process.returncode == -9 and killed_since(before, after) == 1
        assert after.limit_hits and after.limit_hits > (before.limit_hits or 0)
    finally:
        process.kill()
        process.wait()
        group.rmdir()
