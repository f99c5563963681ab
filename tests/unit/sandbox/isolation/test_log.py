"""An agent's output is bounded and can be stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandbox.isolation.log import BoundedLog


@given(st.lists(st.binary(max_size=30)), st.integers(0, 100))
def test_the_first_bytes_are_kept_and_the_rest_counted(pieces: list[bytes], limit: int) -> None:
    log = BoundedLog(limit)
    for piece in pieces:
        log.feed(piece)
    whole = b"".join(pieces)
    assert log.dropped_bytes == max(0, len(whole) - limit)
    expected = whole[:limit].decode("utf-8", "replace").replace("\0", "\ufffd")
    assert log.text() == expected
    log.text().encode("utf-8")
