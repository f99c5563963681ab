"""A model on the hub: what it lists is pinned, and what no artefact may hold is left out."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from arena.exceptions import ArtefactError
from arena.submissions.artefact_files import make_manifest
from arena.submissions.artefact_hub import hub_files, manifest_of_hub
from tests.unit.arena.submissions.artefact_builder import model_directory

REVISION = "0123456789abcdef0123456789abcdef01234567"
SOURCE = f"hub:someone/tiny@{REVISION}"


@contextmanager
def _hub(directory: Path, listing: object) -> Iterator[str]:
    """A hub with one repository: `listing` is what it says of it."""

    class Hub(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            content: bytes | None = None
            if self.path == f"/api/models/someone/tiny/revision/{REVISION}?blobs=true":
                content = json.dumps(listing).encode()
            elif self.path.startswith(f"/someone/tiny/resolve/{REVISION}/"):
                content = (directory / Path(self.path).name).read_bytes()
            self.send_response(404 if content is None else 200)
            self.send_header("content-length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _listing(directory: Path) -> dict[str, list[dict[str, object]]]:
    here = {file.path: file for file in make_manifest(directory).files}
    weights = here["model.safetensors"]
    siblings: list[dict[str, object]] = [
        {"rfilename": "model.safetensors", "lfs": {"sha256": weights.sha256, "size": weights.bytes}}
    ]
    others = ("config.json", "tokenizer.json", "README.md", "modeling.py", "onnx/model.safetensors")
    return {"siblings": siblings + [{"rfilename": name} for name in others]}


async def test_its_manifest_is_that_of_the_same_files_here(tmp_path: Path) -> None:
    model = model_directory(tmp_path / "tiny")
    with _hub(model, _listing(model)) as endpoint:
        found = await manifest_of_hub(SOURCE, endpoint=endpoint)
    assert found == make_manifest(model, name="tiny", source=SOURCE)


@pytest.mark.parametrize(
    "listing",
    [
        [],
        {},
        {"siblings": None},
        {"siblings": ["model.safetensors"]},
        {"siblings": [{"rfilename": "model.safetensors", "lfs": {"sha256": "x", "size": 1}}]},
        {"siblings": [{"rfilename": "model.safetensors", "lfs": {"sha256": "0" * 64}}]},
        {"siblings": [{"rfilename": "README.md"}]},
    ],
)
async def test_a_listing_that_is_none_is_refused(tmp_path: Path, listing: object) -> None:
    model = model_directory(tmp_path / "tiny")
    with _hub(model, listing) as endpoint, pytest.raises(ArtefactError):
        await manifest_of_hub(SOURCE, endpoint=endpoint)


async def test_a_branch_and_an_unknown_repository_are_refused(tmp_path: Path) -> None:
    with _hub(tmp_path, {}) as endpoint:
        with pytest.raises(ArtefactError, match="commit"):
            await hub_files("hub:someone/tiny@main", endpoint=endpoint)
        with pytest.raises(ArtefactError, match="404"):
            await hub_files(f"hub:no/body@{REVISION}", endpoint=endpoint)
