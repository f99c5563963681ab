"""`/v1/public/suites`: the public yardsticks, and the bank as it is now.

Only the suites' problems are shown, and of these what an agent sees. The bank's problems,
open or held out, are nobody's to read here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path

from arena.api.errors import Code, Refusal, responses
from arena.api.public_race_models import ProblemText, SuitePublic, SuiteWithProblemsResponse
from arena.api.public_views import ViewsDep
from arena.api.services import ServicesDep
from arena.problems.bank import Bank
from arena.problems.holdings import Holding
from arena.problems.pools import Pool

router = APIRouter(prefix="/v1/public/suites", tags=["public"])

SUITES = {1: Pool.SUITE_V1, 2: Pool.SUITE_V2, 3: Pool.SUITE_V3}
_SHOWN = ("query", "category", "difficulty")
"""What is shown of a problem; `title` names the product that answers it."""


def bank_suite(now: datetime) -> SuitePublic:
    """The bank as a set of problems: its number is the day's date, as evaluations carry it."""
    number = int(f"{now.astimezone(UTC):%Y%m%d}")
    return SuitePublic(
        suite_id=number, suite_version=number, is_active=True, benchmark_name="sn15-arena bank"
    )


@router.get("", responses=responses())
async def list_suites(services: ServicesDep, views: ViewsDep) -> list[SuitePublic]:
    """The public suites that the arena has, and the bank."""
    bank = await views.bank()
    held = [_suite(number) for number, pool in SUITES.items() if any(bank.live(pool))]
    return [*held, bank_suite(services.clock())] if len(bank) else held


@router.get("/current", responses=responses(404))
async def get_current_suite(services: ServicesDep, views: ViewsDep) -> SuitePublic:
    """What agents qualify and race on now."""
    if not len(await views.bank()):
        raise Refusal(Code.SUITE_NOT_FOUND, "the arena has no problems yet")
    return bank_suite(services.clock())


@router.get("/{suite_id}/problems", responses=responses(404))
async def get_suite_problems(
    views: ViewsDep,
    suite_id: Annotated[int, Path(ge=0, le=2**31 - 1)],
    include_embeddings: bool = False,
) -> SuiteWithProblemsResponse:
    """The problems of a public suite, without their answers. Embeddings are not kept."""
    pool = SUITES.get(suite_id)
    bank = await views.bank()
    problems = [] if pool is None else _problems(bank, pool, suite_id)
    if not problems:
        raise Refusal(
            Code.SUITE_NOT_FOUND, "there is no such public suite: the bank's problems are withheld"
        )
    return SuiteWithProblemsResponse(suite=_suite(suite_id), problems=problems)


def _problems(bank: Bank, pool: Pool, suite_id: int) -> list[ProblemText]:
    # A suite's problem that has come into the bank's races by a merged cluster is none here.
    return [
        ProblemText(problem_id=UUID(one.problem_id), suite_id=suite_id, metadata=_text(one))
        for one in bank.live(pool)
        if _is_uuid(one.problem_id)
    ]


def _text(holding: Holding) -> dict[str, Any]:
    shown = {name: holding.content[name] for name in _SHOWN if name in holding.content}
    return shown | {"category": holding.bucket.value}


def _suite(number: int) -> SuitePublic:
    return SuitePublic(
        suite_id=number,
        suite_version=number,
        is_active=False,
        benchmark_name=f"ShoppingBench suite v{number}",
        benchmark_number=number,
    )


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True
