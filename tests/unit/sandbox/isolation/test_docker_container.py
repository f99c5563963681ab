"""A container's confinement, and who owns a container."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.isolation.docker_container import Mount, Owner, configuration
from sandbox.isolation.interface import SandboxLimits


def made(limits: SandboxLimits | None = None) -> dict[str, Any]:
    return configuration(
        image="sha256:abc",
        command=["python3"],
        env={},
        uid=1_900_000_001,
        mounts=[Mount(Path("/somewhere/session.sock"), "/run/gateway.sock")],
        unpacked_bytes=1 << 20,
        limits=limits or SandboxLimits(),
        labels={"a": "b"},
    )


def test_a_container_has_no_privilege_and_nothing_to_write_to_but_its_own_memory() -> None:
    host = made()["HostConfig"]
    assert host["CapDrop"] == ["ALL"]
    assert "CapAdd" not in host
    assert "Privileged" not in host
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert any(option.startswith("seccomp={") for option in host["SecurityOpt"])
    assert host["ReadonlyRootfs"] is True
    assert all("noexec,nosuid,nodev" in options for options in host["Tmpfs"].values())
    assert host["LogConfig"] == {"Type": "none"}


def test_the_only_thing_of_the_host_inside_is_the_gateways_socket_read_only() -> None:
    host = made()["HostConfig"]
    assert "Binds" not in host
    assert [mount["Target"] for mount in host["Mounts"]] == ["/run/gateway.sock"]
    assert all(mount["ReadOnly"] for mount in host["Mounts"])


def test_a_container_has_no_network_but_its_loopback() -> None:
    body = made()
    assert body["HostConfig"]["NetworkMode"] == "none"
    assert body["NetworkDisabled"] is False
    assert body["HostConfig"]["ExtraHosts"] == ["proxy:127.0.0.1"]


def test_every_limit_reaches_the_engine() -> None:
    limits = SandboxLimits(
        memory_bytes=123 << 20, pids=7, cpus=0.5, open_files=99, tmp_bytes=5 << 20, file_bytes=777
    )
    host = made(limits)["HostConfig"]
    assert host["Memory"] == host["MemorySwap"] == 123 << 20
    assert host["PidsLimit"] == 7
    assert host["NanoCpus"] == 500_000_000
    assert f"size={5 << 20}" in host["Tmpfs"]["/tmp"]
    ulimits = {entry["Name"]: entry for entry in host["Ulimits"]}
    assert ulimits["nofile"]["Hard"] == ulimits["nofile"]["Soft"] == 99
    assert ulimits["fsize"]["Hard"] == 777
    assert ulimits["core"]["Hard"] == 0


def test_a_container_runs_as_the_given_host_user() -> None:
    assert made()["User"] == "1900000001:1900000001"


@settings(deadline=None)
@given(
    st.builds(
        Owner,
        pid=st.integers(1, 2**22),
        started=st.integers(0, 2**63),
        boot=st.uuids().map(str),
        space=st.integers(0, 2**32),
    )
)
def test_an_owner_survives_its_label(owner: Owner) -> None:
    assert Owner.parse(owner.label()) == owner


@settings(deadline=None)
@given(st.text())
def test_a_label_that_no_owner_wrote_is_refused_or_read(label: str) -> None:
    owner = Owner.parse(label)
    assert owner is None or isinstance(owner.alive(), bool | None)


def test_this_process_is_alive() -> None:
    assert Owner.current().alive() is True
    assert Owner.current().pid == os.getpid()


def test_a_process_that_has_ended_is_not_alive_though_nobody_has_waited_for_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        fields = Path(f"/proc/{child.pid}/stat").read_text(encoding="ascii").rpartition(")")[2]
        owner = replace(Owner.current(), pid=child.pid, started=int(fields.split()[19]))
        assert owner.alive() is True
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert owner.alive() is False


@pytest.mark.parametrize(
    ("change", "alive"),
    [({"started": 1}, False), ({"boot": "another"}, False), ({"space": 1}, None)],
    ids=["its id was given to another process", "an earlier boot", "another pid namespace"],
)
def test_a_process_id_alone_proves_nothing(change: dict[str, Any], alive: bool | None) -> None:
    assert replace(Owner.current(), **change).alive() is alive
