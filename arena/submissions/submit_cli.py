"""`arena agent submit|status|versions|credentials`: an agent's life in an arena, by command."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

from arena.exceptions import AgentFileError, SettingsError
from arena.runs.cli import app
from arena.submissions.artefacts import BaseModelFiles, Manifest
from arena.submissions.miner_options import (
    Account,
    ArenaUrl,
    WalletHotkey,
    WalletName,
    WalletPath,
    account,
    open_client,
    token_from,
)
from arena.submissions.submit_show import (
    rank_of,
    ranked,
    show_problems,
    show_refusal,
    show_status,
    show_submitted,
    show_versions,
)
from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import JsonObject

if TYPE_CHECKING:
    from arena.client.miner import MinerClient, Submitted

MAX_READ = 64 << 20
HUB = "hub:"
credentials_app = typer.Typer(
    help="Keep the keys that pay for your agent's model calls.",
    rich_markup_mode=None,
    no_args_is_help=True,
)
app.add_typer(credentials_app, name="credentials")


@app.command("submit")
def submit_command(
    agent: Annotated[Path, typer.Argument(metavar="FILE", help="The agent's file.")],
    name: Annotated[str | None, typer.Option(help="The agent's name; default: the file's.")] = None,
    artefact: Annotated[
        str | None,
        typer.Option(
            metavar="DIR|hub:…", help="A model that validators serve: a folder, or a hub's commit."
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(metavar="hub:…", help="The base model of an adapter, at a commit."),
    ] = None,
    context: Annotated[
        int | None, typer.Option(min=256, help="The model's context, in tokens.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Ask the same gate here first.")
    ] = True,
    url: ArenaUrl = None,
    wallet_name: WalletName = None,
    wallet_hotkey: WalletHotkey = None,
    wallet_path: WalletPath = None,
    json: JsonFile = None,
) -> None:
    """Check a file, send its model's files if it has one, and submit it, signed.

    Exit code 0 means that the arena took it in. The same file again gives the same version.

    Example: arena agent submit my_agent.py --arena.url https://arena.example
    --wallet.name me --wallet.hotkey miner
    """
    source = read_agent(agent)
    if check and not admitted_here(agent, source, name or agent.stem):
        raise typer.Exit(1)
    who = account(url, wallet_name, wallet_hotkey, wallet_path)
    manifest = asyncio.run(_manifest(artefact, base, context)) if artefact else None
    directory = Path(artefact) if artefact and not artefact.startswith(HUB) else None
    done = asyncio.run(submit(who, agent, name or agent.stem, source, manifest, directory))
    write_json(_json(done, manifest), json)


@app.command("status")
def status_command(
    version: Annotated[
        UUID | None, typer.Argument(help="The version; default: the newest one.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Go on until it is ranked.")] = False,
    every: Annotated[
        float, typer.Option(min=1, max=3_600, help="Seconds between two looks.")
    ] = 15.0,
    url: ArenaUrl = None,
    wallet_name: WalletName = None,
    wallet_hotkey: WalletHotkey = None,
    wallet_path: WalletPath = None,
    json: JsonFile = None,
) -> None:
    """Say how far a version of yours is, how each problem went and why.

    Problems are named by id: the text of held-out ones is told to nobody. `arena agent logs`
    has the whole reasons, and your agent's log.

    Example: arena agent status --watch --arena.url https://arena.example --wallet.name me
    """
    who = account(url, wallet_name, wallet_hotkey, wallet_path)
    write_json(asyncio.run(_follow(who, version, every if watch else None)), json)


@app.command("versions")
def versions_command(
    url: ArenaUrl = None,
    wallet_name: WalletName = None,
    wallet_hotkey: WalletHotkey = None,
    wallet_path: WalletPath = None,
    json: JsonFile = None,
) -> None:
    """List what your hotkey has submitted.

    Example: arena agent versions --arena.url https://arena.example --wallet.name me
    """
    who = account(url, wallet_name, wallet_hotkey, wallet_path)
    rows = asyncio.run(_versions(who))
    show_versions(rows)
    write_json([{"agent_name": name, **row} for name, row in rows], json)


@credentials_app.command("store")
def store_command(
    provider: Annotated[str, typer.Argument(help="chutes or openrouter.")],
    file: Annotated[
        Path | None, typer.Option("--file", help="A file with the key; - is standard input.")
    ] = None,
    env: Annotated[str | None, typer.Option("--env", help="A variable that holds it.")] = None,
    url: ArenaUrl = None,
    wallet_name: WalletName = None,
    wallet_hotkey: WalletHotkey = None,
    wallet_path: WalletPath = None,
    json: JsonFile = None,
) -> None:
    """Have a key of a model provider kept, sealed. It is shown to nobody again.

    Example: arena agent credentials store chutes --env CHUTES_KEY --arena.url https://arena.example
    """
    token = token_from(file, env)
    who = account(url, wallet_name, wallet_hotkey, wallet_path)
    provider = _provider(provider)

    async def go() -> None:
        async with open_client(who) as client:
            await client.store_credential(provider, token)

    asyncio.run(go())
    console.print(f"kept a credential of {plain(provider)} for {who.address}", soft_wrap=True)
    write_json({"provider": provider, "hotkey": who.address, "connected": True}, json)


@credentials_app.command("list")
def list_command(
    url: ArenaUrl = None,
    wallet_name: WalletName = None,
    wallet_hotkey: WalletHotkey = None,
    wallet_path: WalletPath = None,
    json: JsonFile = None,
) -> None:
    """Say which providers have a credential of yours; the keys themselves are never shown.

    Example: arena agent credentials list --arena.url https://arena.example --wallet.name me
    """
    who = account(url, wallet_name, wallet_hotkey, wallet_path)

    async def go() -> JsonObject:
        async with open_client(who) as client:
            return await client.credentials()

    found = asyncio.run(go())
    providers = found.get("providers")
    for row in providers if isinstance(providers, list) else ():
        if isinstance(row, dict):
            kept = "kept" if row.get("connected") is True else "none"
            pays = " (pays)" if row.get("provider") == found.get("default_provider") else ""
            console.print(f"{plain(str(row.get('provider')), 40)}: {kept}{pays}", soft_wrap=True)
    write_json(found, json)


@credentials_app.command("delete")
def delete_command(
    provider: Annotated[str, typer.Argument(help="chutes or openrouter.")],
    url: ArenaUrl = None,
    wallet_name: WalletName = None,
    wallet_hotkey: WalletHotkey = None,
    wallet_path: WalletPath = None,
    json: JsonFile = None,
) -> None:
    """Have a credential forgotten.

    Example: arena agent credentials delete chutes --arena.url https://arena.example
    """
    who = account(url, wallet_name, wallet_hotkey, wallet_path)
    provider = _provider(provider)

    async def go() -> None:
        async with open_client(who) as client:
            await client.delete_credential(provider)

    asyncio.run(go())
    console.print(f"forgot the credential of {plain(provider)}", soft_wrap=True)
    write_json({"provider": provider, "hotkey": who.address, "connected": False}, json)


def read_agent(path: Path) -> bytes:
    """An agent's file. Raises AgentFileError."""
    try:
        with path.open("rb") as file:
            return file.read(MAX_READ)
    except OSError as error:
        raise AgentFileError(
            f"{path}: {error.strerror}", remedy="give the path of a Python file"
        ) from None


