"""A host user belongs to one sandbox at a time, whichever process started it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sandbox.exceptions import IsolationError
from sandbox.isolation.slots import Slots, require_free_uids


def test_slots_have_users_of_their_own(tmp_path: Path) -> None:
    slots = Slots(tmp_path / "slots", 5000, 3)
    taken = [slots.take() for _ in range(3)]
    users = [uid for slot in taken for uid in (slot.uid, slot.forwarder_uid)]
    assert users == [5000, 5001, 5002, 5003, 5004, 5005]
    for slot in taken:
        slot.release()


def test_no_slot_is_given_twice_and_none_beyond_the_last(tmp_path: Path) -> None:
    first, second = Slots(tmp_path / "s", 5000, 2), Slots(tmp_path / "s", 5000, 2)
    one, two = first.take(), second.take()
    assert {one.number, two.number} == {0, 1}
    with pytest.raises(IsolationError, match="in use") as caught:
        first.take()
    assert "ARENA_SANDBOX_UID_SLOTS" in str(caught.value.remedy)
    one.release()
    again = second.take()
    assert again.number == one.number
    again.release()
    two.release()


def test_a_note_outlives_its_owner_and_a_living_owners_is_left_alone(tmp_path: Path) -> None:
    slots = Slots(tmp_path / "s", 5000, 3)
    dead, living, clean = slots.take(), slots.take(), slots.take()
    dead.note = "a cgroup"
    living.note = "another"
    dead.release()  # as the kernel does when a process is killed
    clean.release()
    (left,) = slots.abandoned()
    assert (left.number, left.note) == (dead.number, "a cgroup")
    left.note = ""
    left.release()
    assert list(slots.abandoned()) == []
    assert living.note == "another"
    living.release()


def test_a_shorter_note_leaves_nothing_of_a_longer_one(tmp_path: Path) -> None:
    slot = Slots(tmp_path / "s", 5000, 1).take()
    slot.note = "a long note"
    slot.note = "short"
    assert slot.note == "short"
    slot.release()
    slot.release()


def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "s"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(IsolationError, match="open to others"):
        Slots(folder, 5000, 1).take()


def test_a_slot_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir(mode=0o700)
    (tmp_path / "s/0.slot").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        Slots(tmp_path / "s", 5000, 1).take()
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("start", [99_990, 100_000, 165_535])
def test_a_range_given_to_a_user_is_refused(tmp_path: Path, start: int) -> None:
    subuid = tmp_path / "subuid"
    subuid.write_text("# comment\nbuilder:100000:65536\nbroken:x:1\n")
    with pytest.raises(IsolationError, match="builder"):
        require_free_uids(start, 8, subuid)


@pytest.mark.parametrize("start", [99_984, 165_536])
def test_a_range_beside_it_is_free(tmp_path: Path, start: int) -> None:
    subuid = tmp_path / "subuid"
    subuid.write_text("builder:100000:65536\n")
    require_free_uids(start, 8, subuid)
    require_free_uids(start, 8, tmp_path / "missing")


def test_a_user_in_the_range_is_refused() -> None:
    with pytest.raises(IsolationError, match="user nobody"):
        require_free_uids(65_530, 8)
