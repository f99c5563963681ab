"""`arena agent check`: what the gate says of a file, before it is submitted.

Stands in one group with `arena agent run`, whose room knows nothing of this one, and with
what a miner does in an arena (`submit_cli`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from arena.exceptions import AgentFileError
from arena.problems.suite import load_suite
from arena.runs.cli import app
from arena.submissions import logs_cli, submit_cli
from arena.submissions.admission import Admission, check
from arena.submissions.answers import AnswerIndex
from arena.submissions.copies import CopyIndex
from arena.submissions.policy import Policy
from arena.submissions.policy_file import load_policy, public_bases
from arena.submissions.process import Reader
from sandbox.terminal import JsonFile, console, plain, write_json

__all__ = ["app", "logs_cli", "submit_cli"]

MAX_READ = 64 << 20
"""More of a file is not even read; the policy's own limit is far below."""

MAX_SHOWN = 10
"""Places of one rule; --json has all of them."""


@app.command("check")
def check_command(
    ctx: typer.Context,
    agent: Annotated[Path, typer.Argument(metavar="FILE", help="The agent's file.")],
    against: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR|FILE", help="Earlier submissions; may be repeated."),
    ] = None,
    suite: Annotated[
        list[Path] | None,
        typer.Option(help="Problems whose answers the file must not hold; may be repeated."),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An arena's own rules, as TOML.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="The name to submit under.")] = None,
    python: Annotated[
        Path | None, typer.Option(help="Interpreter of the sandbox, if it is not this one.")
    ] = None,
    json: JsonFile = None,
) -> None:
    """Say whether a file would be admitted, and if not: the rule, the line, why, how to mend it.

    Nothing of the file is run. The static gate is a filter; the sandbox is the wall: what
    passes here is still run without network, files or privileges. Exit code 0 means
    admitted.

    Example: arena agent check my_agent.py --suite open.jsonl --against earlier/
    """
    rules = load_policy(policy)
    shipped = (ctx.obj or {}).get("shipped_agents", {})
    source = _read(agent)
    with Reader(python) as reader:
        known = _known(against or (), agent, rules, shipped, reader) if against else None
        bank = _bank(suite) if suite else None
        admission = check(
            source,
            name=name or agent.stem,
            policy=rules,
            known=known,
            bank=bank,
            reader=reader,
        )
    show_admission(agent, admission)
    write_json(admission.to_json(), json)
    if not admission.admitted:
        raise typer.Exit(1)


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_READ)
    except OSError as error:
        raise AgentFileError(
            f"{path}: {error.strerror}", remedy="give the path of a Python file"
        ) from None


def _bank(suites: Sequence[Path]) -> AnswerIndex:
    problems = [problem for path in suites for problem in load_suite(path).problems]
    return AnswerIndex.build(problems)


def _known(
    paths: Sequence[Path],
    agent: Path,
    policy: Policy,
    shipped: Mapping[str, Path],
    reader: Reader,
) -> CopyIndex:
    """An index of the files given, each its own author's; the checked file is not among them."""
    index = CopyIndex(public_bases(policy, shipped, reader))
    with console.status("Reading earlier submissions …"):
        for path in _python_files(paths):
            if path.resolve() == agent.resolve():
                continue
            found = reader.read(_read(path), policy).fingerprint
            if found is None:
                console.print(f"{plain(str(path))} cannot be read and is left out", soft_wrap=True)
            else:
                index.add(str(path), str(path), found)
    return index


def _python_files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(path.rglob("*.py"))
        else:
            yield path


def show_admission(agent: Path, admission: Admission) -> None:
    """What the gate says of a file, for people."""
    if admission.admitted:
        console.print(f"[green]admitted[/] {plain(str(agent))}", soft_wrap=True)
        return
    rules = dict.fromkeys(entry.rule for entry in admission.violations)
    for rule in rules:
        entries = [entry for entry in admission.violations if entry.rule is rule]
        console.print(f"[bold]{rule}[/] {entries[0].why}", soft_wrap=True)
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 2))
        for entry in entries[:MAX_SHOWN]:
            table.add_row(f"line {entry.line}" if entry.line else "", plain(entry.found, 200))
        if len(entries) > MAX_SHOWN:
            table.add_row("", f"and {len(entries) - MAX_SHOWN} more")
        console.print(table)
        console.print(f"  to mend it: {entries[0].fix}", soft_wrap=True)
    count = len(admission.violations)
    told = "1 violation" if count == 1 else f"{count} violations"
    console.print(f"[red]refused[/] {plain(str(agent))}: {told}", soft_wrap=True)
