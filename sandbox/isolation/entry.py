"""The first program inside a bubblewrap sandbox: it gives up everything, then runs the agent.

Runs inside under the system's Python, standard library alone, with the few
capabilities that bubblewrap left it. It mounts what bubblewrap cannot (a `/proc`
without the host, a `/tmp` that nothing can be executed from), takes port 80, forks the
forwarder, and drops to users that exist nowhere else on the host. From then on there
is no way back: no capability, an empty bounding set, no new privileges, a seccomp
filter, limits.

Outside a user namespace root inside is root on the host; that is why this program,
and not a flag of bubblewrap, decides under which host user an agent runs.
"""

from __future__ import annotations

import ctypes
import os
import resource
import sys
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from sandbox.agent_kit import runner
    from sandbox.agent_kit.forwarder import Forwarder, listen
else:
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    import runner
    from forwarder import Forwarder, listen

JOB = "/sandbox/job"
FILTER = "/sandbox/seccomp.bpf"

MS_NOSUID, MS_NODEV, MS_NOEXEC = 2, 4, 8
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
LINUX_CAPABILITY_VERSION_3 = 0x20080522
INSTRUCTION_BYTES = 8
INODES = 65536
SHM_BYTES = 64 << 20

_libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Raise OSError, naming `what`, when a call of the C library failed."""
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def prctl(option: int, *arguments: int) -> None:
    """prctl(2)."""
    full = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    check(_libc.prctl(option, *full), f"prctl({option})")


def mount(kind: str, target: str, options: str) -> None:
    """Mount a pseudo file system that holds no device, no set-user-id and no program."""
    flags = ctypes.c_ulong(MS_NOSUID | MS_NODEV | MS_NOEXEC)
    done = _libc.mount(kind.encode(), target.encode(), kind.encode(), flags, options.encode())
    check(done, f"mount {kind} on {target}")


def mount_all(uid: int, tmp_bytes: int) -> None:
    """The only writable places, and a `/proc` of the sandbox's own processes alone.

    `subset=pid` leaves out all of the host (sysctls, kcore, meminfo), and `hidepid`
    every process of another user.
    """
    mount("proc", "/proc", "subset=pid,hidepid=invisible")
    owner = f"mode=0700,uid={uid},gid={uid}"
    mount("tmpfs", "/tmp", f"size={tmp_bytes},nr_inodes={INODES},{owner}")  # noqa: S108
    mount("tmpfs", "/dev/shm", f"size={SHM_BYTES},nr_inodes={INODES},{owner}")  # noqa: S108


def drop_privileges(uid: int, *, same_user: bool) -> None:
    """Become `uid` and lose every capability for good.

    `same_user`: in a user namespace this process already is who it will be.
    """
    for capability in range(64):
        if _libc.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) != 0:
            break  # past the last capability that this kernel knows
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    if not same_user:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header = (ctypes.c_uint32 * 2)(LINUX_CAPABILITY_VERSION_3, 0)
    check(_libc.capset(header, (ctypes.c_uint32 * 6)()), "capset")
    prctl(PR_SET_NO_NEW_PRIVS, 1)


class SockFprog(ctypes.Structure):
    """struct sock_fprog of seccomp(2)."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def install_filter(program: bytes) -> None:
    """Put the seccomp filter over this process and all that it starts."""
    argument = SockFprog(len(program) // INSTRUCTION_BYTES, program)
    check(_libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(argument), 0, 0), "seccomp")


def set_limits(limits: dict[str, int]) -> None:
    """Set each RLIMIT_… named in `limits`, hard, or what the host allows if that is less."""
    for name, value in limits.items():
        which = getattr(resource, f"RLIMIT_{name}")
        _, hard = resource.getrlimit(which)
        bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(which, (bound, bound))


def fork_forwarder(confine: dict[str, Any], gateway: str, program: bytes) -> int:
    """Start the forwarder under a user of its own, where one can be had; return its port."""
    server, port = listen()
    if os.fork() == 0:
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            drop_privileges(confine["forwarder_uid"], same_user=confine["same_user"])
            install_filter(program)
            Forwarder(server, gateway).serve()
        finally:
            os._exit(1)
    server.close()
    return port


def main() -> NoReturn:
    """Confine this process, then run the job."""
    job = runner.read_job(JOB)
    confine = job["confine"]
    with open(FILTER, "rb") as file:
        program = file.read()
    mount_all(confine["uid"], confine["tmp_bytes"])
    port = fork_forwarder(confine, job["gateway_socket"], program)
    # The kernel shall take the agent, not the forwarder, when the sandbox's memory is out.
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("500")
    set_limits(confine["rlimits"])
    drop_privileges(confine["uid"], same_user=confine["same_user"])
    # Changing the user took away the process's own view of itself in /proc.
    prctl(PR_SET_DUMPABLE, 1)
    install_filter(program)
    runner.run(JOB, job, port)


if __name__ == "__main__":
    main()
