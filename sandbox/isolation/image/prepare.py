"""Run once, while the sandbox image is built, by the interpreter that agents will get.

Takes away whatever can be imported besides the standard library and the pinned
libraries, makes those known to the interpreter, compiles everything (the root is
read-only later), gives sandboxes a folder to unpack into, and clears set-user-id bits.
"""

import compileall
import os
import shutil
import site
import stat
import sys
import sysconfig
from pathlib import Path

LIBRARIES = Path("/opt/arena/libraries")
SANDBOX = Path("/sandbox")
OLDEST = (3, 11)


def main() -> None:
    """Prepare the image's root; a failure ends the build."""
    if sys.version_info < OLDEST:
        sys.exit(f"the base has Python {sys.version.split()[0]}; agents need 3.11 or newer")
    folders = [Path(folder) for folder in site.getsitepackages()]
    for folder in folders:
        if folder.is_dir():
            empty(folder)
    folders[0].mkdir(parents=True, exist_ok=True)
    (folders[0] / "arena.pth").write_text(f"{LIBRARIES}\n", encoding="ascii")
    compile_all(Path(sysconfig.get_path("stdlib")), LIBRARIES)
    SANDBOX.mkdir()
    clear_setuid(Path("/"))
    Path(__file__).unlink()
    sys.path.append(str(LIBRARIES))
    import requests  # the proof that it works without what was left out

    print(f"Python {sys.version.split()[0]}, requests {requests.__version__}")


def empty(folder: Path) -> None:
    """Remove everything in `folder`: pip and its kin do not belong in a sandbox."""
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def compile_all(stdlib: Path, libraries: Path) -> None:
    """Write the byte code; a few test files of the standard library are broken on purpose."""
    compileall.compile_dir(stdlib, quiet=2, workers=0)
    if not compileall.compile_dir(libraries, quiet=1, workers=0):
        sys.exit("the libraries cannot be compiled by the base's interpreter")


def clear_setuid(root: Path) -> None:
    """Clear set-user-id and set-group-id bits on this file system."""
    device = root.stat().st_dev
    for folder, names, files in os.walk(root):
        names[:] = [n for n in names if Path(folder, n).lstat().st_dev == device]
        for path in (Path(folder, name) for name in files):
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                path.chmod(stat.S_IMODE(mode) & ~(stat.S_ISUID | stat.S_ISGID))


main()
