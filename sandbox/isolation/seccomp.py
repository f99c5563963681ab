"""Compiles a policy of system calls into a seccomp filter, with the system's libseccomp.

libseccomp knows the numbers of each architecture; apt itself depends on it, so it is
there on every Debian and Ubuntu. Reads nothing but that library.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from sandbox.exceptions import IsolationError
from sandbox.isolation.docker_seccomp import rules

LIBRARY: Final = "libseccomp.so.2"
REMEDY: Final = "apt-get install libseccomp2"

_ALLOW: Final = 0x7FFF0000
_ERRNO: Final = 0x00050000
_KILL_PROCESS: Final = 0x80000000
_BAD_ARCHITECTURE: Final = 2
"""SCMP_FLTATR_ACT_BADARCH: calls through another architecture's entry."""
_COMPARISONS: Final = {"SCMP_CMP_EQ": 4, "SCMP_CMP_MASKED_EQ": 7}
_UNKNOWN: Final = -1
"""__NR_SCMP_ERROR: this library does not know the name."""


class _Comparison(ctypes.Structure):
    """struct scmp_arg_cmp."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


@lru_cache(maxsize=1)
def agent_filter() -> bytes:
    """The filter that agents run under: the policy both isolations share, as BPF.

    Raises IsolationError without libseccomp.
    """
    return compile_filter(rules())


def compile_filter(policy: Iterable[Mapping[str, Any]]) -> bytes:
    """Translate rules in the Docker Engine's format; what no rule allows fails with EPERM.

    Names that this libseccomp does not know are passed over: an agent cannot call what
    falls to the default anyway. Raises IsolationError.
    """
    library = _load()
    context = library.seccomp_init(_ERRNO | errno.EPERM)
    if not context:
        raise IsolationError("libseccomp cannot make a filter")
    try:
        _check(library.seccomp_attr_set(context, _BAD_ARCHITECTURE, _KILL_PROCESS))
        for rule in policy:
            for name in rule["names"]:
                _add(library, context, name, rule)
        return _export(library, context)
    finally:
        library.seccomp_release(context)


def _load() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError:
        raise IsolationError(f"{LIBRARY} is not installed", remedy=REMEDY) from None
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_attr_set.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32]
    library.seccomp_rule_add_array.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint32,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.POINTER(_Comparison),
    ]
    library.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.seccomp_release.argtypes = [ctypes.c_void_p]
    library.seccomp_release.restype = None
    library.seccomp_syscall_resolve_name.argtypes = [ctypes.c_char_p]
    return library


def _add(library: ctypes.CDLL, context: int, name: str, rule: Mapping[str, Any]) -> None:
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number == _UNKNOWN:
        return
    arguments = rule.get("args", [])
    comparisons = (_Comparison * len(arguments))(
        *(
            _Comparison(a["index"], _COMPARISONS[a["op"]], a["value"], a["valueTwo"])
            for a in arguments
        )
    )
    action = _ALLOW
    if rule["action"] == "SCMP_ACT_ERRNO":
        action = _ERRNO | rule.get("errnoRet", errno.EPERM)
        if action == _ERRNO | errno.EPERM:
            return  # the default; libseccomp refuses to add it
    _check(library.seccomp_rule_add_array(context, action, number, len(arguments), comparisons))


def _export(library: ctypes.CDLL, context: int) -> bytes:
    fd = os.memfd_create("seccomp")
    try:
        _check(library.seccomp_export_bpf(context, fd))
        return os.pread(fd, os.fstat(fd).st_size, 0)
    finally:
        os.close(fd)


def _check(result: int) -> None:
    if result < 0:
        raise IsolationError(f"libseccomp: {os.strerror(-result)}")
