"""Errors of the queue. Codes are stable: the API maps each to the one that validators know."""

from __future__ import annotations

from arena.exceptions import ArenaError, Fault


class WorkError(ArenaError):
    """Something that the queue refuses. `work.bad_value`: a value that cannot be stored."""

    code = "work.refused"
    fault = Fault.CALLER


class EvaluationNotFoundError(WorkError):
    """No such evaluation."""

    code = "work.evaluation_not_found"


class OtherEvaluationError(WorkError):
    """The evaluation was opened before with other problems or for other numbers."""

    code = "work.other_evaluation"


class AtCapacityError(WorkError):
    """The validator holds as many runs as it may (AT_CAPACITY)."""

    code = "work.at_capacity"


class RunNotFoundError(WorkError):
    """No such run (EVAL_RUN_NOT_FOUND)."""

    code = "work.run_not_found"


class NotRunOwnerError(WorkError):
    """The run is another validator's (NOT_RUN_OWNER)."""

    code = "work.not_run_owner"


class LeaseExpiredError(WorkError):
    """The run's lease has run out: claim again (LEASE_EXPIRED)."""

    code = "work.lease_expired"
    fault = Fault.VALIDATOR


class RunAlreadyCompleteError(WorkError):
    """The run has ended, and not in this way (RUN_ALREADY_COMPLETE)."""

    code = "work.run_already_complete"


class InvalidProblemError(WorkError):
    """The evaluation has no such problem (INVALID_PROBLEM_ID)."""

    code = "work.invalid_problem"


class OtherRecordError(WorkError):
    """Another record counts for this problem, or this record for another problem."""

    code = "work.other_record"


class IncompleteRunError(WorkError):
    """A run that would end as whole, but has no counted record for some problem."""

    code = "work.incomplete"
