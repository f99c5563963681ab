"""Several processes, one update: each takes its share of the batches, gradients are added up.

Begun by `torchrun` or `accelerate launch`, which say by the environment who is who. Losses are
divided by what the whole update is normalised with, so gradients are added and not averaged,
and every process makes the same step. The first one alone writes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
import torch.distributed as dist

from training.optimising.adamw import trained

BatchT = TypeVar("BatchT")


@contextmanager
def together() -> Iterator[None]:
    """Join the other processes, if there are any; one device for each where there are GPUs."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield
        return
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    try:
        yield
        wait()
    finally:
        dist.destroy_process_group()


def size() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def is_first() -> bool:
    """Whether this one writes."""
    return size() == 1 or dist.get_rank() == 0


def wait() -> None:
    """Until all are here."""
    if size() > 1:
        dist.barrier()


def share(batches: Sequence[BatchT]) -> Sequence[BatchT]:
    """This process's batches of an update; all of them when it is alone."""
    return batches if size() == 1 else batches[dist.get_rank() :: size()]


def add_numbers(total: float, sums: Counter[str]) -> tuple[float, Counter[str]]:
    """Loss and sums over all processes."""
    if size() == 1:
        return total, sums
    found: list[tuple[float, Counter[str]]] = [(0.0, Counter())] * size()
    dist.all_gather_object(found, (total, sums))
    added: Counter[str] = Counter()
    for _, one in found:
        added.update(one)
    return sum(part for part, _ in found), added


def add_gradients(model: torch.nn.Module) -> None:
    """The same gradient everywhere: the sum. Who had no batch adds nothing."""
    if size() == 1:
        return
    for parameter in trained(model).values():
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        dist.all_reduce(parameter.grad)
