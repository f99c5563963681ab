"""The system calls a sandbox may make, as a seccomp profile of the Docker Engine.

An allow list: whatever is not named here, and whatever the kernel learns later, is
refused with EPERM. It is narrower than Docker's default profile, which lets an agent
open AF_VSOCK sockets: those know no network namespace, so that on a virtual machine
`--network none` does not stop an agent from talking to the hypervisor's side. Netlink
is refused, too: name resolution does without, and much of the kernel lies behind it.
So are files without a name, since a program in one could be executed, and nothing else
that an agent can write may be.

Only the machine's native architecture is allowed; calls of another one (32-bit on
x86-64) kill the caller, which is libseccomp's default.

Format: https://docs.docker.com/engine/security/seccomp/.
"""

from __future__ import annotations

import errno
import json
import socket
from typing import Final, TypedDict

FILES: Final = """
    access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3
    faccessat faccessat2 fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown
    fchownat fcntl fdatasync fgetxattr flistxattr flock fremovexattr fsetxattr fstat
    fstatfs fsync ftruncate futimesat getcwd getdents getdents64 getxattr inotify_add_watch
    inotify_init inotify_init1 inotify_rm_watch ioctl lchown lgetxattr link linkat listxattr
    llistxattr lremovexattr lseek lsetxattr lstat mkdir mkdirat mknod mknodat
    newfstatat open openat openat2 pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev
    pwritev2 read readahead readlink readlinkat readv removexattr rename renameat renameat2
    rmdir sendfile setxattr splice stat statfs statx symlink symlinkat sync sync_file_range
    syncfs tee truncate umask unlink unlinkat utime utimensat utimes vmsplice write writev
"""
MEMORY: Final = """
    brk madvise membarrier mincore mlock mlock2 mlockall mmap mprotect mremap msync munlock
    munlockall munmap pkey_alloc pkey_free pkey_mprotect
"""
PROCESSES: Final = """
    arch_prctl capget capset execve execveat exit exit_group fork getcpu getegid geteuid
    getgid getgroups getitimer getpgid getpgrp getpid getppid getpriority getresgid getresuid
    getrlimit getrusage getsid gettid getuid kill pidfd_open pidfd_send_signal pause prctl
    prlimit64 rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn
    rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max
    sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
    sched_rr_get_interval sched_setaffinity sched_yield set_robust_list get_robust_list
    set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid
    setresgid setresuid setreuid setrlimit setsid setuid sigaltstack signalfd signalfd4 tgkill
    times tkill uname sysinfo vfork wait4 waitid getrandom restart_syscall
"""
WAITING: Final = """
    alarm clock_getres clock_gettime clock_nanosleep epoll_create epoll_create1 epoll_ctl
    epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2 futex
    futex_waitv gettimeofday nanosleep poll ppoll pselect6 select time timer_create
    timer_delete timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime
    timerfd_settime
"""
SOCKETS: Final = """
    accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg
    recvmsg sendmmsg sendmsg sendto setsockopt shutdown socketpair
"""

_NEW_NAMESPACES: Final = 0x7E020080
"""CLONE_NEWTIME, CLONE_NEWNS, CLONE_NEWCGROUP, -UTS, -IPC, -USER, -PID, -NET."""

_UNTOUCHED_PERSONALITIES: Final = (0x0, 0xFFFFFFFF)


class _Argument(TypedDict):
    index: int
    value: int
    valueTwo: int
    op: str


class _Rule(TypedDict, total=False):
    names: list[str]
    action: str
    args: list[_Argument]
    errnoRet: int


def _equal(index: int, value: int) -> _Argument:
    return {"index": index, "value": value, "valueTwo": 0, "op": "SCMP_CMP_EQ"}


def _allow(names: str, *arguments: _Argument) -> _Rule:
    return {"names": names.split(), "action": "SCMP_ACT_ALLOW", "args": list(arguments)}


def rules() -> list[_Rule]:
    """The allow list, and the few calls that depend on their arguments."""
    no_namespace: _Argument = {
        "index": 0,
        "value": _NEW_NAMESPACES,
        "valueTwo": 0,
        "op": "SCMP_CMP_MASKED_EQ",
    }
    return [
        _allow(FILES + MEMORY + PROCESSES + WAITING + SOCKETS),
        _allow("clone", no_namespace),
        # Its flags lie in memory, where no filter can read them: glibc falls back to clone.
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "args": [], "errnoRet": errno.ENOSYS},
        *(_allow("personality", _equal(0, value)) for value in _UNTOUCHED_PERSONALITIES),
        *(_allow("socket", _equal(0, int(f))) for f in (socket.AF_UNIX, socket.AF_INET)),
        _allow("socket", _equal(0, int(socket.AF_INET6))),
    ]


def profile() -> str:
    """The profile as the JSON text that `SecurityOpt` takes after `seccomp=`."""
    return json.dumps(
        {
            "defaultAction": "SCMP_ACT_ERRNO",
            "defaultErrnoRet": errno.EPERM,
            "syscalls": rules(),
        },
        separators=(",", ":"),
    )
