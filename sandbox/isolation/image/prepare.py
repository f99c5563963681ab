"""Run once, while the sandbox image is built, by the interpreter that agents will get.

Puts the pinned libraries where that interpreter looks for them, takes away whatever
else can be imported, compiles everything (the root is read-only later) and clears
set-user-id bits.
"""

import compileall
import os
import shutil
import site
import stat
import sys
import sysconfig
from pathlib import Path

HERE = Path("/tmp/image")  # noqa: S108 - a path of the image being built
OLDEST = (3, 11)


def main() -> None:
    """Prepare the image's root; a failure ends the build."""
    if sys.version_info < OLDEST:
        sys.exit(f"the base has Python {sys.version.split()[0]}; agents need 3.11 or newer")
    folders = [Path(folder) for folder in site.getsitepackages()]
    for folder in folders:
        if folder.is_dir():
            empty(folder)
    target = folders[0]
    target.mkdir(parents=True, exist_ok=True)
    shutil.copytree(HERE / "libraries", target, dirs_exist_ok=True)
    compile_all(Path(sysconfig.get_path("stdlib")), target)
    clear_setuid(Path("/"))
    shutil.rmtree(HERE)
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
