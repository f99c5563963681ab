"""Agents are read by shipped name or from a file, under distinct labels."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from arena.exceptions import AgentFileError
from arena.runs.agent import MAX_SOURCE_BYTES, read_agents


def test_a_shipped_name_wins_over_a_file_and_labels_are_distinct(tmp_path: Path) -> None:
    mine = tmp_path / "react.py"
    mine.write_bytes(b"mine")
    shipped = tmp_path / "shipped.py"
    shipped.write_bytes(b"shipped")
    agents = read_agents(["react", str(mine), str(mine)], {"react": shipped})
    assert [a.ref.label for a in agents] == ["react", "react-2", "react-3"]
    assert [a.source for a in agents] == [b"shipped", b"mine", b"mine"]
    assert agents[1].ref.source_hash == hashlib.sha256(b"mine").hexdigest()


def test_a_label_taken_by_a_name_with_a_number_is_not_given_twice(tmp_path: Path) -> None:
    for name in ("a.py", "a-2.py"):
        (tmp_path / name).write_bytes(b"")
    names = [str(tmp_path / "a.py"), str(tmp_path / "a-2.py"), str(tmp_path / "a.py")]
    assert [a.ref.label for a in read_agents(names, {})] == ["a", "a-2", "a-3"]


def test_control_characters_of_a_file_name_reach_no_label(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m\n.py"
    path.write_bytes(b"")
    (agent,) = read_agents([str(path)], {})
    assert agent.ref.label.isprintable()
    assert agent.ref.name.isprintable()


def test_a_missing_file_names_what_could_be_given(tmp_path: Path) -> None:
    with pytest.raises(AgentFileError, match="No such file") as caught:
        read_agents([str(tmp_path / "no.py")], {"react": tmp_path})
    assert "react" in str(caught.value)


def test_a_file_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "big.py"
    with path.open("wb") as file:
        file.truncate(MAX_SOURCE_BYTES + 1)
    with pytest.raises(AgentFileError, match="larger than"):
        read_agents([str(path)], {})
