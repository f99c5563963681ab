"""The worker: whatever the bytes are, there is a reading, and the next file is read as well."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arena.exceptions import AdmissionError
from arena.submissions.admission import check
from arena.submissions.policy import Policy
from arena.submissions.process import Reader
from arena.submissions.rules import Rule
from scoring.exceptions import Fault
from tests.unit.arena.submissions.measured import PARTS, bundle

GOOD = b"def agent_main(problem_data):\n    return []\n"

HOSTILE = {
    "empty": b"",
    "nul": b"\0" * 1000,
    "random": bytes(range(256)) * 40,
    "utf16": "def agent_main(p): pass".encode("utf-16"),
    "parentheses": b"(" * 100_000,
    "brackets": b"x = " + b"[" * 150 + b"]" * 150,
    "unary": b"x = " + b"-" * 100_000 + b"1",
    "not": b"x = " + b"not " * 50_000 + b"1",
    "sums": b"x = " + b"1+" * 100_000 + b"1",
    "attributes": b"x = a" + b".a" * 100_000,
    "calls": b"x = f" + b"()" * 100_000,
    "elif": b"if a: pass\n" + b"elif a: pass\n" * 20_000,
    "lambdas": b"x = " + b"lambda: " * 20_000 + b"1",
    "indent": b"".join(b" " * i + b"if a:\n" for i in range(95)) + b" " * 95 + b"pass\n",
    "names": b"a,b=b,a\n" * 2_000,
    "long_integer": b"x = " + b"9" * 400_000,
    "hex_integer": b"x = 0x" + b"f" * 400_000,
    "long_string": b"x = '" + b"a" * 500_000 + b"'",
    "f_strings": b"x = " + b"f'{" * 100 + b"1" + b"}'" * 100,
    "continued": b"x = \\\n" * 100_000,
    "decorators": b"@a\n" * 3_000 + b"def f(): pass\n",
    "ten_megabytes": b"# a\n" * 2_600_000,
    "carriage_returns": b"def agent_main(p):\r    return []\r" * 1000,
    "form_feeds": b"\f" * 100_000 + GOOD,
    "surrogates": b"x = '\\ud800\\udfff' * 3\n" + GOOD,
    "unicode_names": "ªº𝓮𝔁𝓮𝓬 = 1\nﬁ = 2\n".encode() + GOOD,
    "emoji": "x = '👩‍🚀'\n".encode() + GOOD,
    "comments": b"#" * 400_000,
    "nested_functions": b"".join(b" " * i + b"def f():\n" for i in range(90)) + b" " * 90 + b"pass",
    "match": b"match x:\n" + b"    case " + b"[" * 90 + b"a" + b"]" * 90 + b": pass\n",
    "regex_bait": b"x = '" + b"aA1" * 100_000 + b"'",
    "hashes": b"x = '" + b"#" * 200_000 + b"'",
}


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_bytes_give_a_verdict(name: str, reader: Reader) -> None:
    first = check(HOSTILE[name], name="x", policy=Policy(), reader=reader)
    assert check(GOOD, name="x", policy=Policy(), reader=reader).admitted
    assert first.admitted is (not first.violations)
    again = check(HOSTILE[name], name="x", policy=Policy(), reader=reader)
    assert first.to_json() == again.to_json()


def test_another_process_gives_the_same_verdict(reader: Reader) -> None:
    """Sets and hashes come in another order there; the verdict does not."""
    for part in PARTS:
        source = b"".join(b"# " + case.source[:300] for case in bundle(f"cheats_{part}"))
        for text in (source, next(bundle(f"honest_{part}")).source):
            here = check(text, name="x", policy=Policy(), reader=reader)
            there = check(text, name="x", policy=Policy())
            assert here == there


def test_too_large_a_file_is_refused_before_it_is_read(reader: Reader) -> None:
    (found,) = check(HOSTILE["ten_megabytes"], name="x", policy=Policy(), reader=reader).violations
    assert found.rule is Rule.TOO_LARGE


# One worker serves all examples: what one leaves behind must not touch the next.
_LIGHT = settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@_LIGHT
@given(st.binary(max_size=3000))
def test_any_bytes_give_a_verdict(reader: Reader, source: bytes) -> None:
    admission = check(source, name="x", policy=Policy(), reader=reader)
    assert admission.violations  # no such bytes define agent_main
    assert all(v.why and v.fix for v in admission.violations)


_WORDS = """
def agent_main ( ) : , . = + - * @ [ ] { } 'a' 1 x y import from os as lambda for in if else not
return yield await async with class try except finally raise global nonlocal match case _ getattr
eval := == f'{x}' b'\\x00' \\ # ; ... -> ** // None True
"""
_TOKENS = st.sampled_from([*_WORDS.split(), "\n", "\n    "])


@_LIGHT
@given(st.lists(_TOKENS, max_size=60).map(" ".join))
def test_any_words_of_python_give_a_verdict(reader: Reader, text: str) -> None:
    source = (text + "\ndef agent_main(p):\n    return []\n").encode()
    admission = check(source, name="x", policy=Policy(), reader=reader)
    assert all("the gate failed" not in v.found for v in admission.violations)


def test_a_crashed_worker_costs_one_file(tmp_path: Path) -> None:
    """An interpreter that dies stands for a parser that a file brought down."""
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nread line\nkill -SEGV $$\n")
    fake.chmod(0o755)
    with Reader(fake) as reader:
        for _ in range(2):
            (found,) = reader.read(GOOD, Policy()).violations
            assert found.rule is Rule.TOO_COMPLEX
            assert "signal 11" in found.found


def test_no_interpreter_is_the_validators_fault(tmp_path: Path) -> None:
    with Reader(tmp_path / "nothing") as reader, pytest.raises(AdmissionError) as caught:
        reader.read(GOOD, Policy())
    assert caught.value.fault is Fault.VALIDATOR
    assert caught.value.remedy


def test_a_worker_that_never_answers_is_the_validators_fault(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    with Reader(fake, wall_s=0.2) as reader, pytest.raises(AdmissionError):
        reader.read(GOOD, Policy())
