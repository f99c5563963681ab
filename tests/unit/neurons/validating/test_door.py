"""`/metrics` and `/health`, answered from a thread."""

from __future__ import annotations

import httpx
import pytest

from neurons.validating.door import Door
from neurons.validating.exceptions import StartError
from neurons.validating.metrics import Metrics


def test_metrics_and_health_are_served() -> None:
    metrics = Metrics()
    metrics.runs.labels("success").inc()
    well = True
    with (
        Door("127.0.0.1", 0, metrics.registry, lambda: (well, {"status": "ok"})) as door,
        httpx.Client(base_url=f"http://127.0.0.1:{door.port}") as client,
    ):
        assert 'arena_validator_runs_total{ending="success"} 1.0' in client.get("/metrics").text
        assert client.get("/health").json() == {"status": "ok"}
        well = False
        assert client.get("/health?x=1").status_code == 503
        assert client.get("/../etc/passwd").status_code == 404


def test_a_port_that_is_taken_is_told_with_its_remedy() -> None:
    registry = Metrics().registry
    with (
        Door("127.0.0.1", 0, registry, lambda: (True, {})) as door,
        pytest.raises(StartError, match="ARENA_VALIDATOR_METRICS_PORT"),
    ):
        Door("127.0.0.1", door.port, registry, lambda: (True, {}))
