"""What an operator may set of a validator: `ARENA_VALIDATOR_…` variables and `.env`.

Options on the command line win. The table of models, the judge, the wallet and the data
directory have the settings of the whole house (`ARENA_MODELS…`, `ARENA_JUDGE_…`,
`ARENA_WALLET_…`, `ARENA_DATA_DIR`).
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from arena.exceptions import SettingsError
from arena.problems.titles import DEFAULT_MODEL, TitleMode
from arena.runs.opening import SandboxKind

_Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class Drain(StrEnum):
    """What a first SIGTERM does with the runs in hand."""

    FINISH = "finish"
    """Go on with them for `drain_seconds` at most; what is not finished then is returned."""
    RETURN = "return"
    """Stop them and tell the arena, so that another validator may have them at once."""
    KEEP = "keep"
    """Stop them and say nothing: started again within the lease, this validator goes on."""


class ValidatorSettings(BaseSettings):
    """How a validator works. Times in seconds."""

    model_config = SettingsConfigDict(
        env_prefix="ARENA_VALIDATOR_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
    )

    arena_url: str | None = None
    """The arena's address, `https://host`."""
    netuid: Annotated[int, Field(ge=0, le=65_535)] = 15
    network: str = "finney"
    """The chain: a name that the SDK knows, an address, or `local-chain:FILE`."""
    catalog: Path | None = None
    """A product file, or a built index."""
    model: str | None = None
    """The model that agents are told of; needed where the table has several."""
    sandbox: SandboxKind | None = None
    """How agents are confined; by default Docker when it is ready, else bubblewrap."""
    sandbox_seconds: Annotated[float, Field(ge=1, le=3_600, allow_inf_nan=False)] = 300.0
    """An agent's own time for a problem. This and the two below are the network's: with less,
    agents fail here that succeed elsewhere."""
    sandbox_memory_mib: Annotated[int, Field(ge=64, le=1 << 20)] = 4_096
    sandbox_pids: Annotated[int, Field(ge=8, le=65_536)] = 256
    title: TitleMode = TitleMode.NONE
    title_model: str = DEFAULT_MODEL

    workers: Annotated[int | None, Field(ge=1, le=256)] = None
    """Problems at once; by default as many sandboxes as fit memory and cores."""
    evaluations: Annotated[int, Field(ge=1, le=64)] = 1
    """Evaluations in hand at once; the arena has a limit of its own."""
    poll_seconds: _Seconds = 30
    """Pause after the arena had no work."""
    heartbeat_seconds: _Seconds = 30
    chain_seconds: _Seconds = 60
    """Between two looks at the chain."""
    chain_timeout_seconds: _Seconds = 120
    """Longest wait for one answer of the chain."""
    weights: bool = True
    """Whether weights are set at all."""
    weights_seconds: _Seconds = 300
    """Between two looks at the standings."""
    request_seconds: _Seconds = 60
    """Longest silence of the arena within one answer."""
    retry_first_seconds: _Seconds = 5
    retry_longest_seconds: _Seconds = 300
    """Waits between two tries of a call; they double from the first to the longest."""

    disk_floor_gib: Annotated[float, Field(ge=0, le=1 << 20, allow_inf_nan=False)] = 2.0
    """No run is claimed with less room than this for the data directory."""
    usd_a_day: Annotated[float | None, Field(ge=0, allow_inf_nan=False)] = None
    """What models and judges may cost in a day (UTC); no run is claimed beyond. None: no limit."""
    minimum_stake: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """The stake in TAO that the arena asks of validators, to be told of a lack at the start."""
    keep_hours: Annotated[float, Field(ge=0, le=24 * 3650, allow_inf_nan=False)] = 72
    """How long the directory of an evaluation stays whose records the arena has."""

    drain: Drain = Drain.FINISH
    drain_seconds: Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)] = 1_800

    metrics_host: str = "127.0.0.1"
    metrics_port: Annotated[int, Field(ge=-1, le=65_535)] = 9108
    """Port of `/metrics` and `/health`; 0 takes a free one, -1 serves none."""
    log_json: bool = False
    """One JSON object a line, instead of lines for people."""


def load_validator_settings(given: dict[str, Any] | None = None) -> ValidatorSettings:
    """The environment, under what the command line says (None there is: not said).

    Raises SettingsError naming the first setting that is wrong, without its value.
    """
    options = {name: value for name, value in (given or {}).items() if value is not None}
    try:
        return ValidatorSettings(**options)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = "ARENA_VALIDATOR_" + "_".join(str(part) for part in first["loc"]).upper()
        raise SettingsError(f"{name}: {first['msg']}") from None
