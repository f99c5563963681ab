"""docker-compose.yml holds together, starts what each profile promises, and asks for no right
that it does not say."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[3]
PROFILES = {
    "arena": {"postgres", "arena"},
    "validator": {"validator", "prometheus", "grafana"},
    "dev": {
        "postgres",
        "dev-chain",
        "dev-arena",
        "dev-validator",
        "prometheus",
        "grafana",
    },
}


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return dict(yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8")))


def _command() -> list[str] | None:
    if shutil.which("docker"):
        asked = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False)
        if asked.returncode == 0:
            return ["docker", "compose"]
    return ["docker-compose"] if shutil.which("docker-compose") else None


@pytest.mark.parametrize("profile", PROFILES)
def test_compose_itself_finds_every_profile_valid(profile: str) -> None:
    command = _command()
    if command is None:
        pytest.skip("neither `docker compose` nor docker-compose is here")
    said = subprocess.run(
        [*command, "--profile", profile, "config"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 0, said.stderr
    # Compose 1 writes every service, whatever the profile.
    assert set(yaml.safe_load(said.stdout)["services"]) >= PROFILES[profile]


@pytest.mark.parametrize(("profile", "services"), PROFILES.items())
def test_a_profile_starts_what_it_promises(
    compose: dict[str, Any], profile: str, services: set[str]
) -> None:
    started = {n for n, s in compose["services"].items() if profile in s.get("profiles", [])}
    assert started == services


@pytest.mark.parametrize("profile", PROFILES)
def test_what_a_service_waits_for_is_of_its_profile(compose: dict[str, Any], profile: str) -> None:
    for name in PROFILES[profile]:
        for other in compose["services"][name].get("depends_on", []):
            assert profile in compose["services"][other]["profiles"], (name, other)


def test_volumes_networks_and_files_are_there(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("./"):
                assert (ROOT / source).exists(), (name, source)
            elif not source.startswith("$"):
                assert source in compose["volumes"], (name, source)
        assert set(service.get("networks", [])) <= compose["networks"].keys()
        if "build" in service:
            assert (ROOT / service["build"]["dockerfile"]).is_file()


def test_nobody_is_given_the_engine_and_nobody_is_privileged(compose: dict[str, Any]) -> None:
    text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
    assert "docker.sock:" not in text
    for name, service in compose["services"].items():
        assert not service.get("privileged"), name
        assert service.get("network_mode") in (None, "none"), name
        assert service.get("pid") is None, name


def test_our_own_containers_drop_every_right_and_only_validators_take_some_back(
    compose: dict[str, Any],
) -> None:
    ours = {n: s for n, s in compose["services"].items() if "build" in s}
    for name, service in ours.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["read_only"] is True, name
        sandboxes = name in ("validator", "dev-validator")
        assert bool(service.get("cap_add")) is sandboxes, name
        assert ("no-new-privileges:true" in service["security_opt"]) is not sandboxes, name


def test_every_service_that_stays_has_a_healthcheck_or_says_nothing_depends_on_it(
    compose: dict[str, Any],
) -> None:
    for name, service in compose["services"].items():
        if service.get("restart") == "no" or name == "grafana":
            continue
        assert service["healthcheck"]["test"], name


def test_ports_are_open_on_this_machine_alone(compose: dict[str, Any]) -> None:
    for name, service in compose["services"].items():
        for port in service.get("ports", []):
            plain = re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", port)
            assert plain.startswith("127.0.0.1:"), (name, port)


def test_the_database_is_in_a_network_without_a_way_out(compose: dict[str, Any]) -> None:
    assert compose["services"]["postgres"]["networks"] == ["database"]
    assert compose["networks"]["database"]["internal"] is True
    assert "ports" not in compose["services"]["postgres"]
