"""Several processes come to the weights that one comes to."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file

HERE = Path(__file__).parents[4]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def trained_by(processes: int, directory: Path) -> set[str]:
    """Train with so many; what each says of its weights."""
    environment = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    environment |= {"WORLD_SIZE": str(processes), "OMP_NUM_THREADS": "1"}
    module = "tests.unit.training.optimising.side_by_side"
    started = [
        subprocess.Popen(
            [sys.executable, "-m", module, str(directory)],
            cwd=HERE,
            env=environment | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    said = [process.communicate()[0].strip().splitlines()[-1] for process in started]
    assert [process.returncode for process in started] == [0] * processes
    return set(said)


def test_two_processes_agree_and_come_to_what_one_comes_to(tmp_path: Path) -> None:
    assert len(trained_by(2, tmp_path / "two")) == 1
    assert len(trained_by(1, tmp_path / "one")) == 1
    one, two = (
        load_file(sorted((tmp_path / name / "checkpoints").iterdir())[-1] / "weights.safetensors")
        for name in ("one", "two")
    )
    # Sums in another order: equal but for rounding, which ten steps of AdamW carry on.
    assert all(torch.allclose(one[name], two[name], atol=2e-3) for name in one)
    lines = (tmp_path / "two" / "curves.jsonl").read_text().splitlines()
    assert len(lines) == 10
