"""The demonstration's miners: each with a wallet of its own, over the arena's API."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from arena.client.exceptions import RefusedError
from arena.submissions.artefact_files import make_manifest
from arena.submissions.miner_options import account, open_client
from neurons.demo.contenders import Contender
from neurons.demo.network import Network
from scoring.types import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Answer:
    """What the arena said to a submission: a version, or why not."""

    version: str | None
    rules: tuple[str, ...]
    told: str
    """In one line. Holds text of the file: show it escaped."""

    def to_json(self) -> JsonObject:
        """As the demonstration's summary holds it."""
        rules: list[Json] = [*self.rules]
        return {"admitted": self.version is not None, "rules": rules}


async def submit(network: Network, contender: Contender, model: Path | None = None) -> Answer:
    """Submit a contender's file under its own hotkey, which has joined the subnet before; with
    the files of its `model`, if it brings one. Raises ArtefactError for files that it may not.
    """
    who = account(network.url, contender.name, None, network.wallets)
    manifest = None
    async with open_client(who) as client:
        try:
            if model is not None:
                manifest = await asyncio.to_thread(make_manifest, model)
                await client.send_artefact(manifest, model)
            done = await client.submit(contender.name, contender.file.read_bytes(), manifest)
        except RefusedError as error:
            return _refusal(error)
    return Answer(str(done.version_id), (), "admitted")


def _refusal(error: RefusedError) -> Answer:
    violations = error.body.get("violations")
    found = [v for v in violations if isinstance(v, dict)] if isinstance(violations, list) else []
    rules = tuple(dict.fromkeys(str(v.get("rule")) for v in found))
    if not found:
        return Answer(None, (error.error_code,), f"refused: {error.message}")
    first = found[0]
    what = first.get("found") or first.get("message")
    return Answer(None, rules, f"refused: {first.get('rule')} in line {first.get('line')}: {what}")
