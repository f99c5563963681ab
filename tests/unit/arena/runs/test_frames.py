"""Spools are read while they are written, and damage is named where it lies."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arena.exceptions import SealError, SpoolError
from arena.runs.frames import DamagedFrameError, SpooledRecord, encode_frame, read_spool
from arena.runs.record import EncodedRecord
from arena.runs.seal import SealedRecord
from tests.unit.arena.builders import seal


def _records(count: int) -> list[SealedRecord]:
    return seal(
        *(EncodedRecord(b'{"kind":"run","n":%d,"schema":1}' % number) for number in range(count))
    )


def _write(path: Path, records: list[SealedRecord]) -> list[int]:
    """The file, and where each frame ends."""
    ends = []
    with path.open("wb") as file:
        for one in records:
            file.write(encode_frame(one.record, one.sealed))
            ends.append(file.tell())
    return ends


def test_sealed_records_come_back_with_their_seals(tmp_path: Path) -> None:
    records = _records(3)
    ends = _write(tmp_path / "spool", records)
    frames = list(read_spool(tmp_path / "spool"))
    assert [frame.content.sealed for frame in frames] == records
    assert [frame.end for frame in frames] == ends
    assert [f.content.sealed for f in read_spool(tmp_path / "spool", ends[1])] == records[2:]


def test_the_file_prints_as_json_lines_of_records_and_seals(tmp_path: Path) -> None:
    records = _records(2)
    _write(tmp_path / "spool", records)
    with (tmp_path / "spool").open("rb") as file:
        plain = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()
    expected = [line for one in records for line in (one.record.content, one.sealed.to_line())]
    assert plain.split(b"\n") == [*expected, b""]


def test_a_record_without_a_seal_is_read_and_says_so(tmp_path: Path) -> None:
    record = EncodedRecord(b'{"schema":1}')
    (tmp_path / "spool").write_bytes(encode_frame(record, None))
    (frame,) = read_spool(tmp_path / "spool")
    assert frame.content == SpooledRecord(record)
    with pytest.raises(SealError, match="no seal"):
        _ = frame.content.sealed


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cut=st.integers(0, 3000))
def test_what_is_just_being_written_is_not_there_yet(tmp_path: Path, cut: int) -> None:
    records = _records(4)
    ends = _write(tmp_path / "spool", records)
    os.truncate(tmp_path / "spool", min(cut, ends[-1]))
    found = [frame.content.sealed for frame in read_spool(tmp_path / "spool")]
    assert found == records[: sum(end <= cut for end in ends)]


THREE = _records(3)
FILE = [encode_frame(one.record, one.sealed) for one in THREE]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(position=st.integers(0, 3000), flip=st.integers(1, 255))
def test_no_flipped_byte_passes_as_a_record_that_was_never_written(
    tmp_path: Path, position: int, flip: int
) -> None:
    content = bytearray(b"".join(FILE))
    position %= len(content)
    content[position] ^= flip
    (tmp_path / "spool").write_bytes(content)
    found: list[SealedRecord] = []
    with suppress(DamagedFrameError):
        found.extend(frame.content.sealed for frame in read_spool(tmp_path / "spool"))
    # One bit of a frame's header means nothing; every other one ends the reading there.
    before = sum(len(b"".join(FILE[: n + 1])) <= position for n in range(3))
    assert found in (THREE, THREE[:before])


def test_damage_is_named_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "spool").write_bytes(FILE[0] + b"\0" * 100 + FILE[1])
    with pytest.raises(DamagedFrameError, match=f"is damaged at byte {len(FILE[0])}"):
        list(read_spool(tmp_path / "spool"))


@pytest.mark.parametrize(
    "plain", [b"", b"{}", b"\n", b"{}\n{}\n{}\n", b"no json\n", b"{}\nseal\n", b"{}\n\n"]
)
def test_frames_that_hold_something_else_are_damage(tmp_path: Path, plain: bytes) -> None:
    (tmp_path / "spool").write_bytes(zstandard.compress(plain))
    with pytest.raises(DamagedFrameError):
        list(read_spool(tmp_path / "spool"))


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="No such file"):
        list(read_spool(tmp_path / "spool"))
