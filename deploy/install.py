"""Make the image's virtual environment: run while the image is built, by the base's Python.

    python3 install.py BUILD TARGET

With wheels in BUILD/wheelhouse nothing else is asked: the build needs no network. Without any,
pip asks its index. The base may lack pip and venv: the wheelhouse then brings pip itself.
"""

import subprocess
import sys
from pathlib import Path


def main() -> None:
    """Install BUILD/base.txt into TARGET; a failure ends the build."""
    build, target = Path(sys.argv[1]), Path(sys.argv[2])
    wheels = build / "wheelhouse"
    carried = sorted(wheels.glob("*.whl"))
    without_pip = ["--without-pip"] if carried else []
    subprocess.run([sys.executable, "-m", "venv", *without_pip, str(target)], check=True)
    python = str(target / "bin" / "python")
    source = ["--no-index", "--find-links", str(wheels)] if carried else []
    if carried:
        # A wheel of pip runs from where it lies.
        pip = next(path for path in carried if path.name.startswith("pip-"))
        command = [python, f"{pip}/pip"]
    else:
        command = [python, "-m", "pip"]
    subprocess.run(
        [
            *command,
            "install",
            "--no-cache-dir",
            "--disable-pip-version-check",
            "--no-deps",  # the lock names all of them
            "--only-binary=:all:",
            *source,
            "-r",
            str(build / "base.txt"),
        ],
        check=True,
    )
    script = target / "bin" / "arena"
    script.write_text(
        f"#!{python}\nimport sys\n\nfrom neurons.cli import main\n\nsys.exit(main())\n",
        encoding="ascii",
    )
    script.chmod(0o755)


main()
