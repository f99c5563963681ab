"""`arena agent check`, as a person calls it; and what it says of the demonstration's cheats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from arena.exceptions import AgentFileError, SettingsError
from arena.submissions.cli import app
from neurons.agents.dishonest.making import memoriser
from neurons.cli import SHIPPED_AGENTS
from scoring.types import Problem
from tests.unit.arena.submissions.measured import BANK

COPYCAT = SHIPPED_AGENTS["react"].parent / "dishonest" / "copycat.py"


def call(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    words = ["check", *(str(a) for a in arguments)]
    shipped = {"shipped_agents": SHIPPED_AGENTS}
    result = CliRunner().invoke(app, words, obj=shipped, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def verdict(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    code, out, _ = call(*arguments, "--json", "-")
    return code, json.loads(out)


def test_both_commands_stand_in_one_group() -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    assert "check" in shown
    assert "run" in shown


def test_help_says_what_the_gate_is_and_is_not() -> None:
    shown = " ".join(CliRunner().invoke(app, ["check", "--help"]).stdout.split())
    assert "The static gate is a filter; the sandbox is the wall" in shown
    assert "Example: arena agent check" in shown


def test_an_honest_agent_is_admitted() -> None:
    code, answer = verdict(SHIPPED_AGENTS["react"], "--suite", BANK)
    assert (code, answer["admitted"], answer["violations"]) == (0, True, [])


def test_a_refusal_names_rule_line_reason_and_remedy(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text("import socket\n\n\ndef agent_main(problem_data):\n    return []\n")
    code, _, shown = call(agent)
    assert code == 1
    for words in ("module.not_allowed", "line 1", "import socket", "to mend it", "refused"):
        assert words in shown


def test_the_files_own_text_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_text("def agent_main(p):\n    return getattr(p, '\\x1b[31m[red]__class__')\n")
    _, _, shown = call(agent)
    assert "\x1b[31m" not in shown.replace("\x1b[31mrefused", "")


def test_the_memoriser_is_refused_for_what_it_knows(
    tmp_path: Path, problems: tuple[Problem, ...]
) -> None:
    agent = tmp_path / "memoriser.py"
    agent.write_text(memoriser(problems), encoding="utf-8")
    code, answer = verdict(agent, "--suite", BANK)
    rules = {entry["rule"] for entry in answer["violations"]}
    assert code == 1
    assert {"answers.product_id", "answers.query", "answers.id_table"} <= rules
    assert all(entry["line"] for entry in answer["violations"])
    code, answer = verdict(agent)
    assert code == 1, "its table of ids alone gives it away"


def test_the_empty_memoriser_is_an_honest_first_hit(tmp_path: Path) -> None:
    agent = tmp_path / "memoriser.py"
    agent.write_text(memoriser([]), encoding="utf-8")
    assert verdict(agent, "--suite", BANK)[0] == 0


def test_the_copycat_is_traced_to_react(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('public_bases = ["pipeline"]\n')
    code, answer = verdict(COPYCAT, "--against", SHIPPED_AGENTS["react"], "--policy", rules)
    assert code == 1
    assert {entry["rule"] for entry in answer["violations"]} <= {"copy.code", "copy.text"}
    (code_copy, *_) = answer["copies"]
    assert code_copy["version"].endswith("react.py")
    assert code_copy["of_theirs"] > 0.8


def test_of_a_public_base_nothing_is_a_copy() -> None:
    assert verdict(COPYCAT, "--against", SHIPPED_AGENTS["react"])[0] == 0


def test_a_folder_may_hold_the_file_itself_and_what_cannot_be_read(tmp_path: Path) -> None:
    agent = tmp_path / "agent.py"
    agent.write_bytes(SHIPPED_AGENTS["pipeline"].read_bytes())
    (tmp_path / "broken.py").write_text("def (")
    code, _, shown = call(agent, "--against", tmp_path)
    assert code == 0
    assert "broken.py" in shown


def test_a_file_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(AgentFileError):
        call(tmp_path / "nothing.py")


@pytest.mark.parametrize(
    "text",
    [
        "no_such = 1",
        "max_bytes = 0",
        "max_bytes = 'many'",
        "broken",
        'forbid = "requests"',
        "allow = 1",
    ],
)
def test_a_wrong_policy_is_refused(text: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(text)
    with pytest.raises(SettingsError, match=str(rules)):
        call(SHIPPED_AGENTS["react"], "--policy", rules)


def test_a_policy_may_forbid_and_allow_modules(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('forbid = ["requests"]\n[allow]\nnumpy = ["*"]\n')
    code, answer = verdict(SHIPPED_AGENTS["react"], "--policy", rules)
    assert code == 1
    assert {entry["rule"] for entry in answer["violations"]} == {"module.not_allowed"}
