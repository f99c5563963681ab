"""The spool keeps every record that it confirmed, whatever happens to the process."""

from __future__ import annotations

import asyncio
import os
import resource
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arena.exceptions import Fault, SpoolError
from arena.runs.record import EncodedRecord
from arena.runs.spool import FILE_NAME, SpoolSink


def _record(number: int) -> EncodedRecord:
    return EncodedRecord(b'{"n":%d,"text":"%s"}' % (number, b"x" * (number * 37 % 5000)))


def _open(directory: Path) -> tuple[SpoolSink, list[bytes]]:
    spool = SpoolSink(directory)
    return spool, [found.record.content for _, found in spool.load()]


async def _fill(directory: Path, count: int) -> list[int]:
    """Write `count` records; the offsets at which each ends."""
    spool, _ = _open(directory)
    ends = []
    for number in range(count):
        entry = await spool.append(_record(number))
        ends.append(entry.offset + entry.length)
    spool.close()
    return ends


async def test_records_come_back_in_order_and_by_place(tmp_path: Path) -> None:
    spool, found = _open(tmp_path)
    assert found == []
    entries = [await spool.append(_record(n)) for n in range(5)]
    assert (await spool.read(entries[3])).record.content == _record(3).content
    spool.close()
    again, found = _open(tmp_path)
    assert found == [_record(n).content for n in range(5)]
    assert again.torn is None
    await again.put(_record(5))
    again.close()
    assert len(_open(tmp_path)[1]) == 6


async def test_the_file_is_json_lines_under_zstandard(tmp_path: Path) -> None:
    await _fill(tmp_path, 3)
    with (tmp_path / FILE_NAME).open("rb") as file:
        reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        lines = reader.read().split(b"\n")
    assert lines == [*(_record(n).content for n in range(3)), b""]


async def test_tasks_that_put_at_once_do_not_mix_their_records(tmp_path: Path) -> None:
    spool, _ = _open(tmp_path)
    await asyncio.gather(*(spool.put(_record(n)) for n in range(50)))
    spool.close()
    assert sorted(_open(tmp_path)[1]) == sorted(_record(n).content for n in range(50))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cut=st.integers(min_value=0, max_value=2000))
async def test_a_file_torn_anywhere_loses_only_what_was_not_confirmed(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    directory = tmp_path_factory.mktemp("spool")
    ends = await _fill(directory, 6)
    cut = min(cut, ends[-1])
    os.truncate(directory / FILE_NAME, cut)
    whole = sum(end <= cut for end in ends)
    spool, found = _open(directory)
    assert found == [_record(n).content for n in range(whole)]
    rest = cut - ([0, *ends][whole])
    assert (spool.torn is not None) is (rest > 0)
    if spool.torn is not None:
        assert spool.torn.stat().st_size == rest
    await spool.put(_record(0))  # shorter than what was torn off
    spool.close()
    again, found = _open(directory)
    assert found[whole:] == [_record(0).content]
    assert again.torn is None


@pytest.mark.parametrize("damage", [b"\0" * 4096, b"not a frame", b"\x28\xb5\x2f\xfd"])
async def test_what_a_crash_of_the_machine_leaves_is_set_aside(
    tmp_path: Path, damage: bytes
) -> None:
    await _fill(tmp_path, 2)
    with (tmp_path / FILE_NAME).open("ab") as file:
        file.write(damage)
    spool, found = _open(tmp_path)
    assert len(found) == 2
    assert spool.torn is not None
    assert spool.torn.read_bytes() == damage


async def test_a_damaged_record_is_noticed_by_its_checksum(tmp_path: Path) -> None:
    ends = await _fill(tmp_path, 3)
    path = tmp_path / FILE_NAME
    content = bytearray(path.read_bytes())
    content[ends[1] - 6] ^= 0xFF
    path.write_bytes(content)
    spool, found = _open(tmp_path)
    assert len(found) == 1
    assert spool.torn is not None


async def test_a_disk_that_takes_no_more_is_the_validators_fault_and_loses_nothing(
    tmp_path: Path,
) -> None:
    await _fill(tmp_path, 1)
    spool, _ = _open(tmp_path)
    room = (tmp_path / FILE_NAME).stat().st_size + 10
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(SpoolError, match="File too large") as caught:
            await spool.put(_record(1))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.fault is Fault.VALIDATOR
    await spool.put(_record(2))
    spool.close()
    assert _open(tmp_path)[1] == [_record(0).content, _record(2).content]
