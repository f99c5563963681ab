"""Settings of the process that serves the API: `ARENA_API_…` variables and `.env`.

Secrets are `SecretStr`: they are never logged and never stand in an answer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from arena.exceptions import SettingsError

_Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]
_Rate = Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False)]
_Bytes = Annotated[int, Field(ge=1, le=1 << 30)]
_Store = Annotated[int, Field(ge=1, le=1 << 44)]
_Names = Annotated[frozenset[str], NoDecode]


class ApiSettings(BaseSettings):
    """What an operator may set of the API. Times in seconds, sizes in bytes."""

    model_config = SettingsConfigDict(
        env_prefix="ARENA_API_",
        env_file=".env",
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    public_url: str | None = None
    """Where the API is reached from outside, for the links it hands out; without it, the
    address that the request came to."""
    data_dir: Path = Path("var/api")
    """Uploads, when they are kept here, and the key of links when none is set."""
    metrics: bool = True
    """Whether `/metrics` answers. It is for your Prometheus: do not publish it."""

    receiver_hotkey: str | None = None
    """The hotkey that body-binding signatures (`bt.http_auth`) must name as receiver. Without
    it they are not accepted: a request could have been meant for another server."""
    clock_skew: Annotated[int, Field(ge=1, le=600)] = 60
    """How far a signature's time may lie from ours, either way."""
    challenge_ttl: _Seconds = 60
    session_ttl: _Seconds = 7_200
    banned_hotkeys: _Names = frozenset()
    """SS58 addresses, separated by commas, that are refused everywhere."""
    minimum_stake: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """What a validator must have at stake, in TAO, besides its permit."""
    metagraph_refresh: _Seconds = 60
    metagraph_max_age: _Seconds = 3_600
    """How long the last metagraph is served when the chain does not answer."""

    address_rate: _Rate = 50
    """Requests a second from one address (an IPv6 /64), in each process."""
    address_burst: _Rate = 200
    hotkey_rate: _Rate = 20
    """Signed requests a second of one hotkey, in each process."""
    hotkey_burst: _Rate = 100
    body_bytes: _Bytes = 1 << 20
    """The largest body where nothing else is said."""
    submission_bytes: _Bytes = 2 << 20
    """The largest body of a miner's submission, with its form around it."""
    admission_policy: Path | None = None
    """This arena's own rules of admission, a TOML file (docs/admission.md); `arena agent check
    --policy` reads the same, so publish it."""
    body_seconds: _Seconds = 60
    """How long a client may take to send a body."""

    submissions_paused: bool = False
    """Whether submissions are refused for the time being."""
    refusals_an_hour: Annotated[int, Field(ge=1, le=10_000)] = 20
    """Files of one hotkey that the gate refuses within an hour before it reads no more."""
    gate_waiting: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Submissions that one process has at hand at once."""
    grant_ttl: _Seconds = 21_600
    """How long a miner's credential may be used by the run that it was handed to."""
    inference_models: _Names = frozenset()
    """Models that validators are asked to route, separated by commas: shown, not enforced."""

    lease: _Seconds = 120
    """How long a run is held without a heartbeat."""
    runs_per_validator: Annotated[int, Field(ge=1, le=64)] = 1
    """Evaluations that one validator may hold at once."""
    records_bytes: _Bytes = 32 << 20
    """The largest batch of records as it is sent, compressed."""
    records_plain_bytes: _Bytes = 128 << 20
    """The largest batch of records unpacked."""
    records_per_batch: Annotated[int, Field(ge=1, le=1_000)] = 64
    record_bytes: _Bytes = 32 << 20
    """The largest record."""
    scoring_versions: _Names = frozenset()
    """Scoring pipelines whose records count, separated by commas; none named: every one."""
    catalog_hashes: _Names = frozenset()
    """Catalogues whose records count; none named: every one."""
    need_verdicts: bool = True
    """Whether a run succeeds only when each of its problems was judged."""

    link_secret: SecretStr | None = None
    """Signs the links for uploads and code; without it, a key of the data directory's own.
    Processes on several machines need the same one."""
    link_ttl: _Seconds = 900
    upload_bytes: _Bytes = 32 << 20
    s3_endpoint: str | None = None
    """With it, uploads go to this S3-compatible store, `https://host`, and not to `data_dir`."""
    s3_bucket: str = "arena"
    s3_region: str = "us-east-1"
    s3_access_key: str | None = None
    s3_secret_key: SecretStr | None = None

    artefact_part_bytes: Annotated[int, Field(ge=64 << 10, le=1 << 30)] = 16 << 20
    """Files of model artefacts come in parts of this size; at most `upload_bytes`."""
    artefact_file_bytes: _Store = 8 << 30
    artefact_bytes: _Store = 24 << 30
    """The largest artefact, an adapter's base with it."""
    artefact_quota_bytes: _Store = 64 << 30
    """What one hotkey may store of artefacts in all, files on their way among them."""

    top_share: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)] = 0.25
    """The top miner's share of the weight vector; the rest burns, but for the tail."""
    work_window: _Seconds = 86_400
    """A validator that completed no run for so long, while others did, is told to burn if it does
    not ask for work either, or lost what it was given: it copies, or is away."""
    conductor_patience: _Seconds = 300
    """How old the conductor's last tick may be before `/health/deep` calls it late."""

    @field_validator(
        "banned_hotkeys", "scoring_versions", "catalog_hashes", "inference_models", mode="before"
    )
    @classmethod
    def _split(cls, value: object) -> object:
        if isinstance(value, str):
            return frozenset(part.strip() for part in value.split(",") if part.strip())
        return value


def load_api_settings() -> ApiSettings:
    """Read the environment. Raises SettingsError naming the first variable that is wrong."""
    try:
        return ApiSettings()
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = "ARENA_API_" + "_".join(str(part) for part in first["loc"]).upper()
        raise SettingsError(f"{name}: {first['msg']}") from None
