"""Reading a container's counters, in the files of either version of cgroups."""

from __future__ import annotations

from pathlib import Path

from sandbox.isolation.docker_usage import Meter


def process(proc: Path, text: str) -> Path:
    (proc / "7").mkdir(parents=True)
    (proc / "7/cgroup").write_text(text)
    return proc


def counters(folder: Path, **values: str) -> None:
    folder.mkdir(parents=True)
    for name, value in values.items():
        (folder / name.replace("__", ".")).write_text(value)


def test_version_1_counts_bytes_and_nanoseconds(tmp_path: Path) -> None:
    proc = process(tmp_path / "proc", "5:memory:/docker/a\n3:cpu,cpuacct:/docker/a\n0::/docker/a\n")
    counters(tmp_path / "cg/memory/docker/a", memory__max_usage_in_bytes="4096\n")
    counters(tmp_path / "cg/cpuacct/docker/a", cpuacct__usage="2500000000\n")
    meter = Meter.of_process(7, proc, tmp_path / "cg")
    assert meter.peak_memory_bytes() == 4096
    assert meter.cpu_s() == 2.5


def test_version_2_counts_bytes_and_microseconds(tmp_path: Path) -> None:
    proc = process(tmp_path / "proc", "0::/system.slice/docker-a.scope\n")
    folder = tmp_path / "cg/system.slice/docker-a.scope"
    counters(folder, memory__peak="8192\n", cpu__stat="usage_usec 1500000\nuser_usec 1\n")
    meter = Meter.of_process(7, proc, tmp_path / "cg")
    assert meter.peak_memory_bytes() == 8192
    assert meter.cpu_s() == 1.5


def test_a_kernel_that_keeps_no_peak_says_nothing_of_it(tmp_path: Path) -> None:
    proc = process(tmp_path / "proc", "0::/a\n")
    counters(tmp_path / "cg/a", cpu__stat="usage_usec 0\n")
    meter = Meter.of_process(7, proc, tmp_path / "cg")
    assert meter.peak_memory_bytes() is None
    assert meter.cpu_s() == 0.0


def test_groups_that_cannot_be_seen_from_here_are_unknown_and_no_error(tmp_path: Path) -> None:
    proc = process(tmp_path / "proc", "0::/../../elsewhere\n")
    hidden = Meter.of_process(7, proc, tmp_path / "cg")
    gone = Meter.of_process(8, proc, tmp_path / "cg")
    for meter in (hidden, gone):
        assert meter.peak_memory_bytes() is None
        assert meter.cpu_s() is None
