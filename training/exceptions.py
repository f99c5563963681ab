"""Errors of the training room. Codes are stable: commands show them."""

from __future__ import annotations

from scoring.exceptions import ArenaError, ErrorInfo, Fault

__all__ = [
    "ArenaError",
    "CheckpointError",
    "CorpusRefusedError",
    "DiskFullError",
    "DivergedError",
    "ErrorInfo",
    "EvaluationError",
    "ExtraMissingError",
    "Fault",
    "GuardError",
    "MaskError",
    "NothingToLearnError",
    "OtherBaseError",
    "OtherRunError",
    "OverBudgetError",
    "PolicyError",
    "RecipeError",
    "RenderError",
    "RewardError",
    "RolloutError",
    "ServingError",
    "StepFailedError",
    "TokenizerError",
    "TrainingError",
]


class TrainingError(ArenaError):
    """A training run that cannot be made as asked."""

    code = "training.failed"
    fault = Fault.CALLER


class ExtraMissingError(TrainingError):
    """The extra `training` is not installed."""

    code = "training.extra_missing"
    fault = Fault.CALLER


class RecipeError(TrainingError):
    """A recipe that is not there, or whose values cannot be used."""

    code = "training.bad_recipe"
    fault = Fault.CALLER


class TokenizerError(TrainingError):
    """A tokenizer that cannot be read or made, or is not of the Qwen3 family."""

    code = "training.bad_tokenizer"
    fault = Fault.CALLER


class RenderError(TrainingError):
    """Messages that cannot be rendered: no list of chat messages, or none at all."""

    code = "training.bad_messages"
    fault = Fault.CALLER


class CorpusRefusedError(TrainingError):
    """A corpus that is not trained on: another schema, proofs that fail, no rows."""

    code = "training.corpus_refused"
    fault = Fault.CALLER


class GuardError(TrainingError):
    """A cluster of evaluation or of what is never touched, on its way to a gradient."""

    code = "training.guard"
    fault = Fault.CALLER


class MaskError(TrainingError):
    """A loss mask that covers something else than what the model is to say."""

    code = "training.mask"
    fault = Fault.PLATFORM


class CheckpointError(TrainingError):
    """A checkpoint that cannot be read: not there, incomplete, damaged."""

    code = "training.bad_checkpoint"
    fault = Fault.CALLER


class OtherBaseError(CheckpointError):
    """A checkpoint, or an adapter, of another base model than the one at hand."""

    code = "training.other_base"
    fault = Fault.CALLER


class OtherRunError(TrainingError):
    """A directory that holds a run with another recipe, corpus or beginning."""

    code = "training.other_run"
    fault = Fault.CALLER


class DiskFullError(TrainingError):
    """A disk that took not all that was written; the last good checkpoint is untouched."""

    code = "training.disk"
    fault = Fault.CALLER


class DivergedError(TrainingError):
    """A loss or a gradient that is no number any more."""

    code = "training.diverged"
    fault = Fault.CALLER


class PolicyError(TrainingError):
    """A model that cannot generate: not in eval mode, broken weights, no memory left."""

    code = "training.policy_failed"
    fault = Fault.CALLER


class EvaluationError(TrainingError):
    """An evaluation that cannot be made, gone on with or reported."""

    code = "evaluation.failed"
    fault = Fault.CALLER


class RewardError(TrainingError):
    """A reward that cannot be given: no teacher's steps, a head of another backbone."""

    code = "training.reward"
    fault = Fault.CALLER


class NothingToLearnError(TrainingError):
    """No gradient to be had: every group of rollouts came out alike, or every label is one."""

    code = "training.nothing_to_learn"
    fault = Fault.CALLER


class ServingError(TrainingError):
    """A server that cannot be started as asked."""

    code = "serving.failed"
    fault = Fault.CALLER


class RolloutError(TrainingError):
    """Rollouts that cannot be made, or gone on with: a model server that died, a problem
    without a cluster."""

    code = "training.rollouts"
    fault = Fault.CALLER


class StepFailedError(TrainingError):
    """A step of the whole way that came to no end; it says which, and what it said."""

    code = "training.step_failed"
    fault = Fault.CALLER


class OverBudgetError(TrainingError):
    """A step of the whole way that took longer than its recipe lets it."""

    code = "training.over_budget"
    fault = Fault.CALLER
