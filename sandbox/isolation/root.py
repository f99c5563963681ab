"""The read-only root of a bubblewrap sandbox: staged once, shared by all.

Holds the system's python3, its standard library and the libraries these load, one
pinned `requests`, the agent kit, and nothing else of the host: no shell, no
configuration, no packages. A copy rather than bind mounts of `/usr`, so that an
upgrade of the host in the middle of a race changes nothing, and so that its digest
says what agents ran on. Writes only below the cache folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final

import sandbox.agent_kit
from sandbox.exceptions import IsolationError
from sandbox.isolation.seccomp import agent_filter

PYTHON: Final = Path("/usr/bin/python3")
OLDEST: Final = (3, 11)
LIBRARIES: Final = ("requests", "urllib3", "idna", "certifi", "charset-normalizer")
"""`requests` and what it needs, from the validator's own locked packages."""

INSIDE: Final = "/sandbox"
JOB: Final = f"{INSIDE}/job"
SITE: Final = f"{INSIDE}/site"
KIT: Final = f"{INSIDE}/kit"
SOCKET: Final = f"{INSIDE}/gateway.sock"
_ENTRY_SOURCE: Final = Path(__file__).with_name("entry.py")
ENTRY: Final = f"{KIT}/{_ENTRY_SOURCE.name}"
DEVICES: Final = ("null", "zero", "full", "random", "urandom")

_LEFT_OUT: Final = ("test", "idlelib", "tkinter", "turtledemo", "ensurepip", "config-*", "lib2to3")
_LOADED_LATER: Final = ("libgcc_s.so.1",)
"""What the C library opens by itself: pthread_exit needs it."""
_ETC: Final = {
    "hosts": "127.0.0.1 localhost proxy sandbox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "passwd": "root:x:0:0::/:/bin/false\nagent:x:1000:1000::/tmp:/bin/false\n",
    "group": "root:x:0:\nagent:x:1000:\n",
    "resolv.conf": "",
}
_PROBE: Final = (
    "import json, sys, sysconfig; print(json.dumps("
    "[list(sys.version_info[:3]), sys.executable, sysconfig.get_path('stdlib')]))"
)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The system's Python: its version, its file and its standard library."""

    version: tuple[int, int, int]
    executable: Path
    stdlib: Path


@dataclass(frozen=True, slots=True)
class Root:
    """A staged root. `digest` is a SHA-256 over every file in it but byte code."""

    path: Path
    digest: str
    python: str
    requests: str


def find_interpreter(python: Path = PYTHON) -> Interpreter:
    """Ask the system's Python what it is. Raises IsolationError."""
    try:
        text = subprocess.run(
            [python, "-I", "-S", "-c", _PROBE], check=True, capture_output=True, timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError):
        raise IsolationError(f"{python} cannot be run", remedy="apt-get install python3") from None
    version, _, stdlib = json.loads(text)
    if tuple(version) < OLDEST:
        raise IsolationError(
            f"{python} is {'.'.join(map(str, version))}; agents need 3.11 or newer",
            remedy="use Docker (make image)",
        )
    return Interpreter(tuple(version), python.resolve(), Path(stdlib))