def admitted_here(path: Path, source: bytes, name: str) -> bool:
    """Whether the gate of this program would take the file; what it says is shown."""
    from arena.submissions.admission import check
    from arena.submissions.cli import show_admission
    from arena.submissions.policy_file import load_policy

    admission = check(source, name=name, policy=load_policy(None))
    show_admission(path, admission)
    return admission.admitted


async def submit(
    who: Account,
    path: Path,
    name: str,
    source: bytes,
    manifest: Manifest | None,
    directory: Path | None,
) -> Submitted:
    """Send an artefact's files and submit. A refusal is shown, and ends the command with 1."""
    from arena.client.exceptions import RefusedError

    async with open_client(who) as client:
        try:
            if manifest is not None and directory is not None:
                await _send(client, manifest, directory)
            done = await client.submit(name, source, manifest)
        except RefusedError as error:
            show_refusal(error, str(path), datetime.now(UTC))
            raise typer.Exit(1) from None
    show_submitted(done, datetime.now(UTC))
    return done


async def _send(client: MinerClient, manifest: Manifest, directory: Path) -> None:
    columns = (TextColumn("sending the model"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=None)

        def told(sent: int, total: int) -> None:
            progress.update(task, completed=sent, total=total)

        await client.send_artefact(manifest, directory, told)
    console.print(f"the arena has the model {manifest.hash}", soft_wrap=True)


async def _manifest(artefact: str, base: str | None, context: int | None) -> Manifest:
    from arena.submissions.artefact_files import make_manifest
    from arena.submissions.artefact_hub import hub_files, manifest_of_hub

    base_files: BaseModelFiles | None = None
    if base is not None:
        base_files = BaseModelFiles(source=base, files=await hub_files(base))
    if artefact.startswith(HUB):
        return await manifest_of_hub(artefact, base=base_files, context=context)
    # A folder that is none is refused there, by its name.
    return await asyncio.to_thread(make_manifest, Path(artefact), base=base_files, context=context)


async def _follow(who: Account, version: UUID | None, every: float | None) -> JsonObject:
    shown: JsonObject | None = None
    async with open_client(who) as client:
        version = version or await newest_version(client)
        while True:
            found = await look(client, version)
            if found != shown:
                status, rank = found["status"], found["rank"]
                assert isinstance(status, dict)
                assert rank is None or isinstance(rank, int)
                show_status(status, rank)
                if every is None or ranked(status, rank):
                    logs: Any = await client.logs(version, tail=0)
                    show_problems(found["evaluations"], logs)  # type: ignore[arg-type]
                    return {**found, "reasons": logs}
                shown = found
            assert every is not None
            await asyncio.sleep(every)


async def newest_version(client: MinerClient) -> UUID:
    """The version that the hotkey submitted last. Raises SettingsError when there is none."""
    agents = (await client.agents()).get("agents")
    rows = [row for row in agents if isinstance(row, dict)] if isinstance(agents, list) else []
    latest = [found for row in rows if isinstance(found := row.get("latest_version"), dict)]
    if not latest:
        raise SettingsError(
            "this hotkey has submitted nothing yet", remedy="arena agent submit FILE"
        )
    newest = max(latest, key=lambda row: str(row.get("submitted_at")))
    return UUID(str(newest["agent_version_id"]))


async def look(client: MinerClient, version: UUID) -> JsonObject:
    """Everything that is known of a version: its status, its place, its problems."""
    status = await client.status(version)
    rank = rank_of(await client.leaderboard(), str(version))
    evaluations: Any = await client.problems(version)
    return {"status": status, "rank": rank, "evaluations": evaluations}


async def _versions(who: Account) -> list[tuple[str, dict[str, Any]]]:
    async with open_client(who) as client:
        agents = (await client.agents()).get("agents")
        found = []
        for agent in agents if isinstance(agents, list) else ():
            if isinstance(agent, dict):
                name = str(agent.get("agent_name", ""))
                rows = await client.versions(UUID(str(agent.get("agent_id"))))
                found += [(name, row) for row in rows]
    return found


def _provider(name: str) -> str:
    """A provider as it stands in a path. Raises SettingsError."""
    found = name.strip().lower()
    if not (found.isascii() and found.isalnum()) or len(found) > 40:
        raise SettingsError(f"{name[:40]!r} is no provider", remedy="chutes, openrouter")
    return found


def _json(done: Submitted, manifest: Manifest | None) -> JsonObject:
    after = done.next_allowed_at
    return {
        "agent_version_id": str(done.version_id),
        "agent_id": None if done.agent_id is None else str(done.agent_id),
        "version_number": done.number,
        "next_allowed_at": None if after is None else after.isoformat(),
        "artefact": None if manifest is None else manifest.hash,
    }
