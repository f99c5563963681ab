"""How a validator serves the models that agents bring: `ARENA_ARTEFACT_…` and `.env`."""

from __future__ import annotations

import shlex
from typing import Annotated, Any

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from arena.exceptions import SettingsError
from arena.submissions.artefacts import ArtefactLimits

_Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
_Gib = Annotated[float, Field(gt=0, le=1 << 20, allow_inf_nan=False)]
GIB = 1 << 30


class ArtefactSettings(BaseSettings):
    """Commands are templates: `{dir}` is the artefact, `{base}` an adapter's base model,
    `{name}` the model's name, `{port}` the port on 127.0.0.1, `{context}` and `{dtype}` what
    the manifest says. They are split as a shell would and run without one."""

    model_config = SettingsConfigDict(
        env_prefix="ARENA_ARTEFACT_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    command: str = "arena model serve {dir} --host 127.0.0.1 --port {port}"
    """Serves a whole model. For vLLM: `vllm serve {dir} --host 127.0.0.1 --port {port}
    --served-model-name {name} --max-model-len {context} --dtype {dtype}`."""
    adapter_command: str = (
        "vllm serve {base} --enable-lora --lora-modules {name}={dir} --host 127.0.0.1"
        " --port {port} --max-model-len {context} --dtype {dtype}"
    )
    """Serves an adapter on its base."""
    health_path: Annotated[str, Field(pattern=r"^/[!-~]*$")] = "/health"
    load_seconds: _Seconds = 900
    """How long a model may take until it answers."""
    memory_gib: _Gib = 48
    """Main memory of the model server, all its processes together."""
    cache_gib: _Gib = 100
    """Files of artefacts that are kept; the ones not used for longest go first."""
    file_gib: _Gib = 8
    artefact_gib: _Gib = 24
    hub_endpoint: str = "https://huggingface.co"
    hub_token: SecretStr | None = None
    pass_env: tuple[str, ...] = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")
    """Variables of this process that the model server is given; no other is."""
    request_seconds: _Seconds = 300
    """Longest wait for one completion."""
    concurrency: Annotated[int, Field(ge=1, le=1_024)] = 16

    @field_validator("command", "adapter_command")
    @classmethod
    def _is_template(cls, value: str) -> str:
        try:
            argv_of(value, dict.fromkeys(PLACES, "x"))
        except (KeyError, ValueError, IndexError) as error:
            raise ValueError(f"is no template of a command: {error}") from None
        return value

    def limits(self) -> ArtefactLimits:
        """How large an artefact may be here."""
        return ArtefactLimits(
            file_bytes=int(self.file_gib * GIB), bytes=int(self.artefact_gib * GIB)
        )


PLACES = ("dir", "base", "name", "port", "context", "dtype")


def argv_of(template: str, values: dict[str, str]) -> list[str]:
    """A command of a template. It is split before it is filled: no value becomes two words."""
    words = [word.format_map(values) for word in shlex.split(template)]
    if not words:
        raise ValueError("it is empty")
    return words


def load_artefact_settings(given: dict[str, Any] | None = None) -> ArtefactSettings:
    """The environment. Raises SettingsError naming the first setting that is wrong."""
    try:
        return ArtefactSettings(**(given or {}))
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = "ARENA_ARTEFACT_" + "_".join(str(part) for part in first["loc"]).upper()
        raise SettingsError(f"{name}: {first['msg']}") from None
