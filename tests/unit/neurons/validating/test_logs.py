"""Others' text in a log harms no terminal and fills no disk."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from neurons.validating.logs import MAX_VALUE, configure_logs

HOSTILE = "\x1b[31mred\nlevel=error\r\u202e" + "x" * 10_000


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


@pytest.mark.parametrize("as_json", [True, False])
def test_hostile_text_is_bounded_and_on_one_line(as_json: bool) -> None:
    out = io.StringIO()
    configure_logs(as_json=as_json, file=out)
    structlog.get_logger("x").info("run begins", agent=HOSTILE)
    lines = out.getvalue().splitlines()
    assert len(lines) == 1
    assert lines[0].isprintable()
    assert len(lines[0]) < MAX_VALUE + 200
    if as_json:
        assert json.loads(lines[0])["event"] == "run begins"


def test_a_traceback_keeps_its_lines_and_no_escapes() -> None:
    out = io.StringIO()
    configure_logs(as_json=False, file=out)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        structlog.get_logger("x").exception("failed")
    assert "\x1b" not in out.getvalue()
    assert "Traceback" in out.getvalue()
