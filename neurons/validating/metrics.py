"""What Prometheus is told of a validator."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """Counters and gauges, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.claims = self._counter("claims", "Claims by what came of them", "outcome")
        self.runs = self._counter("runs", "Runs by how they ended", "ending")
        self.problems = self._counter("problems", "Attempts at problems by what came", "outcome")
        self.records = self._counter("records_sent", "Records the arena took", "counted")
        self.weights = self._counter("weights", "Looks at the standings by what came", "tick")
        self.failures = self._counter("arena_failures", "Tries of calls that failed", "code")
        self.crashes = self._counter("task_failures", "Background tasks that failed once", "task")
        self.in_hand = self._gauge("runs_in_hand", "Evaluations that are worked on")
        self.waiting = self._gauge("spools_waiting", "Spools the arena has not wholly")
        self.spent = self._gauge("spent_today_usd", "What models and judges cost today (UTC)")
        self.disk_free = self._gauge("disk_free_bytes", "Free for the data directory")
        self.chain_age = self._gauge("chain_age_seconds", "Since the chain last answered")
        self.skew = self._gauge("clock_skew_seconds", "The arena's clock minus this one")
        self.block = self._gauge("chain_block", "The last block seen")
        self.lease = self._gauge("lease_seconds", "Until the first lease in hand runs out")
        self.gates = Gauge(
            "arena_validator_gate_shut",
            "Whether this keeps runs from being claimed",
            ("gate",),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "arena_validator_problem_seconds",
            "Time of one attempt at a problem",
            buckets=(1, 3, 10, 30, 60, 120, 300, 600, 900),
            registry=self.registry,
        )

    def _counter(self, name: str, text: str, label: str) -> Counter:
        return Counter(f"arena_validator_{name}", text, (label,), registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"arena_validator_{name}", text, registry=self.registry)
