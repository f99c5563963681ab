from __future__ import annotations

import gc
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.catalog.store import PER_BLOCK, DocumentReader, DocumentWriter


@settings(deadline=None, max_examples=30)
@given(st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=50))
def test_documents_are_read_as_they_were_written(documents: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        writer = DocumentWriter(Path(directory))
        for document in documents:
            writer.append(document)
        writer.close()
        reader = DocumentReader(Path(directory))
        assert [reader.read(i) for i in range(len(documents))] == documents
        reader.close()


def test_threads_may_read_at_once(tmp_path: Path) -> None:
    writer = DocumentWriter(tmp_path)
    documents = [f"document {n} ".encode() * 50 for n in range(PER_BLOCK * 20)]
    for document in documents:
        writer.append(document)
    writer.close()
    reader = DocumentReader(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(reader.read, range(len(documents)))) == documents


def test_the_file_closes_with_the_object_and_reads_fail_after_closing(tmp_path: Path) -> None:
    writer = DocumentWriter(tmp_path)
    writer.append(b"{}")
    writer.close()
    reader = DocumentReader(tmp_path)
    close = reader.close
    close()
    with pytest.raises(ValueError, match="closed"):
        reader.read(0)
    other = DocumentReader(tmp_path)
    close = other.close
    del other
    gc.collect()
    assert not close.alive
