from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.catalog.strings import SortedStrings, utf8, write_strings

TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=6)


@settings(deadline=None)
@given(st.sets(TEXT), st.lists(TEXT))
def test_texts_are_found_where_they_were_written(texts: set[str], others: list[str]) -> None:
    ordered = sorted(texts)
    with tempfile.TemporaryDirectory() as directory:
        write_strings(Path(directory), "x", ordered)
        strings = SortedStrings(Path(directory), "x")
        assert list(strings) == ordered
        assert len(strings) == len(ordered)
        assert strings.find(ordered).tolist() == list(range(len(ordered)))
        expected = [ordered.index(t) if t in texts else -1 for t in others]
        assert strings.find(others).tolist() == expected


@given(st.lists(TEXT))
def test_code_point_order_is_byte_order(texts: list[str]) -> None:
    assert sorted(texts) == sorted(texts, key=utf8)
