"""The image's build context and name."""

from __future__ import annotations

import io
import tarfile

from sandbox.isolation import docker_image


def names() -> set[str]:
    with tarfile.open(fileobj=io.BytesIO(docker_image.context())) as archive:
        return set(archive.getnames())


def test_the_context_holds_the_recipe_and_requests_with_all_it_needs() -> None:
    found = names()
    assert {"Dockerfile", "prepare.py", "unpack.py"} <= found
    assert {
        f"libraries/{package}/__init__.py"
        for package in ("requests", "urllib3", "idna", "certifi", "charset_normalizer")
    } <= found
    assert "libraries/certifi/cacert.pem" in found


def test_the_context_holds_nothing_compiled_for_the_validators_interpreter() -> None:
    assert not [name for name in names() if name.endswith((".so", ".pyc"))]


def test_the_context_holds_no_other_library_and_leaves_its_folder_nowhere() -> None:
    tops = {name.split("/")[1].partition("-")[0] for name in names() if "/" in name}
    assert tops == {"requests", "urllib3", "idna", "certifi", "charset_normalizer"}
    assert not [name for name in names() if ".." in name.split("/")]


def test_the_same_content_is_the_same_bytes_and_the_same_name() -> None:
    assert docker_image.context() == docker_image.context()
    assert docker_image.reference() == docker_image.reference()
    assert docker_image.reference().startswith("sn15-arena/sandbox:")
