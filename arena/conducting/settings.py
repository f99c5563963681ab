"""What an operator may set of the calendar: `ARENA_CONDUCTOR_…` in the environment or `.env`."""

from __future__ import annotations

import json
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from arena.exceptions import SeasonError, SettingsError
from arena.season.rules import SeasonRules

_Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
_Hours = Annotated[float, Field(gt=0, le=720, allow_inf_nan=False)]

DRAND_SERVERS = ("https://api.drand.sh", "https://api2.drand.sh", "https://drand.cloudflare.com")
_LARGEST_RULES = 1 << 20


class ConductorSettings(BaseSettings):
    """How the calendar is kept. What decides a race stands in `rules`, and in the journal."""

    model_config = SettingsConfigDict(
        env_prefix="ARENA_CONDUCTOR_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    rules: Path | None = None
    """The season's rules (`SeasonRules`), a `.toml` or `.json` file; without one they stay as
    they are, at first the defaults. What a file does not name is default."""
    every: _Seconds = 5
    """Seconds between two looks at what is due."""
    opens_races: bool = True
    """Whether races open. Without, what is open goes on to its end, and agents qualify for the
    race that opens when it is set again: for the day of a repair."""
    chain_every: _Seconds = 60
    """Seconds between two readings of the metagraph, and tries to put a root on chain."""

    qualifying_problems: Annotated[int, Field(ge=1, le=1_000)] = 30
    """How many problems of the open pool an agent qualifies on."""
    qualifying_validators: Annotated[int, Field(ge=1, le=64)] = 1
    """How many validators score it; the median counts."""
    stuck_minutes: Annotated[float, Field(ge=0, le=10_080, allow_inf_nan=False)] = 30.0
    """So long after its opening an evaluation that nobody can finish is given up, and an
    agent whose qualifying was is scored anew."""
    presence_hours: _Hours = 24.0
    """A validator that was heard of within this time takes part."""
    silence_hours: _Hours = 6.0
    """One that was not, while work waited for so long, does no more."""

    catalog: Path | None = None
    """The catalogue that the bank grows from; without one it does not grow by itself."""
    stock_races: Annotated[float, Field(ge=1, le=100, allow_inf_nan=False)] = 2.0
    """The held-out pool is grown to so many races' problems."""
    growth_batch: Annotated[int, Field(ge=1, le=1_000)] = 60
    """Problems that one growth brings at most: nothing else is decided meanwhile."""

    drand_servers: Annotated[tuple[str, ...], NoDecode] = DRAND_SERVERS
    """Where drand's rounds are asked for, in turn, separated by commas. Who answers is not
    believed: the round's signature is checked."""
    standin_seed: str = "arena"
    """Of the stand-in beacon, where the rules name it: it proves nothing to anybody."""

    log_delay_minutes: Annotated[float, Field(ge=0, le=1_440, allow_inf_nan=False)] = 10.0
    """So long after midnight (UTC) a day's log is closed: uploads under way come in first."""
    export_dir: Path | None = None
    """Where each day's corpus is written to; without one nothing is exported."""

    @field_validator("drand_servers", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(part.strip().rstrip("/") for part in value.split(",") if part.strip())
        return value

    @property
    def stuck_after(self) -> timedelta:
        """`stuck_minutes`."""
        return timedelta(minutes=self.stuck_minutes)

    @property
    def presence(self) -> timedelta:
        """`presence_hours`."""
        return timedelta(hours=self.presence_hours)

    @property
    def silence(self) -> timedelta:
        """`silence_hours`."""
        return timedelta(hours=self.silence_hours)

    @property
    def log_delay(self) -> timedelta:
        """`log_delay_minutes`."""
        return timedelta(minutes=self.log_delay_minutes)


def load_conductor_settings() -> ConductorSettings:
    """Read the environment. Raises SettingsError naming the first variable that is wrong."""
    try:
        return ConductorSettings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = "ARENA_CONDUCTOR_" + "_".join(str(part) for part in first["loc"]).upper()
        raise SettingsError(f"{name}: {first['msg']}") from None


def read_rules(path: Path) -> SeasonRules:
    """The rules in a file, TOML or JSON by its name. Raises SettingsError with what is wrong."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_RULES)
        text = content.decode("utf-8")
        value = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
        return SeasonRules.from_json(value)
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # of TOML, JSON and UTF-8
        raise SettingsError(f"{path} is neither TOML nor JSON: {error!s:.200}") from None
    except SeasonError as error:
        raise SettingsError(f"{path}: {error.message}") from None
