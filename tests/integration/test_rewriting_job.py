"""`arena corpus rewrite` end to end: axis B rows of an export, the stand-in writer, files."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any, cast

import pytest
import zstandard
from typer.testing import CliRunner

from corpus_export.exceptions import CorpusError, CorpusInvalidError
from corpus_export.rewriting.assembly import skeleton
from corpus_export.rewriting.job import RewriteJob, rewrite_export
from corpus_export.rewriting.opening import sources_in
from corpus_export.rewriting.rewriter import Rewriter
from corpus_export.tokens import open_tokens
from neurons.cli import app
from sandbox.exceptions import ModelError
from sandbox.models import ModelClient, ModelRoute, RetryPolicy
from scoring.types import JsonObject
from tests.unit.arena import builders
from tests.unit.corpus_export.days import Day
from tests.unit.sandbox.provider import Provider, Reply, failed, provider, said

SECRET = "hf_QxZkWvTnRbLmPdSfGhJkLzXcVbNm"


def lines(path: Path) -> list[dict[str, Any]]:
    text = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """An export with axis B rows, and the agent's source beside it."""
    day = Day(tmp_path / "day")
    day.add(*(day.run(number, axis="B") for number in range(len(day.problems))))
    day.export(tmp_path / "corpus")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "alpha.py").write_bytes(builders.agent("alpha").source)
    return tmp_path


async def rewritten(exported: Path, server: Provider, out: str = "out") -> JsonObject:
    """Rewrite the export with a model of this server."""
    route = ModelRoute("m", "server", f"{server.url}/v1")
    client = ModelClient([route], retry=RetryPolicy(tries=1))
    job = RewriteJob(
        export=exported / "corpus",
        out=exported / out,
        rewriter=Rewriter(client, "m", min_quality=0.0),
        standin=False,
        sources=sources_in([exported / "agents"]),
        tokens=open_tokens(None),
        max_tokens=14_336,
    )
    try:
        return await rewrite_export(job, lambda count: None)
    finally:
        await client.close()


def thoughts(text: str, rows: list[dict[str, Any]]) -> str:
    """An answer with this thought before each step of the longest row."""
    steps = {sum(m["role"] == "assistant" for m in row["messages"]) for row in rows}
    assert len(steps) == 1
    return json.dumps({"thoughts": [text] * steps.pop()})


def test_the_command_rewrites_with_the_stand_in_and_changes_thoughts_alone(exported: Path) -> None:
    out = exported / "out"
    arguments = ["corpus", "rewrite", str(exported / "corpus"), "--out", str(out)]
    result = CliRunner().invoke(app, [*arguments, "--agents", str(exported / "agents")])
    assert result.exit_code == 0, result.output
    before = {r["record_hash"]: r for r in lines(exported / "corpus/train/axis_b.jsonl.zst")}
    rows = lines(out / "train/axis_b_rewritten.jsonl.zst")
    refused = lines(out / "refused.jsonl.zst")
    assert len(rows) + len(refused) == len(before) > 0
    for row in rows:
        old = before[row["record_hash"]]
        assert skeleton(row["messages"]) == skeleton(old["messages"])
        assert (row["rewritten"], row["axis"]) == (True, "B")
        assert "rewriter:standin/rewriter-1" in row["standins"]
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["read"] == len(before)
    assert manifest["standin"] is True
    again = CliRunner().invoke(app, [*arguments, "--agents", str(exported / "agents")])
    assert again.exit_code == 1


async def test_a_secret_that_the_model_takes_from_the_source_does_not_reach_a_row(
    exported: Path,
) -> None:
    rows = lines(exported / "corpus/train/axis_b.jsonl.zst")
    async with provider() as server:
        server.default = said(thoughts(f"the key {SECRET} stands in the file", rows))
        made = await rewritten(exported, server)
    assert cast("JsonObject", made["removed"]) == {"key": len(rows)}
    written = (exported / "out").rglob("*")
    text = zstandard.ZstdDecompressor().stream_reader(
        (exported / "out/train/axis_b_rewritten.jsonl.zst").read_bytes()
    )
    assert SECRET.encode() not in text.read()
    assert all(SECRET.encode() not in p.read_bytes() for p in written if p.is_file())


async def test_without_a_source_nobody_is_asked_and_the_row_is_counted(exported: Path) -> None:
    (exported / "agents" / "alpha.py").unlink()
    async with provider() as server:
        made = await rewritten(exported, server)
        assert not server.requests
    assert made["outcomes"] == {"no_source": made["read"]}


async def test_a_server_that_fails_leaves_nothing_that_looks_whole(exported: Path) -> None:
    async with provider() as server:
        server.default = failed(500)
        with pytest.raises(ModelError):
            await rewritten(exported, server)
    assert set(os.listdir(exported)) == {"day", "corpus", "agents"}


async def test_one_failure_ends_the_asking_for_all_other_rows(exported: Path) -> None:
    never = asyncio.Event()
    async with provider() as server:
        server.default = Reply(wait=never.wait)
        server.replies = [failed(500)]
        with pytest.raises(ModelError):
            await rewritten(exported, server)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [t for t in others if "_one" in repr(t.get_coro())]
        never.set()


async def test_an_export_that_was_changed_is_refused(exported: Path) -> None:
    table = exported / "corpus/train/axis_b.jsonl.zst"
    table.write_bytes(table.read_bytes()[:-1])
    async with provider() as server:
        with pytest.raises(CorpusInvalidError, match="not what its manifest says"):
            await rewritten(exported, server)
        (exported / "there").mkdir()
        with pytest.raises(CorpusError, match="there already"):
            await rewritten(exported, server, "there")
