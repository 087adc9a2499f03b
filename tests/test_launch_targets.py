"""Targets: the grammar, and the machine that bringup runs on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bringup.errors import UsageError
from bringup.targets import Hop, LocalTarget, format_target, open_target, parse_target

LOCAL = Hop("local")


@pytest.mark.parametrize(
    ("text", "hops"),
    [
        ("local", [LOCAL]),
        (" local ", [LOCAL]),
        ("big-box", [Hop("name", "big-box")]),
        ("a%2Fb", [Hop("name", "a/b")]),
        ("ssh://host", [Hop("ssh", "host")]),
        ("ssh://root@gpu-host/pct/129", [Hop("ssh", "gpu-host", user="root"), Hop("pct", "129")]),
        ("ssh://me@10.0.0.1:2222", [Hop("ssh", "10.0.0.1", user="me", port=2222)]),
        ("ssh://[fe80::1]:22", [Hop("ssh", "fe80::1", port=22)]),
        ("ssh://a%40b@h", [Hop("ssh", "h", user="a@b")]),
        ("pct/129", [LOCAL, Hop("pct", "129")]),
        ("local/pct/129", [LOCAL, Hop("pct", "129")]),
        ("docker/app@web", [LOCAL, Hop("docker", "web", user="app")]),
        ("podman/a%2Fb", [LOCAL, Hop("podman", "a/b")]),
        ("lxc/sudo", [LOCAL, Hop("lxc", "sudo")]),
        ("sudo", [LOCAL, Hop("sudo")]),
        ("sudo/me", [LOCAL, Hop("sudo", user="me")]),
        ("sudo/pct/129", [LOCAL, Hop("sudo"), Hop("pct", "129")]),
        ("sudo/%70ct", [LOCAL, Hop("sudo", user="pct")]),
        ("sudo/me/docker/x", [LOCAL, Hop("sudo", user="me"), Hop("docker", "x")]),
        ("slurm", [LOCAL, Hop("slurm")]),
        ("ssh://login/slurm/gpu", [Hop("ssh", "login"), Hop("slurm", "gpu")]),
        ("k8s/ns/pod", [LOCAL, Hop("k8s", "pod", namespace="ns")]),
        ("k8s/prod@ns/pod", [LOCAL, Hop("k8s", "pod", context="prod", namespace="ns")]),
        ("k8s/a%40b@ns/pod", [LOCAL, Hop("k8s", "pod", context="a@b", namespace="ns")]),
        ("ssh://h/sudo/pct/1/docker/2", [Hop("ssh", "h"), Hop("sudo"), Hop("pct", "1"), Hop("docker", "2")]),
    ],
)
def test_targets(text: str, hops: list[Hop]) -> None:
    assert parse_target(text) == hops
    assert parse_target(format_target(hops)) == hops


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "name/pct/1",
        "ssh:",
        "ssh:/",
        "ssh:host",
        "ssh://",
        "ssh:///x",
        "ssh://@h",
        "ssh://h:",
        "ssh://h:x",
        "ssh://h:0",
        "ssh://h:70000",
        "ssh://h:١",
        "ssh://-oProxyCommand=x",
        "ssh://h/",
        "ssh://h/ssh://g",
        "ssh://[::1",
        "pct",
        "pct/",
        "pct/u@",
        "pct/@1",
        "pct/1/2",
        "local/local",
        "local/",
        "pct/1/local",
        "k8s",
        "k8s/ns",
        "k8s/ns/",
        "k8s/@ns/p",
        "sudo/",
        "sudo/a/b",
        "slurm/p/q",
        "docker/%",
        "docker/%zz",
        "docker/%ff",
        "docker/%00",
        "docker/a%0ab",
        "http://x",
    ],
)
def test_bad_targets(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_target(text)
    assert "\n" not in caught.value.message and caught.value.code == 2


segment = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), min_size=1, max_size=8)


@given(
    st.lists(
        st.one_of(
            st.builds(Hop, st.sampled_from(["pct", "lxc", "docker", "podman"]), segment, user=st.none() | segment),
            st.builds(lambda u: Hop("sudo", user=u), segment),
            st.builds(lambda p: Hop("slurm", p), st.none() | segment),
            st.builds(lambda n, c, s: Hop("k8s", n, context=c, namespace=s), segment, st.none() | segment, segment),
        ),
        max_size=4,
    )
)
def test_what_is_formatted_is_read_the_same(hops: list[Hop]) -> None:
    assert parse_target(format_target([LOCAL, *hops])) == [LOCAL, *hops]


@given(st.text(max_size=30))
def test_any_text_is_a_target_or_one_line(text: str) -> None:
    try:
        assert parse_target(text)
    except UsageError as e:
        assert e.message


def test_only_local_can_be_opened() -> None:
    assert isinstance(open_target(), LocalTarget) and open_target("local").name == "local"
    with pytest.raises(UsageError, match="target kind `ssh` is not supported by this version"):
        open_target("ssh://h")
    with pytest.raises(UsageError, match="target kind `pct` is not supported"):
        open_target("pct/1")
    with pytest.raises(UsageError, match="unknown target `big-box`"):
        open_target("big-box")


def test_run() -> None:
    local = LocalTarget()
    local.connect()
    done = local.run(["sh", "-c", "cat; echo err >&2; echo $X; exit 3"], input=b"\xff\0", env={"X": "1"})
    assert (done.code, done.out, done.err) == (3, b"\xff\x001\n", b"err\n")
    assert local.run(["cat"]).out == b""  # no input is the end of input, not ours
    assert local.run(["sh", "-c", "kill -9 $$"]).code == -9
    assert local.run(["no-such-program"]).code == 127
    assert local.run(["/etc"]).code == 126
    with pytest.raises(TimeoutError):
        local.run(["sleep", "60"], timeout=0.05)
    local.close()


def test_stream() -> None:
    local = LocalTarget()
    assert b"".join(local.stream(["sh", "-c", "echo a; echo b"])) == b"a\nb\n"
    endless = local.stream(["yes"])
    assert next(endless).startswith(b"y\n")
    endless.close()  # type: ignore[attr-defined]
    assert list(local.stream(["no-such-program"])) == []
    code = "import os, time; os.write(1, b'first'); time.sleep(60)"
    slow = local.stream([sys.executable, "-c", code])
    assert next(slow) == b"first"
    slow.close()  # type: ignore[attr-defined]


def test_put_and_get(tmp_path: Path) -> None:
    local, path = LocalTarget(), tmp_path / "f"
    local.put(str(path), b"0123456789")
    assert local.get(str(path)) == b"0123456789"
    assert local.get(str(path), 3) == b"3456789" and local.get(str(path), 3, 2) == b"34"
    assert path.stat().st_mode & 0o777 == 0o600
    local.put(str(path), b"new", 0o755)
    assert local.get(str(path)) == b"new" and os.access(path, os.X_OK)
    assert [p.name for p in tmp_path.iterdir()] == ["f"]
    with pytest.raises(FileNotFoundError):
        local.get(str(tmp_path / "none"))
    with pytest.raises(OSError, match="No such file"):
        local.put(str(tmp_path / "none" / "f"), b"")
