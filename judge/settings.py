"""What an operator may set of the judge: `ARENA_JUDGE_…` in the environment or `.env`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from judge.exceptions import Fault, JudgeError
from judge.rendering import DEFAULT_TOKENS


class JudgeSettings(BaseSettings):
    """How traces are judged. Defaults are those of the public network where it has any."""

    model_config = SettingsConfigDict(
        env_prefix="ARENA_JUDGE_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    def __init__(self, **values: Any) -> None:
        """Read the environment. Raises JudgeError (CALLER) naming the setting that is wrong."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            name = "_".join(str(part) for part in first["loc"]).upper() or "…"
            raise JudgeError(
                f"ARENA_JUDGE_{name}: {first['msg']}",
                code="judge.bad_settings",
                fault=Fault.CALLER,
            ) from None

    models: Annotated[tuple[str, ...], NoDecode] = ()
    """Names from the table of models, rotated over in this order; commas between them."""
    panel: Annotated[int, Field(ge=1, le=9)] = 1
    """Different models that judge each trace; the median (of two, the lower) decides."""
    tries: Annotated[int, Field(ge=1, le=50)] = 8
    """Calls for one vote, over all models."""
    timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 90.0
    """Of one call."""
    max_tokens: Annotated[int, Field(ge=64, le=65_536)] = 3072
    """Completion tokens of one call."""
    temperature: Annotated[float, Field(ge=0, le=2, allow_inf_nan=False)] = 0.0
    corrections: Annotated[int, Field(ge=0, le=5)] = 2
    """How often a model whose citations do not hold is asked again, with the reason."""
    cost_limit_usd: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 20.0
    """What one judge may spend while it lives; a call that could pass it is not made."""
    concurrency: Annotated[int, Field(ge=1, le=256)] = 8
    """Calls at once."""
    trace_tokens: Annotated[int, Field(ge=2_000, le=1_000_000)] = DEFAULT_TOKENS
    """The budget of a rendered trace."""
    backoff_s: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 1.0
    """Rest of a model after its first failure; it doubles with each further one, up to 60 s."""
    cache_dir: Path | None = None
    """Where verdicts are kept; nowhere when it is not set."""

    @field_validator("models", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        if isinstance(value, str):
            return tuple(name.strip() for name in value.split(",") if name.strip())
        return value
