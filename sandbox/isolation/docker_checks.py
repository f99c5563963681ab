"""What the Docker isolation needs of this machine, looked at one by one.

The same list decides whether the isolation opens and what `arena doctor` shows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sandbox.exceptions import IsolationError
from sandbox.isolation import docker_image
from sandbox.isolation.docker_engine import EngineError, Survey, survey
from sandbox.isolation.interface import Check, SandboxLimits

_CGROUPS = "use an engine with cgroups for memory, CPU and pids (rootless: delegate them)"


@dataclass(frozen=True, slots=True)
class Image:
    """The sandbox image, as the engine holds it."""

    id: str
    python: str
    requests: str


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found. `survey` is None without an engine, `image` without a usable image."""

    checks: tuple[Check, ...]
    survey: Survey | None = None
    image: Image | None = None

    def usable(self) -> tuple[Survey, Image]:
        """Engine and image, when nothing is lacking.

        Raises IsolationError naming the first lack and its remedy.
        """
        for check in self.checks:
            if not check.ok:
                raise IsolationError(check.detail, remedy=check.remedy)
        assert self.survey is not None, "the engine's own check would have failed"
        assert self.image is not None, "its own check would have failed"
        return self.survey, self.image


def has_mapped_users(info: Mapping[str, Any]) -> bool:
    """Whether the engine maps a container's users to others of the host's."""
    return any(_security(info, name) for name in ("userns", "rootless"))


def examine(socket: Path | None = None) -> Examination:
    """Look at the engine, what it can confine, its image and its memory. Blocks briefly."""
    reference = docker_image.reference()
    try:
        found = survey(reference, socket)
    except EngineError as error:
        return Examination((Check("docker: engine", False, error.message, error.remedy),))
    image = _image(found.image)
    version = found.info.get("ServerVersion", "unknown")
    return Examination(
        checks=(
            Check("docker: engine", True, f"{version} at {found.socket}"),
            _confinement(found.info, host_has_swap=_host_has_swap()),
            _image_check(reference, found.image, image),
            _memory(found.info),
        ),
        survey=found,
        image=image,
    )


async def docker_checks(socket: Path | None = None) -> list[Check]:
    """The lines of `arena doctor` about Docker."""
    return list((await asyncio.to_thread(examine, socket)).checks)


def _security(info: Mapping[str, Any], name: str) -> bool:
    options = info.get("SecurityOptions") or ()
    return any(f"name={name}" in str(option).split(",") for option in options)


def _confinement(info: Mapping[str, Any], *, host_has_swap: bool) -> Check:
    """Whether the engine can enforce what `docker_container.configuration` asks for.

    An engine that cannot only warns and starts the container without the limit.
    """
    name = "docker: confinement"
    if info.get("OSType") != "linux":
        return Check(name, False, "the engine runs no Linux containers", "use Docker on Linux")
    if not _security(info, "seccomp"):
        remedy = "use a kernel and an engine with seccomp"
        return Check(name, False, "the engine has no seccomp: agents would be unconfined", remedy)
    limits = {"memory": "MemoryLimit", "processes": "PidsLimit", "CPU": "CpuCfsQuota"}
    lacking = [what for what, key in limits.items() if not info.get(key)]
    if host_has_swap and not info.get("SwapLimit"):
        lacking.append("swap")
    if lacking:
        text = f"the engine cannot limit {', '.join(lacking)}"
        remedy = "swapoff -a, or boot with swapaccount=1" if lacking == ["swap"] else _CGROUPS
        return Check(name, False, text, remedy)
    return Check(name, True, f"seccomp, cgroups v{info.get('CgroupVersion', '1')}")


def _host_has_swap() -> bool:
    try:
        return len(Path("/proc/swaps").read_text(encoding="utf-8").splitlines()) > 1
    except OSError:
        return True


def _image(image: Mapping[str, Any] | None) -> Image | None:
    if image is None:
        return None
    labels = image.get("Config", {}).get("Labels") or {}
    python = labels.get(docker_image.LABEL_PYTHON)
    requests = labels.get(docker_image.LABEL_REQUESTS)
    if not (isinstance(python, str) and isinstance(requests, str)):
        return None
    return Image(str(image["Id"]), python, requests)


def _image_check(reference: str, raw: Mapping[str, Any] | None, image: Image | None) -> Check:
    name = "docker: image"
    if raw is None:
        return Check(name, False, f"the sandbox image {reference} is missing", docker_image.BUILD)
    if image is None:
        text = f"{reference} was not built to the end"
        return Check(name, False, text, docker_image.BUILD)
    return Check(name, True, f"{reference}, Python {image.python}, requests {image.requests}")


def _memory(info: Mapping[str, Any]) -> Check:
    total = int(info.get("MemTotal") or 0)
    each = SandboxLimits().memory_bytes
    room = total // each
    text = f"{total / 2**30:.1f} GiB: {room} sandboxes of {each >> 30} GiB at once"
    remedy = f"a machine with more than {each >> 30} GiB of memory"
    return Check("docker: memory", room >= 1, text, None if room >= 1 else remedy)
