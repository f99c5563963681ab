"""Nothing that an agent writes is believed further than it goes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.exceptions import AgentError, ErrorInfo, Fault
from sandbox.isolation import interface as codes
from sandbox.isolation.frames import DEPTH, HEAD_BYTES, Answer, FrameReader, read_dialogue

READY = b'{"frame": "ready"}\n'


def answer(body: bytes) -> bytes:
    return b'{"frame": "answer", "bytes": %d}\n' % len(body) + body


def read(data: bytes, limit: int = 1000) -> FrameReader:
    reader = FrameReader(limit)
    reader.feed(data)
    return reader


def test_the_runner_is_ready_before_there_is_an_answer() -> None:
    reader = read(READY)
    assert reader.ready
    assert reader.final is None
    reader.feed(answer(b"[]"))
    assert reader.final == Answer(b"[]")


@given(st.lists(st.integers(1, 40), max_size=20))
def test_frames_may_come_in_any_pieces(sizes: list[int]) -> None:
    data = READY + answer(b'[{"a": 1}]')
    reader = FrameReader(100)
    for size in [*sizes, len(data)]:
        reader.feed(data[:size])
        data = data[size:]
    assert reader.final == Answer(b'[{"a": 1}]')


@given(st.binary(max_size=300))
def test_any_bytes_are_taken_and_blame_the_agent_alone(data: bytes) -> None:
    final = read(data).final
    assert not isinstance(final, ErrorInfo) or final.fault is Fault.AGENT


def test_the_first_final_frame_decides() -> None:
    reader = read(READY + answer(b"[]") + answer(b"[{}]"))
    assert reader.final == Answer(b"[]")
    reader.feed(b'{"frame": "error", "code": "agent.exception", "message": ""}\n')
    assert reader.final == Answer(b"[]")


@pytest.mark.parametrize(
    "line",
    [
        b'{"frame": "error", "code": "validator.sandbox_failed", "message": "x"}\n',
        b'{"frame": "error", "code": "agent.timeout", "message": "x"}\n',
        b'{"frame": "error", "code": "agent.exception", "message": 1}\n',
        b'{"frame": "error", "code": ["agent.exception"], "message": "x"}\n',
        b'{"frame": "ready"}\n',
        b'{"frame": "answer", "bytes": -1}\n',
        b'{"frame": "answer", "bytes": "1"}\n',
        b'{"frame": ["answer"]}\n',
        b"[" * 5000 + b"\n",
        b"\xff\n",
        b"\n",
        b"x" * (HEAD_BYTES + 1),
    ],
)
def test_a_frame_that_the_runner_never_sends_is_the_agents_own_doing(line: bytes) -> None:
    final = read(READY + line).final
    assert isinstance(final, ErrorInfo)
    assert (final.code, final.fault) == (codes.AGENT_BAD_RETURN, Fault.AGENT)


def test_an_error_is_bounded_and_clean() -> None:
    head = {"frame": "error", "code": codes.AGENT_EXCEPTION, "message": "a\0\ud800" + "b" * 20_000}
    final = read(READY + json.dumps(head).encode() + b"\n").final
    assert isinstance(final, ErrorInfo)
    assert final.message.startswith("a\ufffd\ufffdb")
    assert len(final.message) == 8000


def test_an_answer_over_its_limit_is_refused_by_its_head() -> None:
    final = read(READY + b'{"frame": "answer", "bytes": 1001}\n').final
    assert isinstance(final, ErrorInfo)
    assert final.code == codes.AGENT_ANSWER_TOO_LARGE


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), inner
        )
    ),
    max_leaves=20,
)


@given(st.lists(st.dictionaries(st.just("step"), json_values), max_size=4))
def test_a_clean_dialogue_is_read_as_it_was_written(steps: list[dict[str, Any]]) -> None:
    assert list(read_dialogue(json.dumps(steps).encode())) == steps


def test_text_that_storage_cannot_hold_is_mended() -> None:
    (step,) = read_dialogue(rb'[{"a\u0000": ["\ud800x\udc00", "\ud83d\ude00", "\u0000"]}]')
    assert step == {"a\ufffd": ["\ufffdx\ufffd", "\U0001f600", "\ufffd"]}


def test_an_integer_beyond_doubles_becomes_one() -> None:
    (step,) = read_dialogue(b'[{"a": 9007199254740993, "b": 9007199254740991}]')
    assert step == {"a": 9007199254740992.0, "b": 9007199254740991}
    assert isinstance(step["a"], float)
    assert isinstance(step["b"], int)


def nested(depth: int) -> bytes:
    return b'[{"a": ' + b"[" * depth + b"]" * depth + b"}]"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"null",
        b"[1]",
        b'["x"]',
        b"[[]]",
        b'[{"a": NaN}]',
        b'[{"a": -Infinity}]',
        b'[{"a": 1e999}]',
        b'[{"a": 1' + b"0" * 400 + b"}]",
        b'[{"a": 1' + b"0" * 5000 + b"}]",
        b'[{"a": 1}',
        b"\xff\xfe[\x00]\x00",
        b'[{"a": "\xff"}]',
        nested(DEPTH),
        nested(100_000),
    ],
)
def test_what_is_no_dialogue_is_a_bad_return(body: bytes) -> None:
    with pytest.raises(AgentError) as caught:
        read_dialogue(body)
    assert caught.value.code == codes.AGENT_BAD_RETURN
    assert len(caught.value.message) < 500


def test_nesting_up_to_the_bound_is_read() -> None:
    assert len(read_dialogue(nested(DEPTH - 1))) == 1


def test_a_dialogue_that_would_fill_the_memory_is_refused() -> None:
    with pytest.raises(AgentError) as caught:
        read_dialogue(b"[" + b"{}," * 600_000 + b"{}]")
    assert caught.value.code == "agent.answer_too_large"
    assert len(read_dialogue(b"[" + b"{}," * 400_000 + b"{}]")) == 400_001
