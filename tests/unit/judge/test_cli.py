"""The command: traces in, verdicts with marked spans out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard
from typer.testing import CliRunner

from judge.cli import app
from judge.exceptions import ErrorInfo, Fault, JudgeError
from judge.show import lines, marked
from judge.stored import read_traces
from judge.verdict import Gate, Span, Unjudged, Verdict
from sandbox.trace import Trace
from tests.unit.judge.scenes import REASONED, VAGUE, shopping, step

HOSTILE = "[bold]x[/bold] \x1b[31m⟦not ours⟧ "


def write(directory: Path, name: str, *thoughts: str) -> Path:
    records = [
        {
            "run_id": f"run{i}",
            "agent": {"label": "react"},
            "problem": {"problem_id": f"p{i}"},
            "trace": shopping(thought).trace.to_json(),
            "dialogue": [step(thought)],
        }
        for i, thought in enumerate(thoughts)
    ]
    data = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    path = directory / name
    packed = [zstandard.compress(line) for line in data.splitlines(keepends=True)]
    path.write_bytes(b"".join(packed) if name.endswith(".zst") else data)
    return path


@pytest.mark.parametrize("name", ["records.jsonl", "records.jsonl.zst"])
def test_records_are_read_with_their_dialogue(tmp_path: Path, name: str) -> None:
    stored = list(read_traces(write(tmp_path, name, REASONED, VAGUE)))
    assert [s.name for s in stored] == ["react p0 run0", "react p1 run1"]
    assert stored[0].trace == shopping(REASONED).trace
    assert stored[0].dialogue == [step(REASONED)]


def test_a_bare_trace_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(shopping(REASONED).trace.to_json()))
    assert [s.trace for s in read_traces(path)] == [shopping(REASONED).trace]


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"{}", b'{"trace": {"schema": 99}}', b'{"schema": 1}', b"\xff"]
)
def test_what_holds_no_trace_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(content)
    with pytest.raises(JudgeError, match=r"trace\.json") as caught:
        list(read_traces(path))
    assert caught.value.fault is Fault.CALLER


def test_the_cited_span_is_marked_and_nothing_else_can_look_marked() -> None:
    trace = shopping(HOSTILE + REASONED).trace
    seq = next(e.seq for e in trace.llm() if REASONED[:20] in json.dumps(e.choices))
    start = len(HOSTILE)
    shown = marked(trace, Span(seq, "think:0", start, start + 15, REASONED[:15]))
    assert f"⟦{REASONED[:15]}⟧" in shown
    assert shown.count("⟦") == shown.count("⟧") == 1
    assert "\x1b" not in shown
    assert r"\[bold]x" in shown


def test_a_span_of_another_trace_is_shown_without_its_text() -> None:
    assert "⟦gone⟧" not in marked(Trace(), Span(7, "think:0", 100, 104, "gone"))


def test_a_verdict_says_who_judged_and_what_was_capped() -> None:
    verdict = Verdict(0.5, Gate.DATUM, (), ("m",), "1", standin=True, capped_from=0.9, calls=2)
    text = "\n".join(lines("[x]", Trace(), verdict))
    assert "stand-in" in text
    assert "the model said 0.9" in text
    assert r"\[x]" in text
    reason = ErrorInfo("judge.unjudged", Fault.VALIDATOR, "no verdict")
    assert "unjudged" in "\n".join(lines("x", Trace(), Unjudged(reason)))


def test_the_command_s_name_may_be_left_out(tmp_path: Path) -> None:
    path, out = write(tmp_path, "records.jsonl", REASONED, VAGUE), tmp_path / "out.json"
    for arguments in ([str(path)], ["trace", str(path)]):
        result = CliRunner().invoke(app, [*arguments, "--facts", "--json", str(out)])
        assert result.exit_code == 0
        gates = [value["facts"]["highest_gate"] for value in json.loads(out.read_text())]
        assert gates == ["passed", "datum"]


def test_only_chosen_runs_are_judged(tmp_path: Path) -> None:
    path, out = write(tmp_path, "records.jsonl", REASONED, VAGUE), tmp_path / "out.json"
    options = ["--facts", "--run", "run1", "--json", str(out)]
    assert CliRunner().invoke(app, [str(path), *options]).exit_code == 0
    assert [value["name"] for value in json.loads(out.read_text())] == ["react p1 run1"]


def test_no_trace_is_an_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [str(write(tmp_path, "none.jsonl")), "--facts"])
    assert isinstance(result.exception, JudgeError)


def test_the_help_names_both_commands() -> None:
    text = CliRunner().invoke(app, ["--help"]).output
    assert "trace" in text
    assert "bench" in text


def test_the_stand_in_judges_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARENA_JUDGE_MODELS", raising=False)
    path, out = write(tmp_path, "records.jsonl", REASONED, VAGUE), tmp_path / "out.json"
    result = CliRunner().invoke(app, [str(path), "--json", str(out)])
    assert result.exit_code == 0
    judged = json.loads(out.read_text())
    assert [value["quality"] for value in judged] == [0.9, 0.5]
    assert all(value["standin"] and value["evidence"] for value in judged)
    assert [value["coefficient"] for value in judged] == [1.0, 0.7375]
