"""The allow list of system calls."""

from __future__ import annotations

import json
import socket

import pytest

from sandbox.isolation.docker_seccomp import profile, rules

ALLOWED = {
    name
    for rule in rules()
    if rule["action"] == "SCMP_ACT_ALLOW" and not rule["args"]
    for name in rule["names"]
}


def test_what_is_not_named_is_refused() -> None:
    assert json.loads(profile())["defaultAction"] == "SCMP_ACT_ERRNO"


FORBIDDEN = """
    acct add_key adjtimex bpf chroot clock_settime clone clone3 delete_module fanotify_init
    finit_module fsopen init_module io_uring_enter io_uring_register io_uring_setup ioperm
    iopl kcmp kexec_load keyctl lookup_dcookie memfd_create memfd_secret mount mount_setattr
    move_mount name_to_handle_at
    nfsservctl open_by_handle_at open_tree perf_event_open personality pivot_root
    process_vm_readv process_vm_writev ptrace quotactl reboot request_key setdomainname
    sethostname setns socket settimeofday swapon syslog umount2 unshare uselib userfaultfd
    vhangup
"""


@pytest.mark.parametrize("call", FORBIDDEN.split())
def test_calls_that_reach_beyond_a_sandbox_are_never_allowed_whatever_their_arguments(
    call: str,
) -> None:
    assert call not in ALLOWED


def test_no_call_is_named_twice() -> None:
    names = [name for rule in rules() if not rule["args"] for name in rule["names"]]
    assert len(names) == len(set(names))


def test_sockets_are_of_families_that_know_network_namespaces() -> None:
    families = {rule["args"][0]["value"] for rule in rules() if rule["names"] == ["socket"]}
    assert families == {int(family) for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)}


def test_a_process_may_be_cloned_but_into_no_new_namespace() -> None:
    (rule,) = [rule for rule in rules() if rule["names"] == ["clone"]]
    (argument,) = rule["args"]
    assert argument["op"] == "SCMP_CMP_MASKED_EQ"
    assert argument["valueTwo"] == 0
    every_namespace = 0x80 | 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000
    every_namespace |= 0x20000000 | 0x40000000
    assert argument["value"] == every_namespace
