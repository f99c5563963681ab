"""The filter is compiled for this machine; what it stops is tried in the integration tests."""

from __future__ import annotations

import errno
import struct

from sandbox.isolation.seccomp import agent_filter, compile_filter

ALLOW, ERRNO, KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
RETURN = 0x06


def verdicts(program: bytes) -> set[int]:
    """Every value that a program can return (struct sock_filter of linux/filter.h)."""
    return {value for code, _, _, value in struct.iter_unpack("=HBBI", program) if code == RETURN}


def test_what_is_not_allowed_is_refused_and_another_architecture_kills() -> None:
    found = verdicts(agent_filter())
    assert {ALLOW, ERRNO | errno.EPERM, ERRNO | errno.ENOSYS, KILL_PROCESS} <= found


def test_an_empty_policy_allows_nothing() -> None:
    assert ALLOW not in verdicts(compile_filter([]))


def test_names_that_the_library_does_not_know_are_passed_over() -> None:
    rule = {"names": ["no_such_call"], "action": "SCMP_ACT_ALLOW", "args": []}
    assert compile_filter([rule]) == compile_filter([])
