"""The verdict as a whole."""

from __future__ import annotations

import json

import pytest

from arena.submissions.admission import check
from arena.submissions.answers import AnswerIndex
from arena.submissions.copies import CopyIndex
from arena.submissions.policy import Policy
from arena.submissions.process import Reader
from arena.submissions.refusals import BadNameError, checked_name
from arena.submissions.rules import EXPLAINED, Rule
from neurons.cli import SHIPPED_AGENTS

GOOD = b"def agent_main(problem_data):\n    return []\n"


def test_every_rule_says_why_and_how_to_mend_it() -> None:
    assert set(EXPLAINED) == set(Rule)
    assert all(why and fix for why, fix in EXPLAINED.values())
    assert len({rule.value for rule in Rule}) == len(Rule)


@pytest.mark.parametrize("name", sorted(SHIPPED_AGENTS))
def test_the_shipped_agents_are_admitted(name: str, reader: Reader, bank: AnswerIndex) -> None:
    source = SHIPPED_AGENTS[name].read_bytes()
    assert check(source, name=name, policy=Policy(), bank=bank, reader=reader).violations == ()


@pytest.mark.parametrize(
    ("name", "admitted"),
    [
        ("a" * 100, True),
        ("a" * 101, False),
        ("", False),
        ("  ", False),
        ("a\nb", False),
        ("ñ", True),
        ("My agent (v2.1) #3 a@b+c:d", True),
        ("-rf", False),
        ("_hidden", False),
        ("a..b", False),
        ("../../etc/passwd", False),
        ("a$(id)", False),
        ('say "hi"', False),
        ("<script>", False),
        ("\u202eevil", False),
        ("e\u0301" * 51, False),
    ],
)
def test_names_are_checked(name: str, admitted: bool, reader: Reader) -> None:
    assert check(GOOD, name=name, policy=Policy(), reader=reader).admitted is admitted
    # The arena says the same of it.
    if admitted:
        assert checked_name(name, Policy().max_name_chars)
    else:
        with pytest.raises(BadNameError):
            checked_name(name, Policy().max_name_chars)


def test_an_identical_file_of_somebody_else_is_refused(reader: Reader) -> None:
    first = check(GOOD, name="a", policy=Policy(), reader=reader)
    assert first.fingerprint is not None
    known = CopyIndex()
    known.add("v1", "alice", first.fingerprint)
    again = check(GOOD, name="b", policy=Policy(), known=known, hotkey="bob", reader=reader)
    assert [v.rule for v in again.violations] == [Rule.IDENTICAL]
    own = check(GOOD, name="b", policy=Policy(), known=known, hotkey="alice", reader=reader)
    assert own.admitted


def test_the_json_form_holds_any_text(reader: Reader) -> None:
    source = b"x = eval('\\ud800\\x00')\n" + GOOD
    admission = check(source, name="\ud800", policy=Policy(), reader=reader)
    text = json.dumps(admission.to_json(), ensure_ascii=False)
    assert "\\u0000" not in text
    text.encode("utf-8")


def test_the_order_of_violations_is_that_of_the_file(reader: Reader) -> None:
    source = b"import shutil\nimport os\nx = os.fork\ny = eval\nimport socket\n" + GOOD
    admission = check(source, name="x", policy=Policy(), reader=reader)
    assert [v.line for v in admission.violations] == [1, 3, 4, 5]
