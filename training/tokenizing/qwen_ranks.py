"""Qwen3's own tokenizer, built from the published ranks of its byte-pair encoding.

`dashscope` (Apache-2.0) ships them as `qwen.tiktoken`: a base64 token and its rank on each
line. Stands in for the hub's files where there is no network; token for token the same.
"""

from __future__ import annotations

import base64
import binascii
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Final

from tokenizers import Tokenizer
from tokenizers.pre_tokenizers import ByteLevel

from corpus_export.pretokens import QWEN_SPLIT
from training.exceptions import TokenizerError
from training.tokenizing.family import assemble

FIRST_MARK: Final = 151_643
"""The id of `<|endoftext|>`: as many tokens come before it."""


def qwen3_tokenizer(ranks: Path | None = None) -> Tokenizer:
    """The tokenizer of Qwen3. Without `ranks`, those of the installed `dashscope`.

    Raises TokenizerError.
    """
    path = ranks or _shipped()
    order = _read(path)
    if len(order) != FIRST_MARK:
        raise TokenizerError(f"{path} has {len(order)} ranks, not Qwen3's {FIRST_MARK}")
    shown = _shown_bytes()
    names = ["".join(shown[byte] for byte in token) for token in order]
    known = {token: rank for rank, token in enumerate(order)}
    merges: list[tuple[str, str]] = []
    for rank, token in enumerate(order):
        if len(token) > 1:
            left, right = _parts(token, known, rank)
            merges.append((names[left], names[right]))
    vocabulary = {name: rank for rank, name in enumerate(names)}
    return assemble(vocabulary, merges, QWEN_SPLIT)


def _shipped() -> Path:
    # Not imported: that would bring its whole client.
    spec = find_spec("dashscope")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder) / "resources" / "qwen.tiktoken"
        if path.is_file():
            return path
    raise TokenizerError(
        "the ranks of Qwen's tokenizer are not here", remedy="python -m pip install dashscope"
    )


def _read(path: Path) -> list[bytes]:
    """The tokens in the order of their ranks."""
    try:
        pairs = [line.split() for line in path.read_bytes().splitlines() if line]
        ranked = {int(rank): base64.b64decode(token, validate=True) for token, rank in pairs}
        return [ranked[rank] for rank in range(len(ranked))]
    except OSError as error:
        raise TokenizerError(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, binascii.Error) as error:
        raise TokenizerError(f"{path} holds no ranks: {str(error)[:100]}") from error


def _parts(token: bytes, known: dict[bytes, int], rank: int) -> tuple[int, int]:
    """The two tokens whose merge gives this one: what merges of lower rank leave of it."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        ranks = [known.get(a + b, rank) for a, b in pairwise(parts)]
        best = min(range(len(ranks)), key=ranks.__getitem__)
        if ranks[best] >= rank:
            break
        parts[best : best + 2] = [parts[best] + parts[best + 1]]
    if len(parts) != 2:
        raise TokenizerError(f"rank {rank} of the tokenizer is no merge of two lower ones")
    return known[parts[0]], known[parts[1]]


def _shown_bytes() -> list[str]:
    """The character that stands for each byte in a byte-level vocabulary (GPT-2's table)."""
    visible = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = iter(range(256, 512))
    table = [chr(b) if b in visible else chr(next(hidden)) for b in range(256)]
    if set(table) != set(ByteLevel.alphabet()):
        raise TokenizerError("the library's byte alphabet is another one")
    return table
