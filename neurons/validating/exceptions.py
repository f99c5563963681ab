"""Why a validator ends, or gives a run up. Codes are stable: the arena shows them."""

from __future__ import annotations

from neurons.exceptions import ArenaError, Fault


class StartError(ArenaError):
    """Something without which a validator cannot start."""

    code = "validator.cannot_start"
    fault = Fault.CALLER


class NotAllowedError(ArenaError):
    """A hotkey that may not validate: not registered, without a permit, too little at stake."""

    code = "validator.not_allowed"
    fault = Fault.CALLER


class RunGivenUpError(ArenaError):
    """A run that this validator cannot finish, by no fault of the agent's."""

    code = "validator.run_given_up"
    fault = Fault.VALIDATOR


class RecordsRefusedError(ArenaError):
    """The arena refuses a record for good: sending it again would not help."""

    code = "validator.records_refused"
    fault = Fault.VALIDATOR


class ChainForkedError(ArenaError):
    """The arena has another record in this hotkey's chain of seals: two machines sign."""

    code = "validator.chain_forked"
    fault = Fault.CALLER
