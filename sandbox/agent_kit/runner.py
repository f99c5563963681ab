"""Runs one agent on one problem, inside a sandbox.

    python3 -I -S -B runner.py JOB

`JOB` is a folder with `agent.py` and `job.json` (see `read_job`). Runs under the
system's Python with the standard library alone. Whatever it says is the agent's
word, for the agent shares its process: the validator takes the answer as untrusted,
and takes only codes that blame the agent.

Standard output carries frames, each one line of JSON and then as many bytes as the
line says: first `{"frame": "ready"}`, sent before any line of the agent has run, then
either `{"frame": "answer", "bytes": n}` with the dialogue as JSON, or
`{"frame": "error", "code": …, "message": …}`. What the agent prints goes to standard
error, which is the log.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

TRACEBACK_CHARS = 8000

# The same words as in sandbox.isolation.interface, which does not exist in here.
SYNTAX = "agent.syntax_error"
NO_MAIN = "agent.no_agent_main"
IMPORT = "agent.failed_to_load"
EXCEPTION = "agent.exception"
BAD_RETURN = "agent.bad_return"
EXITED = "agent.exited"
TOO_LARGE = "agent.answer_too_large"


class AgentFailed(Exception):  # noqa: N818 - it is the agent that failed, not this
    """Why there is no dialogue: a stable code and a message for the miner."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def read_job(folder: str) -> dict[str, Any]:
    """Read `job.json`.

    `problem`: what `agent_main` is given; `env`: the agent's environment;
    `answer_bytes`: the largest dialogue taken; `gateway_socket`: the socket to
    forward to, or null when a forwarder is running already; `await_go`: wait for a
    byte on standard input before the agent starts, so that nothing of it runs for a
    validator that died meanwhile.
    """
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as file:
        job: dict[str, Any] = json.load(file)
    return job


def claim_output() -> int:
    """Move the frames' descriptor out of the agent's way; its prints become the log."""
    frames = os.dup(1)
    os.dup2(2, 1)
    return frames


def send(frames: int, head: dict[str, Any], body: bytes = b"") -> None:
    """Write one frame whole."""
    data = memoryview(json.dumps(head).encode("ascii") + b"\n" + body)
    while data:
        data = data[os.write(frames, data) :]


def wait_for_go() -> None:
    """Wait for the validator's word; end when it died before giving it."""
    if not os.read(0, 1):
        os._exit(1)


def close_input() -> None:
    """Give the agent an empty standard input."""
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)


