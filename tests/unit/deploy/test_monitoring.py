"""Dashboards and alerts ask for metrics and labels that the processes have."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry

from arena.api.metrics import Metrics as ApiMetrics
from arena.conducting.metrics import ConductorMetrics
from neurons.validating.metrics import Metrics as ValidatorMetrics

DEPLOY = Path(__file__).parents[3] / "deploy"
DASHBOARDS = sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))
_NAME = re.compile(r"\barena_[a-z_]+")
_SELECTED = re.compile(r"(arena_[a-z_]+)\{([^}]*)\}")
_GROUPED = re.compile(r"by \(([a-z_, ]+)\)")
TARGET = {"instance", "job", "le"}
"""Labels that Prometheus itself gives, and the buckets'."""


def _known() -> dict[str, set[str]]:
    """Every series with its labels."""
    conductor = CollectorRegistry()
    ConductorMetrics(conductor)
    found: dict[str, set[str]] = {}
    for registry in (ApiMetrics().registry, ValidatorMetrics().registry, conductor):
        for collector, names in registry._collector_to_names.items():
            for name in names:
                found[name] = set(getattr(collector, "_labelnames", ()))
    return found


def _expressions() -> list[tuple[str, str]]:
    rules = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))
    found = [(r["alert"], r["expr"]) for group in rules["groups"] for r in group["rules"]]
    for path in DASHBOARDS:
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            found += [(panel["title"], target["expr"]) for target in panel["targets"]]
    return found


@pytest.mark.parametrize(("where", "expression"), _expressions())
def test_an_expression_asks_for_series_and_labels_that_exist(where: str, expression: str) -> None:
    known = _known()
    names = set(_NAME.findall(expression))
    assert names
    assert names <= known.keys(), where
    labels = set().union(*(known[name] for name in names)) | TARGET
    for grouped in _GROUPED.findall(expression):
        assert {label.strip() for label in grouped.split(",")} <= labels, where
    for name, selected in _SELECTED.findall(expression):
        assert {part.split("=")[0].rstrip("!") for part in selected.split(",")} <= known[name]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboards_panels_are_apart_and_ask_the_provisioned_source(path: Path) -> None:
    source: dict[str, Any] = yaml.safe_load(
        (DEPLOY / "grafana/provisioning/datasources/prometheus.yml").read_text(encoding="utf-8")
    )
    panels = json.loads(path.read_text(encoding="utf-8"))["panels"]
    assert {panel["datasource"]["uid"] for panel in panels} == {source["datasources"][0]["uid"]}
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels]
    assert len(places) == len(set(places)) == len({panel["id"] for panel in panels})
    assert all(panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24 for panel in panels)


def test_prometheus_reads_the_rules_that_lie_beside_it() -> None:
    said = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    assert all((DEPLOY / "prometheus" / name).is_file() for name in said["rule_files"])