def stage(cache: Path) -> Root:
    """Return the root for this machine, making it when it is not there (seconds).

    Several processes may call this at once. Roots of other versions that nobody uses
    are removed. Raises IsolationError.
    """
    interpreter = find_interpreter()
    try:
        cache.mkdir(mode=0o755, parents=True, exist_ok=True)
        lock = os.open(cache / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise IsolationError(
            f"{cache} cannot be written: {error.strerror}",
            remedy="set ARENA_SANDBOX_CACHE_DIR to a folder that this user may write to",
        ) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        name = f"root-{_fingerprint(interpreter)[:24]}"
        final = cache / name
        if not (final / "manifest.json").exists():
            _build(interpreter, cache, final)
        _use(cache, name)
        _remove_unused(cache, name)
    finally:
        os.close(lock)
    manifest = json.loads((final / "manifest.json").read_text(encoding="utf-8"))
    return Root(path=final / "root", **manifest)


def _fingerprint(interpreter: Interpreter) -> str:
    """What decides the content, without reading all of it."""
    seen = hashlib.sha256(agent_filter())
    files = [interpreter.executable, interpreter.stdlib]
    files += sorted((interpreter.stdlib / "lib-dynload").iterdir())
    for file in files:
        found = file.stat()
        seen.update(f"{file} {found.st_size} {found.st_mtime_ns}\n".encode())
    seen.update(json.dumps([distribution(name).version for name in LIBRARIES]).encode())
    for path, source in sorted(_kit_files()):
        seen.update(f"{path}\n".encode() + source.read_bytes())
    seen.update(Path(__file__).read_bytes())
    return seen.hexdigest()


def _build(interpreter: Interpreter, cache: Path, final: Path) -> None:
    building = cache / f".building-{final.name}"
    shutil.rmtree(building, ignore_errors=True)
    shutil.rmtree(final, ignore_errors=True)
    root = building / "root"
    _make_skeleton(root)
    _copy_interpreter(interpreter, root)
    for path, source in _kit_files():
        _copy(source, root / KIT[1:] / path)
    for path, source in _library_files():
        _copy(source, root / SITE[1:] / path)
    (root / INSIDE[1:] / "seccomp.bpf").write_bytes(agent_filter())
    _compile(interpreter, root)
    _open_to_readers(root)
    manifest = {
        "digest": _digest(root),
        "python": ".".join(map(str, interpreter.version)),
        "requests": distribution("requests").version,
    }
    (building / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    building.rename(final)


def _make_skeleton(root: Path) -> None:
    """Folders, the few files of /etc, and something to mount each mount upon."""
    for folder in ("usr/bin", "usr/lib64", "etc", "proc", "tmp", "dev/shm", JOB[1:]):
        (root / folder).mkdir(parents=True)
    for link, target in (("bin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")):
        (root / link).symlink_to(target)
    for name, text in _ETC.items():
        (root / "etc" / name).write_text(text, encoding="ascii")
    for name in DEVICES:
        (root / "dev" / name).touch()
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        (root / "dev" / name).symlink_to(f"/proc/self/fd{target}")
    for placeholder in (f"{JOB}/agent.py", f"{JOB}/job.json", SOCKET):
        (root / placeholder[1:]).touch()


def _copy_interpreter(interpreter: Interpreter, root: Path) -> None:
    executable = root / "usr/bin" / interpreter.executable.name
    _copy(interpreter.executable, executable, mode=0o755)
    (root / "usr/bin/python3").symlink_to(executable.name)
    shutil.copytree(
        interpreter.stdlib,
        root / str(interpreter.stdlib)[1:],
        ignore=shutil.ignore_patterns(*_LEFT_OUT, "*.opt-?.pyc", "EXTERNALLY-MANAGED"),
        ignore_dangling_symlinks=True,
    )
    (root / str(interpreter.stdlib)[1:] / "sitecustomize.py").unlink(missing_ok=True)
    modules = sorted((interpreter.stdlib / "lib-dynload").glob("*.so"))
    for library in _shared_libraries([interpreter.executable, *modules]):
        _copy(library, root / _merged(library), mode=0o755)
    zones = Path("/usr/share/zoneinfo")
    if zones.is_dir():
        ignore = shutil.ignore_patterns("posix", "right", "localtime", "posixrules")
        shutil.copytree(zones, root / str(zones)[1:], ignore=ignore)


def _shared_libraries(programs: Iterable[Path]) -> list[Path]:
    """Every shared library that the programs load, after ldd(1)."""
    listed = subprocess.run(["ldd", *programs], check=False, capture_output=True, text=True)
    found = {Path(path) for path in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", listed.stdout, re.M)}
    folders = {path.parent for path in found if path.name == "libc.so.6"}
    found |= {f / name for f in folders for name in _LOADED_LATER if (f / name).exists()}
    if not folders:
        raise IsolationError("ldd does not say which libraries python3 needs")
    return sorted(found)


def _merged(library: Path) -> str:
    """Where a library goes in a root whose /lib and /lib64 are links into /usr."""
    return str(library)[1:] if library.is_relative_to("/usr") else f"usr{library}"


def _kit_files() -> Iterator[tuple[str, Path]]:
    """The agent kit, and the program that starts it: path inside, and source."""
    (folder,) = sandbox.agent_kit.__path__
    for file in sorted(Path(folder).rglob("*.py")):
        path = file.relative_to(folder).as_posix()
        if path != "__init__.py":
            yield path, file
    yield _ENTRY_SOURCE.name, _ENTRY_SOURCE


def _library_files() -> Iterator[tuple[str, Path]]:
    """The pinned libraries, pure Python only: the validator's own may be another version."""
    for name in LIBRARIES:
        for file in distribution(name).files or ():
            if file.parts[0] == ".." or file.suffix in {".pyc", ".so"}:
                continue
            if not file.parts[0].endswith(".dist-info"):
                yield file.as_posix(), Path(str(file.locate()))


def _copy(source: Path, target: Path, mode: int = 0o644) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)


def _compile(interpreter: Interpreter, root: Path) -> None:
    """Write byte code: nothing inside could, for the root is read-only there."""
    run: dict[str, Any] = {"check": True, "capture_output": True}
    base = [str(interpreter.executable), "-I", "-S", "-m", "compileall", "-qq"]
    own = [root / KIT[1:], root / SITE[1:]]
    subprocess.run([*base, "--invalidation-mode", "unchecked-hash", *own], **run)
    subprocess.run([*base, root / str(interpreter.stdlib)[1:]], **(run | {"check": False}))


def _open_to_readers(root: Path) -> None:
    """Readable by all and set-user-id for none, whatever the umask was."""
    root.chmod(0o755)
    for path in root.rglob("*"):
        if not path.is_symlink():
            executable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if executable else 0o644)


def _digest(root: Path) -> str:
    seen = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if "__pycache__" in path.parts or (path.is_dir() and not path.is_symlink()):
            continue
        if path.is_symlink():
            content = b"link " + os.readlink(path).encode()
        else:
            content = hashlib.sha256(path.read_bytes()).digest()
        name = path.relative_to(root).as_posix().encode()
        seen.update(len(name).to_bytes(4) + name + len(content).to_bytes(4) + content)
    return seen.hexdigest()


_in_use: dict[Path, int] = {}
"""Locks that tell other processes which roots this one runs on."""


def _use(cache: Path, name: str) -> None:
    path = cache / f"{name}.lock"
    if path not in _in_use:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_SH)
        _in_use[path] = fd


def _remove_unused(cache: Path, kept: str) -> None:
    for lock in cache.glob("root-*.lock"):
        name = lock.name.removesuffix(".lock")
        if name == kept or lock in _in_use:
            continue
        fd = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(cache / name, ignore_errors=True)
            lock.unlink()
        except BlockingIOError:
            continue
        finally:
            os.close(fd)


def manifest_of(root: Root) -> dict[str, str]:
    """What of a root decides how agents run."""
    return {name: value for name, value in asdict(root).items() if name != "path"}
