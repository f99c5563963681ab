"""`arena model`: serve a checkpoint. Imports no torch before it is asked to serve."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sandbox.terminal import JsonFile, console, plain, write_json
from scoring.types import JsonObject
from training.exceptions import ServingError
from training.extra import require_extra

if TYPE_CHECKING:
    from training.serving.vllm import Address

app = typer.Typer(
    help="Serve trained models.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


class EngineKind(StrEnum):
    """What computes."""

    AUTO = "auto"
    VLLM = "vllm"
    OWN = "own"


@app.callback()
def _model() -> None:
    """Serve trained models."""


@app.command()
def serve(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="A checkpoint, or a run's directory.")
    ],
    name: Annotated[
        str | None, typer.Option("--name", help="Its name on the wire; default: the directory's.")
    ] = None,
    host: Annotated[str, typer.Option("--host", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option("--port", help="Port; 0 takes a free one and says which.", min=0, max=65535),
    ] = 8000,
    engine: Annotated[
        EngineKind, typer.Option("--engine", help="auto: vLLM where there is a GPU and vLLM.")
    ] = EngineKind.AUTO,
    batch: Annotated[
        int, typer.Option("--batch", help="Requests that run at once.", min=1, max=512)
    ] = 16,
    queue: Annotated[
        int, typer.Option("--queue", help="Requests that may wait; the next gets 429.", min=0)
    ] = 256,
    context: Annotated[
        int | None, typer.Option("--context", help="Most tokens of prompt and answer.", min=16)
    ] = None,
    device: Annotated[str, typer.Option("--device", help="auto, cpu or cuda.")] = "auto",
    dtype: Annotated[str, typer.Option("--dtype", help="auto, float32 or bfloat16.")] = "auto",
    json_file: JsonFile = None,
) -> None:
    """Serve a checkpoint behind the OpenAI wire: chat completions with tool calls.

    The prompt is rendered exactly as in training. Standard output has the address once
    requests are taken. No streaming. Ends on SIGTERM or Ctrl-C, with what runs answered.

    Example: arena model serve runs/sft --port 8000
    """
    require_extra()
    from training.serving.checkpoint import checkpoint_directory
    from training.serving.vllm import Address, exec_vllm, slides, vllm_argv, vllm_available

    found = checkpoint_directory(directory)
    address = Address(name or directory.resolve().name, host, port)
    if served_by_vllm(engine, vllm_available, lambda: slides(found)):
        argv = vllm_argv(found, address, context)
        console.print("vLLM serves: " + plain(" ".join(argv), 2000), soft_wrap=True)
        write_json({"engine": "vllm", "argv": list(argv)}, json_file)
        exec_vllm(argv)
        return
    asyncio.run(_serve(found, address, batch, queue, context, device, dtype, json_file))


def served_by_vllm(
    engine: EngineKind, available: Callable[[], bool], slides: Callable[[], bool]
) -> bool:
    """Whether vLLM is to serve. Raises ServingError where it is asked for and cannot."""
    if engine is EngineKind.OWN:
        return False
    if engine is EngineKind.AUTO:
        return available() and not slides()
    if not available():
        raise ServingError(
            "vLLM is not installed, or there is no CUDA device for it",
            remedy="--engine own serves without both",
        )
    if slides():
        raise ServingError(
            "some layers of the model see a window only, which vLLM may ignore",
            remedy="--engine own serves it as it was trained",
        )
    return True


async def _serve(
    directory: Path,
    address: Address,
    batch: int,
    queue: int,
    context: int | None,
    device: str,
    dtype: str,
    json_file: Path | None,
) -> None:
    from training.generation.engine import EngineLimits
    from training.serving.app import create_app
    from training.serving.opening import load_checkpoint, open_backbone
    from training.serving.server import listen, serve, url_of

    with listen(address) as bound:
        backbone = await asyncio.to_thread(load_checkpoint, directory, device=device, dtype=dtype)
        limits = EngineLimits(batch=batch, context=context)
        async with open_backbone(backbone, name=address.name, limits=limits) as opened:
            told: JsonObject = {
                "engine": "own",
                "url": url_of(bound),
                "model": address.name,
                "parameters": backbone.parameters,
                "context": opened.policy.context,
                "device": str(backbone.model.device),
            }

            def ready() -> None:
                # Standard output is for machines: the address, or with --json - all of it.
                if json_file is None or str(json_file) != "-":
                    typer.echo(told["url"])
                write_json(told, json_file)
                console.print(
                    f"{plain(address.name)} ({backbone.parameters:,} parameters, context "
                    f"{opened.policy.context:,}, {told['device']}) takes requests"
                )

            await serve(create_app(opened.chat, places=batch + queue), bound, ready)
