from __future__ import annotations

from scoring.exceptions import ErrorInfo, Fault
from scoring.outcome import Axes, Outcome, Reason
from scoring.types import Bucket
from training.evaluation.directory import Evaluation
from training.evaluation.observing import Observed
from training.evaluation.results import SampleResult

DOWN = ErrorInfo("model.unreachable", Fault.VALIDATOR, "no answer")
CRASH = ErrorInfo("agent.crashed", Fault.AGENT, "it fell over")


def outcome(success: bool, price: float | None = 1.0, ids: tuple[str, ...] = ("1",)) -> Outcome:
    reason = None if success else Reason.PRICE
    return Outcome(Bucket.PRODUCT, success, reason, success, Axes(price=price), {}, ids)


def result(
    problem_id: str,
    success: bool | None,
    sample: int = 0,
    *,
    bucket: Bucket = Bucket.PRODUCT,
    price: float | None = 1.0,
    ids: tuple[str, ...] = ("1",),
    observed: Observed | None = None,
    failure: ErrorInfo | None = None,
) -> SampleResult:
    return SampleResult(
        problem_id=problem_id,
        bucket=bucket,
        cluster=None,
        sample=sample,
        run_id=f"{problem_id}-{sample}",
        outcome=None if success is None else outcome(success, price, ids),
        observed=observed or Observed(steps=2),
        failure=DOWN if success is None else failure,
    )


def evaluation(
    *problems: str, samples: int = 1, label: str = "mine", bucket: Bucket = Bucket.PRODUCT
) -> Evaluation:
    return Evaluation(label, "m", samples, tuple((name, bucket) for name in problems), {})
