"""The operator's table of models, from the environment, a `.env` file or a JSON file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from sandbox.exceptions import Fault, ModelError
from sandbox.models.routes import ModelRoute, Wire, server_name


def _bad_table(message: str) -> ModelError:
    return ModelError(message, code="model.bad_table", fault=Fault.CALLER)


class RouteSettings(BaseModel):
    """One line of the table.

    The key comes from `api_key` or, better, from the environment variable that
    `api_key_env` names. Prices are USD per million tokens.
    """

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    model: str = Field(min_length=1, max_length=200)
    wire: Wire = Wire.OPENAI
    base_url: str | None = None
    api_key: SecretStr | None = None
    api_key_env: str | None = None
    upstream_model: str | None = None
    server: str | None = None
    usd_in: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    usd_out: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)
    standin: bool = False
    timeout_s: float = Field(default=300.0, gt=0.0, allow_inf_nan=False)
    concurrency: int = Field(default=32, ge=1)

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            raise ValueError("must begin with http:// or https://")
        return value

    def route(self) -> ModelRoute:
        """The route, its key resolved. Raises ModelError (CALLER) when the key is missing."""
        key = self.api_key
        if self.api_key_env is not None:
            found = os.environ.get(self.api_key_env)
            if not found:
                raise ModelError(
                    f"the key of model {self.model} is missing",
                    code="model.no_key",
                    fault=Fault.CALLER,
                    remedy=f"set {self.api_key_env}",
                )
            key = SecretStr(found)
        return ModelRoute(
            model=self.model,
            server=self.server or server_name(self.base_url, self.wire),
            base_url=self.base_url,
            wire=self.wire,
            api_key=key,
            upstream_model=self.upstream_model,
            usd_in=self.usd_in,
            usd_out=self.usd_out,
            standin=self.standin,
            timeout_s=self.timeout_s,
            concurrency=self.concurrency,
        )


class ModelSettings(BaseSettings):
    """Which servers answer for which model names.

    `ARENA_MODELS` is a JSON list of routes, `ARENA_MODELS_FILE` a file with such a list.
    For a single server `ARENA_MODEL_URL` and `ARENA_MODEL_KEY` are enough: it is asked
    for the names that it serves (`discover`).
    """

    model_config = SettingsConfigDict(
        env_prefix="ARENA_",
        env_file=".env",
        extra="ignore",
        protected_namespaces=(),
        hide_input_in_errors=True,
    )

    def __init__(self, **values: Any) -> None:
        """Read the environment. Raises ModelError (CALLER) naming the setting that is wrong."""
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise _bad_table(f"the settings of models: {_where(error)}") from None
        except SettingsError as error:
            raise _bad_table(str(error)) from None

    models: tuple[RouteSettings, ...] = ()
    models_file: Path | None = None
    model_url: str | None = None
    model_key: SecretStr | None = None

    def routes(self) -> tuple[ModelRoute, ...]:
        """The whole table. Raises ModelError (CALLER) for a table that cannot be read."""
        listed = list(self.models)
        if self.models_file is not None:
            listed += read_table(self.models_file)
        return tuple(entry.route() for entry in listed)


def read_table(path: Path) -> list[RouteSettings]:
    """Read a JSON list of routes. Raises ModelError (CALLER)."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise _bad_table(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise _bad_table(f"{path} is not JSON: {error}") from None
    if not isinstance(value, list):
        raise _bad_table(f"{path} must hold a JSON list of routes")
    routes = []
    for number, entry in enumerate(value, start=1):
        try:
            routes.append(RouteSettings.model_validate(entry))
        except ValidationError as error:
            raise _bad_table(f"{path}, route {number}: {_where(error)}") from None
    return routes


def _where(error: ValidationError) -> str:
    """The first thing that is wrong, without the value that stands there: it may be a key."""
    first = error.errors(include_input=False, include_url=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
