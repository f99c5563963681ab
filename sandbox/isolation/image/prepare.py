"""Run once, while the sandbox image is built, by the interpreter that agents will get.

    python3 -I prepare.py ROOT

Copies into ROOT, which becomes the image: this interpreter, its standard library, the
shared libraries these load, and the pinned libraries and `unpack.py` that lie beside
this file. Nothing else of the base is in the image: no shell, no package manager, no
set-user-id file. Everything is compiled, since the root is read-only later.
"""

import compileall
import py_compile
import re
import shutil
import site
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
OLDEST = (3, 11)
ARENA = "opt/arena"
LEFT_OUT = ("test", "idlelib", "tkinter", "turtledemo", "ensurepip", "config-*", "lib2to3")
"""Parts of the standard library that a sandbox has no use for; as under bubblewrap."""

LOADED_LATER = ("libgcc_s.so.1",)
"""What the C library opens by itself: pthread_exit needs it."""

ETC = {
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "passwd": "root:x:0:0::/:/bin/false\n",
    "group": "root:x:0:\n",
}


def main() -> None:
    """Fill the image's root; a failure ends the build."""
    if sys.version_info < OLDEST:
        sys.exit(f"the base has Python {sys.version.split()[0]}; agents need 3.11 or newer")
    root = Path(sys.argv[1])
    skeleton(root)
    stdlib = Path(sysconfig.get_path("stdlib"))
    copy_interpreter(root, stdlib)
    arena = root / ARENA
    shutil.copytree(HERE / "libraries", arena / "libraries")
    shutil.copy(HERE / "unpack.py", arena)
    packages = inside(root, Path(site.getsitepackages()[0]))
    packages.mkdir(parents=True, exist_ok=True)
    (packages / "arena.pth").write_text(f"/{ARENA}/libraries\n", encoding="ascii")
    compile_all(root, inside(root, stdlib), arena)
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            runnable = path.is_dir() or path.stat().st_mode & 0o100
            path.chmod(0o755 if runnable else 0o644)


def skeleton(root: Path) -> None:
    """Folders to mount upon, and the little of /etc that the C library reads."""
    for folder in ("usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "etc", "sandbox"):
        (root / folder).mkdir(parents=True)
    for folder in ("dev", "proc", "sys", "tmp", "run"):
        (root / folder).mkdir()
    for link in ("bin", "lib", "lib64", "sbin"):
        (root / link).symlink_to(f"usr/{link}")
    for name, text in ETC.items():
        (root / "etc" / name).write_text(text, encoding="ascii")


def inside(root: Path, path: Path) -> Path:
    """Where a path of the base lies in the image, whose /lib is a link into /usr."""
    top = path.parts[1]
    return root / ("usr" if top in {"bin", "lib", "lib64", "sbin"} else "") / str(path)[1:]


def copy_interpreter(root: Path, stdlib: Path) -> None:
    """Copy python3, the standard library, what they load, and the time zones."""
    real = Path(sys.executable).resolve()
    copy(root, real)
    program = inside(root, Path(sys.executable))
    program.with_name("python3").unlink(missing_ok=True)
    program.with_name("python3").symlink_to(real.name)
    left_out = shutil.ignore_patterns(
        *LEFT_OUT, "__pycache__", "site-packages", "dist-packages", "sitecustomize.py"
    )
    shutil.copytree(stdlib, inside(root, stdlib), ignore=left_out, ignore_dangling_symlinks=True)
    for library in shared_libraries([real, *sorted((stdlib / "lib-dynload").glob("*.so"))]):
        copy(root, library)
    cache = Path("/etc/ld.so.cache")  # a base may keep libpython where no default looks
    if cache.exists():
        copy(root, cache)
    zones = Path("/usr/share/zoneinfo")
    if zones.is_dir():
        doubles = shutil.ignore_patterns("posix", "right", "localtime", "posixrules")
        shutil.copytree(zones, inside(root, zones), ignore=doubles)


def copy(root: Path, path: Path) -> None:
    """Copy one file of the base to its place in the image."""
    target = inside(root, path)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(path, target)


def shared_libraries(programs: Iterable[Path]) -> list[Path]:
    """Every shared library that the programs load, after ldd(1)."""
    listed = subprocess.run(["ldd", *programs], check=False, capture_output=True, text=True).stdout
    found = {Path(path) for path in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", listed, re.M)}
    folders = {path.parent for path in found if path.name == "libc.so.6"}
    if not folders:
        sys.exit("ldd does not say which libraries python3 needs")
    found |= {f / name for f in folders for name in LOADED_LATER if (f / name).exists()}
    return sorted(found)


def compile_all(root: Path, stdlib: Path, arena: Path) -> None:
    """Write byte code that names the files by their paths in the image, and never goes stale."""
    for folder, quiet in ((stdlib, 2), (arena / "libraries", 1)):
        done = compileall.compile_dir(
            folder,
            quiet=quiet,
            workers=0,
            stripdir=root,
            prependdir="/",
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        if not done and folder != stdlib:
            sys.exit("the libraries cannot be compiled by the base's interpreter")


main()
