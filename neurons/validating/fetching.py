"""What a run is of, from the arena: the agent's file and the problems with their rewards."""

from __future__ import annotations

import hashlib

from arena.client.validator import Claim, ValidatorClient
from neurons.validating.exceptions import RunGivenUpError
from scoring.types import Problem


async def fetch(client: ValidatorClient, claim: Claim) -> tuple[bytes, tuple[Problem, ...]]:
    """Source and problems of a claimed run.

    Raises RunGivenUpError for a file that is not the one claimed, and ArenaApiError.
    """
    problems = await client.problems(claim.run_id)
    source = await client.code(claim)
    found = hashlib.sha256(source).hexdigest()
    if found != claim.source_hash:
        raise RunGivenUpError(
            f"the agent's file has the hash {found}, and {claim.source_hash} was claimed"
        )
    return source, problems
