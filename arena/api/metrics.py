"""What Prometheus is told of one process. Every app has a registry of its own."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram


class Metrics:
    """Counters of requests, refusals and records."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "arena_api_requests_total",
            "Requests by route and status",
            ("method", "route", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "arena_api_request_seconds",
            "Time to answer by route",
            ("route",),
            buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10, 30),
            registry=self.registry,
        )
        self.refusals = Counter(
            "arena_api_refusals_total",
            "Refused requests by code",
            ("code",),
            registry=self.registry,
        )
        self.records = Counter(
            "arena_api_records_total",
            "Sealed records by what became of them",
            ("outcome",),
            registry=self.registry,
        )
        self.score_mismatches = Counter(
            "arena_api_score_mismatches_total",
            "Completed runs whose stated score is not what their records say",
            registry=self.registry,
        )
