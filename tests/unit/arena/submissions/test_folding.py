"""What the small interpreter reveals, and that it cannot be kept busy."""

from __future__ import annotations

import ast
import time
from typing import Any

import pytest

from arena.submissions.folding import Folder
from arena.submissions.scopes import Scopes


def made(code: str) -> set[Any]:
    tree = ast.parse(code)
    return {value for _, value in Folder(tree, Scopes(tree)).built.values()}


@pytest.mark.parametrize(
    "code",
    [
        "x = 'sec' + 'ret'",
        "a = 'sec'\nb = 'ret'\nx = a + b",
        "x = ''.join(['s', 'ec', 'ret'])",
        "x = 'terces'[::-1]",
        "x = ''.join(reversed('terces'))",
        "x = f\"{'sec'}{'ret'}\"",
        "x = '%s%s' % ('sec', 'ret')",
        "x = '{}{b}'.format('sec', b='ret')",
        "x = 'sXeXcXrXeXt'.replace('X', '')",
        "x = ''.join(map(chr, (115, 101, 99, 114, 101, 116)))",
        "x = ''.join(chr(c ^ 1) for c in b'rdbsdu')",
        "x = bytes([115, 101, 99, 114, 101, 116]).decode()",
        "x = bytes.fromhex('736563726574').decode()",
        "import base64 as b\nx = b.b64decode('c2VjcmV0').decode('ascii')",
        "from codecs import decode as d\nx = d('frperg', 'rot13')",
        "s = ''\nfor c in ('sec', 'ret'):\n    s += c",
        "p = []\np.append('sec')\np.append('ret')\nx = ''.join(p)",
        "t = {'a': 'sec', 'b': 'ret'}\nx = t['a'] + t['b']",
        "def join(*parts):\n    return ''.join(parts)\nx = join('sec', 'ret')",
        "def turn(t, k=1):\n    out = ''\n    for c in t:\n        out += chr(ord(c) - k)\n"
        "    return out\nx = turn('tfdsfu')",
        "class A:\n    a = 'sec'\n    def f(self):\n        return self.a + 'ret'",
        "def f(a='sec', b='ret'):\n    return a + b",
        "x = (lambda a: a + 'ret')('sec')",
        "x = 'SECRET'.lower()",
    ],
)
def test_text_made_from_pieces_is_revealed(code: str) -> None:
    assert made(code) & {"secret", b"secret"}


@pytest.mark.parametrize(
    "code",
    [
        "x = 'a' * 10**12",
        "x = 9 ** 9 ** 9",
        "x = 1 << 10**9",
        "x = '%1000000000d' % 1",
        "x = '{:1000000000d}'.format(1)",
        "x = f'{1:1000000000d}'",
        "x = ' '.join(str(i) for i in range(10**9))",
        "x = range(4000)\nfor i in x:\n    for j in x:\n        for k in x:\n            pass",
        "def f(n):\n    return f(n)\nx = f(1)",
        "def f():\n    while True:\n        pass\nx = f()",
        "x = 'a' * 90000\n" + "y = x.replace('a', x)\n" * 50,
        "x = ['ab' * 1000]\n" + "x = x + x\n" * 60,
        "x = int('9' * 90000)",
        "x = bytes(10**10)",
        "import zlib, base64\nx = zlib.decompress(b'x')",
    ],
)
def test_no_code_keeps_it_busy(code: str) -> None:
    began = time.process_time()
    values = made(code)
    assert time.process_time() - began < 10
    assert all(len(v) <= 100_000 for v in values if isinstance(v, str | bytes))


def test_it_calls_nothing_of_the_files_choosing() -> None:
    """Only listed operations: nothing else is called, no attribute read."""
    values = made("x = open('/etc/hostname').read()\ny = ''.__class__\nz = exit() or 'a' + 'b'")
    assert values == {"ab"}