def load_agent(path: str) -> ModuleType:
    """Import the agent's file as the module `agent`, as Python itself would.

    A real file and an entry in `sys.modules`, since dataclasses, pickles of
    multiprocessing and `sys.modules[__name__]` look there. Raises AgentFailed.
    """
    spec = spec_from_file_location("agent", path)
    assert spec is not None
    module = module_from_spec(spec)
    try:
        with open(path, "rb") as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise AgentFailed(SYNTAX, f"line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise AgentFailed(SYNTAX, f"cannot be compiled: {error or type(error).__name__}") from None
    sys.modules["agent"] = module
    guarded(IMPORT, exec, code, module.__dict__)
    return module


def call_agent(module: ModuleType, problem: dict[str, Any]) -> object:
    """Return what `agent_main(problem)` returns. Raises AgentFailed."""
    main = module.__dict__.get("agent_main")
    if not callable(main):
        raise AgentFailed(NO_MAIN, "the file defines no function agent_main(problem_data)")
    return guarded(EXCEPTION, main, problem)


def guarded(code: str, function: Callable[..., object], *args: object) -> object:
    """Call the agent's code; whatever it throws becomes AgentFailed."""
    try:
        return function(*args)
    except SystemExit as error:
        raise AgentFailed(EXITED, f"called exit({safe_repr(error.code)})") from None
    except BaseException as error:  # noqa: BLE001 - the agent may raise anything
        text = describe(error)
        sys.stderr.write(text)
        raise AgentFailed(code, text) from None


def describe(error: BaseException) -> str:
    """The traceback without this file's frames; the end is kept when it is long."""
    import traceback

    frame = error.__traceback__
    while frame is not None and frame.tb_frame.f_code.co_filename == __file__:
        frame = frame.tb_next
    try:
        lines = traceback.format_exception(type(error), error, frame, limit=-40)
        text = "".join(lines)
    except BaseException:  # noqa: BLE001 - its own __str__ may raise, or recurse
        text = f"{type(error).__name__} (its text cannot be shown)\n"
    return text if len(text) <= TRACEBACK_CHARS else "…" + text[-TRACEBACK_CHARS:]


def safe_repr(value: object) -> str:
    """`repr`, bounded, of a value whose own `__repr__` may be hostile."""
    try:
        return repr(value)[:200]
    except BaseException:  # noqa: BLE001 - see above
        return f"<{type(value).__name__}>"


def encode(answer: object, limit: int) -> bytes:
    """The dialogue as JSON. Raises AgentFailed when it is none, or is over `limit` bytes."""
    if not isinstance(answer, list | tuple):
        kind = type(answer).__name__
        raise AgentFailed(BAD_RETURN, f"agent_main returned {kind}, not a list of steps")
    for index, step in enumerate(answer):
        if not isinstance(step, dict):
            kind = type(step).__name__
            raise AgentFailed(BAD_RETURN, f"step {index} is {kind}, not an object")
    try:
        data = json.dumps(answer, allow_nan=False).encode("ascii")
    except RecursionError:
        raise AgentFailed(BAD_RETURN, "the dialogue is nested too deeply") from None
    except BaseException as error:  # noqa: BLE001 - its objects' own methods may raise
        raise AgentFailed(BAD_RETURN, f"the dialogue is not JSON: {safe_repr(error)}") from None
    if len(data) > limit:
        raise AgentFailed(TOO_LARGE, f"the dialogue has {len(data)} bytes, {limit} are allowed")
    return data


def start_forwarder(gateway: str) -> int:
    """Fork the forwarder with this process's rights; return its port."""
    if TYPE_CHECKING:
        from sandbox.agent_kit.forwarder import Forwarder, listen
    else:
        from forwarder import Forwarder, listen

    server, port = listen()
    if os.fork() == 0:
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            Forwarder(server, gateway).serve()
        finally:
            os._exit(1)
    server.close()
    return port


def prepare(job: dict[str, Any], folder: str, port: int) -> None:
    """Set what the agent finds: environment, import path, working folder."""
    os.environ.clear()
    os.environ.update(job["env"])
    os.environ["SANDBOX_PROXY_URL"] = f"http://proxy:{port}"
    os.environ["PROBLEM_DATA"] = json.dumps(job["problem"])
    kit = os.path.dirname(os.path.abspath(__file__))
    sys.path[:0] = [folder, kit, *job.get("path", ())]
    sys.argv[:] = [os.path.join(folder, "agent.py")]
    # A child that multiprocessing spawns must not import this program as its main module.
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        del main.__file__
    os.chdir(job["env"].get("HOME", "/tmp"))  # noqa: S108 - the sandbox's own tmpfs


def run(folder: str, job: dict[str, Any], port: int | None) -> NoReturn:
    """Run the job and end the process: 0 after an answer, 1 after an error frame.

    `port` is the forwarder's, or None to start one here.
    """
    frames = claim_output()
    if port is None:
        port = start_forwarder(job["gateway_socket"])
    send(frames, {"frame": "ready"})
    if job.get("await_go"):
        wait_for_go()
    close_input()
    prepare(job, folder, port)
    own, status = os.getpid(), 0
    try:
        answer = call_agent(load_agent(os.path.join(folder, "agent.py")), job["problem"])
        body, head = encode(answer, job["answer_bytes"]), {"frame": "answer"}
        report: dict[str, Any] = {**head, "bytes": len(body)}
    except AgentFailed as error:
        status, body = 1, b""
        report = {"frame": "error", "code": error.code, "message": error.message[:TRACEBACK_CHARS]}
    if os.getpid() == own:  # a child that the agent forked has nothing to say
        flush()
        send(frames, report, body)
    os._exit(status)


def flush() -> None:
    """Write what the agent printed; it may have closed or replaced the streams."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(BaseException):
            stream.flush()


def main() -> NoReturn:
    """The command line; see the top of this file."""
    folder = os.path.abspath(sys.argv[1])
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    run(folder, read_job(folder), None)


if __name__ == "__main__":
    main()
