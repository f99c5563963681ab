"""What one look at the calendar did, and what of it failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import structlog
from sqlalchemy.exc import SQLAlchemyError

from arena.conducting.metrics import ConductorMetrics
from arena.db.engine import database_error
from arena.exceptions import ArenaError, DatabaseUnreachableError

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Done:
    """One thing that was done. `what` is a stable name, such as `race.opened`."""

    step: str
    what: str
    subject: str
    detail: str = ""


class Work:
    """One look: the time it was taken at, and what came of it."""

    def __init__(
        self, now: datetime, metrics: ConductorMetrics, told: dict[tuple[str, str], str]
    ) -> None:
        """`told`: what failed at earlier looks, by step and subject. It is kept up to date, so
        that what goes on failing is told once, and once more when it passes."""
        self.now = now
        self._told = told
        self.done: list[Done] = []
        self.failed: list[str] = []
        """The steps of which something failed."""
        self.broken = False
        """Whether something failed that no rule foresees: what is remembered may be wrong."""
        self._metrics = metrics

    def did(self, step: str, what: str, subject: str, detail: str = "") -> None:
        """Note what was done."""
        self.done.append(Done(step, what, subject, detail))
        self._metrics.done.labels(what).inc()
        _log.info(what, step=step, subject=subject, detail=detail)

    @contextmanager
    def trying(self, step: str, subject: str = "") -> Iterator[None]:
        """What fails in here is logged and counted, and tried again at the next look.

        Raises DatabaseUnreachableError: without the database nothing else can be done.
        """
        try:
            yield
            if self._told.pop((step, subject), None) is not None:
                _log.info("a step of the calendar passes again", step=step, subject=subject)
        except SQLAlchemyError as error:
            told = database_error(error, "the database")
            if isinstance(told, DatabaseUnreachableError):
                raise told from error
            self._fail(step, subject, told)
        except DatabaseUnreachableError:
            raise
        except ArenaError as error:
            self._fail(step, subject, error)
        except Exception as error:  # noqa: BLE001 - a bug in one step does not stop the others
            self.broken = True
            self._fail(step, subject, error)

    def _fail(self, step: str, subject: str, error: Exception) -> None:
        self.failed.append(step)
        code = error.code if isinstance(error, ArenaError) else type(error).__name__
        self._metrics.failures.labels(step, code).inc()
        if self._told.get((step, subject)) == code:
            return
        self._told[step, subject] = code
        _log.error(
            "a step of the calendar failed; it is tried again",
            step=step,
            subject=subject,
            code=code,
            error=f"{error!s:.500}",
            exc_info=not isinstance(error, ArenaError),
        )
