"""An arena's own rules, from a TOML file; and the files that anyone may build on."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from arena.exceptions import SettingsError
from arena.submissions.fingerprints import Fingerprint
from arena.submissions.policy import MODULES, Policy
from arena.submissions.process import Reader

_KIT = ("arena_client.py", "src/agent/agent_interface.py", "src/agent/proxy_client.py")
_Names = TypeAdapter(dict[str, tuple[str, ...]])


def load_policy(path: Path | None) -> Policy:
    """The default policy, with what a TOML file changes of it.

    Keys are the fields of `Policy`; `allow` (module → names, `*` for every public one) and
    `forbid` (a list of modules) change the module list. Raises SettingsError.
    """
    if path is None:
        return Policy()
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from None
    return _policy(path, values)


def _policy(path: Path, values: dict[str, Any]) -> Policy:
    known = {entry.name for entry in fields(Policy)} - {"modules"} | {"allow", "forbid"}
    if unknown := sorted(set(values) - known):
        raise SettingsError(f"{path}: there is no setting {unknown[0]!r}")
    try:
        allow = _Names.validate_python(values.pop("allow", {}))
        forbid = TypeAdapter(tuple[str, ...]).validate_python(values.pop("forbid", ()))
        policy = TypeAdapter(Policy).validate_python(values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise SettingsError(f"{path}: {place}: {first['msg']}") from None
    for entry in fields(Policy):
        value = getattr(policy, entry.name)
        if isinstance(value, int | float) and value <= 0 and entry.name != "read_files":
            raise SettingsError(f"{path}: {entry.name} has to be above 0")
    modules = {**MODULES, **allow}
    for name in forbid:
        modules = {m: n for m, n in modules.items() if m != name and not m.startswith(f"{name}.")}
    folder = path.resolve().parent
    bases = tuple(
        str(folder / base) if base.endswith(".py") else base for base in policy.public_bases
    )
    return replace(policy, modules=modules, public_bases=bases)


def public_bases(
    policy: Policy, shipped: Mapping[str, Path], reader: Reader
) -> Iterator[Fingerprint]:
    """Fingerprints of the agent kit and of the policy's bases. Raises SettingsError."""
    kit = files("sandbox.agent_kit")
    sources = [kit.joinpath(name).read_bytes() for name in _KIT]
    for base in policy.public_bases:
        path = shipped.get(base) or Path(base)
        if base not in shipped and not base.endswith(".py"):
            continue  # a shipped agent's name, where none are known: the rooms below neurons
        try:
            sources.append(path.read_bytes())
        except OSError as error:
            raise SettingsError(f"public base {base}: {error.strerror}") from None
    for source in sources:
        found = reader.read(source, policy).fingerprint
        if found is not None:
            yield found
