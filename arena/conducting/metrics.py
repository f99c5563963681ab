"""What Prometheus is told of the calendar."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class ConductorMetrics:
    """Counters of what was done and what failed."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        registry = registry or CollectorRegistry()
        self.done = Counter(
            "arena_conductor_done_total",
            "What the calendar brought about, by kind",
            ("what",),
            registry=registry,
        )
        self.failures = Counter(
            "arena_conductor_failures_total",
            "Steps of the calendar that failed, by step and code",
            ("step", "code"),
            registry=registry,
        )
        self.seconds = Histogram(
            "arena_conductor_step_seconds",
            "How long a look at the calendar took",
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300),
            registry=registry,
        )
        self.looked_at = Gauge(
            "arena_conductor_looked_timestamp_seconds",
            "When the calendar was last looked at, in Unix seconds",
            registry=registry,
        )
