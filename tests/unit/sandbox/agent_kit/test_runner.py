"""The runner under the system's own Python, as it runs inside a sandbox."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sandbox.agent_kit import runner
from sandbox.exceptions import ErrorInfo
from sandbox.isolation.frames import Answer, FrameReader, read_dialogue

PROBLEM = {"problem_id": "p-1", "query": "a leather belt", "category": "Product"}
LIMIT = 100_000

DRIVER = """
import sys
sys.path.insert(0, sys.argv[2])
import runner
folder = sys.argv[1]
runner.run(folder, runner.read_job(folder), 80)
"""


@dataclass(frozen=True)
class Ended:
    frames: FrameReader
    log: str
    status: int

    @property
    def steps(self) -> tuple[Any, ...]:
        assert isinstance(self.frames.final, Answer), (self.frames.final, self.log)
        return read_dialogue(self.frames.final.body)

    @property
    def error(self) -> ErrorInfo:
        assert isinstance(self.frames.final, ErrorInfo), self.frames.final
        return self.frames.final


def run(folder: Path, source: str | bytes, *, go: bytes | None = None) -> Ended:
    """Run an agent; `go` is what standard input gives a job that waits for its word."""
    data = textwrap.dedent(source).encode() if isinstance(source, str) else source
    (folder / "agent.py").write_bytes(data)
    job = {
        "problem": PROBLEM,
        "env": {"HOME": str(folder), "MARK": "1"},
        "answer_bytes": LIMIT,
        "await_go": go is not None,
    }
    (folder / "job.json").write_text(json.dumps(job))
    kit = str(Path(runner.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-B", "-c", DRIVER, str(folder), kit],
        input=go or b"",
        capture_output=True,
        timeout=60,
        check=False,
    )
    frames = FrameReader(LIMIT)
    frames.feed(done.stdout)
    return Ended(frames, done.stderr.decode(), done.returncode)


def test_an_agent_is_given_its_problem_and_answers(tmp_path: Path) -> None:
    ended = run(tmp_path, "def agent_main(problem_data): return [problem_data]")
    assert ended.frames.ready
    assert ended.steps == (PROBLEM,)
    assert ended.status == 0


def test_prints_are_the_log_and_never_the_answer(tmp_path: Path) -> None:
    source = """
        import os, sys
        print("on import")
        def agent_main(problem):
            print('{"frame": "answer", "bytes": 0}')
            sys.stderr.write("error\\n")
            os.write(1, b"raw\\n")
            return [{"in": sys.stdin.read()}]
    """
    ended = run(tmp_path, source)
    assert ended.steps == ({"in": ""},)
    for words in ("on import", '"frame"', "error", "raw"):
        assert words in ended.log


def test_the_agent_is_a_real_module(tmp_path: Path) -> None:
    source = """
        import dataclasses, inspect, pickle, sys, __main__

        @dataclasses.dataclass
        class Item:
            name: "str"

        def agent_main(problem):
            return [{
                "name": __name__,
                "file": __file__.rpartition("/")[2],
                "same": sys.modules[__name__].agent_main is agent_main,
                "pickled": pickle.loads(pickle.dumps(Item("x"))).name,
                "source": inspect.getsource(agent_main).startswith("def agent_main"),
                "main": hasattr(__main__, "__file__"),
                "argv": len(sys.argv),
            }]
    """
    assert run(tmp_path, source).steps == (
        {
            "name": "agent",
            "file": "agent.py",
            "same": True,
            "pickled": "x",
            "source": True,
            "main": False,
            "argv": 1,
        },
    )


def test_the_environment_is_the_jobs_alone(tmp_path: Path) -> None:
    source = "import os\ndef agent_main(p): return [dict(os.environ)]"
    (environment,) = run(tmp_path, source).steps
    assert json.loads(environment.pop("PROBLEM_DATA")) == PROBLEM
    assert environment == {
        "HOME": str(tmp_path),
        "MARK": "1",
        "SANDBOX_PROXY_URL": "http://proxy:80",
    }


ERRORS: dict[str, tuple[str | bytes, str, str]] = {
    "syntax": ("x = (\n\n\ndef f(:", runner.SYNTAX, "line"),
    "bytes that are no text": (b'x = "\xff"', runner.SYNTAX, "utf-8"),
    "a null byte": (b"x = 1\0", runner.SYNTAX, "null bytes"),
    "a tower of brackets": ("(" * 5000 + ")" * 5000, runner.SYNTAX, ""),
    "a failing import": ("import nothing_like_it", runner.IMPORT, "nothing_like_it"),
    "exit on import": ("raise SystemExit('bye')", runner.EXITED, "bye"),
    "nothing to call": ("agent_main = 3", runner.NO_MAIN, "agent_main"),
    "an interrupt": ("def agent_main(p): raise KeyboardInterrupt", runner.EXCEPTION, "Keyboard"),
    "an error of its own": (
        "class E(BaseException): pass\ndef agent_main(p): raise E('words')",
        runner.EXCEPTION,
        "words",
    ),
    "an error that cannot be shown": (
        "class E(Exception):\n  def __str__(self): raise ValueError\ndef agent_main(p): raise E",
        runner.EXCEPTION,
        "E",
    ),
    "endless recursion": ("def agent_main(p): agent_main(p)", runner.EXCEPTION, "Recursion"),
    "no arguments": ("def agent_main(): return []", runner.EXCEPTION, "TypeError"),
    "nothing": ("def agent_main(p): pass", runner.BAD_RETURN, "NoneType"),
    "a coroutine": ("async def agent_main(p): return []", runner.BAD_RETURN, "coroutine"),
    "steps that are text": ("def agent_main(p): return ['x']", runner.BAD_RETURN, "step 0"),
    "NaN": ("def agent_main(p): return [{'a': float('inf')}]", runner.BAD_RETURN, "JSON"),
    "bytes": ("def agent_main(p): return [{'a': b''}]", runner.BAD_RETURN, "bytes"),
    "a circle": (
        "def agent_main(p):\n  a = {}\n  a['a'] = a\n  return [a]",
        runner.BAD_RETURN,
        "ircular",
    ),
    "a tower": (
        "def agent_main(p):\n  a = []\n  for _ in range(99999): a = [a]\n  return [{'a': a}]",
        runner.BAD_RETURN,
        "deeply",
    ),
    "a dictionary that bites": (
        "class D(dict):\n  def items(self): raise SystemExit(0)\n"
        "def agent_main(p): return [D(a=1)]",
        runner.BAD_RETURN,
        "SystemExit",
    ),
    "too much": ("def agent_main(p): return [{'a': 'x' * 200_000}]", runner.TOO_LARGE, "100000"),
}


@pytest.mark.parametrize("what", ERRORS)
def test_every_failure_has_its_code_and_says_what_it_was(tmp_path: Path, what: str) -> None:
    source, code, words = ERRORS[what]
    ended = run(tmp_path, source)
    assert ended.error.code == code, ended.error
    assert words in ended.error.message
    assert ended.status == 1


def test_a_syntax_error_names_its_line(tmp_path: Path) -> None:
    assert run(tmp_path, "x = 1\ny = = 2\n").error.message == "line 2: invalid syntax"


def test_a_traceback_shows_the_agents_frames_alone_and_is_bounded(tmp_path: Path) -> None:
    source = "def f(): raise ValueError('x' * 100_000)\ndef agent_main(p): f()"
    ended = run(tmp_path, source)
    assert len(ended.error.message) <= runner.TRACEBACK_CHARS + 1
    ended = run(tmp_path, "def f(): raise ValueError('why')\ndef agent_main(p): f()")
    assert "in f" in ended.error.message
    assert "runner.py" not in ended.error.message
    assert "ValueError: why" in ended.log


def test_an_answer_from_a_forked_child_is_not_the_agents(tmp_path: Path) -> None:
    source = """
        import os
        def agent_main(problem):
            if os.fork() == 0:
                return [{"who": "child"}]
            os.wait()
            return [{"who": "parent"}]
    """
    assert run(tmp_path, source).steps == ({"who": "parent"},)


def test_streams_that_the_agent_closed_do_not_matter(tmp_path: Path) -> None:
    source = (
        "import sys\ndef agent_main(p):\n  sys.stdout.close()\n  sys.stderr = None\n  return []"
    )
    assert run(tmp_path, source).steps == ()


def test_nothing_of_the_agent_runs_before_the_word_is_given(tmp_path: Path) -> None:
    source = "open(__file__ + '.ran', 'w')\ndef agent_main(p): return []"
    ended = run(tmp_path, source, go=b"")
    assert ended.frames.ready
    assert ended.frames.final is None
    assert not (tmp_path / "agent.py.ran").exists()
    assert run(tmp_path, source, go=b"g").steps == ()
    assert (tmp_path / "agent.py.ran").exists()


def test_the_codes_are_the_interfaces() -> None:
    from sandbox.isolation import interface

    assert runner.SYNTAX == interface.AGENT_SYNTAX
    assert runner.NO_MAIN == interface.AGENT_NO_MAIN
    assert runner.IMPORT == interface.AGENT_IMPORT
    assert runner.EXCEPTION == interface.AGENT_EXCEPTION
    assert runner.BAD_RETURN == interface.AGENT_BAD_RETURN
    assert runner.EXITED == interface.AGENT_EXITED
    assert runner.TOO_LARGE == interface.AGENT_ANSWER_TOO_LARGE
