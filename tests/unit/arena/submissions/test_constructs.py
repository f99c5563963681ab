"""Which modules, names and constructs pass, and which do not."""

from __future__ import annotations

import pytest

from arena.submissions.policy import Policy
from arena.submissions.reading import read_source
from arena.submissions.rules import Rule

MAIN = "\n\ndef agent_main(problem_data):\n    return []\n"


def rules(code: str, policy: Policy | None = None) -> set[Rule]:
    reading = read_source((code + MAIN).encode(), policy or Policy())
    return {v.rule for v in reading.violations}


@pytest.mark.parametrize(
    "code",
    [
        "import os\nhome = os.getenv('HOME')\nsame = os.path.join('a', 'b')",
        "import os.path as p\nx = p.exists('/tmp')",
        "from os import getenv, path\nx = path.join('a')",
        "import json as j\nx = j.loads('1')",
        "from concurrent import futures\npool = futures.ThreadPoolExecutor",
        "import urllib.parse\nx = urllib.parse.quote('a b')",
        "try:\n    import requests\nexcept ImportError:\n    requests = None\nok = not requests",
        "import re\npattern = re.compile('a')",
        "class A:\n    def compile(self): ...\n    def open(self): ...\n\nA().compile()",
        "import logging, os\nlevel = getattr(logging, os.getenv('L', 'info').upper(), 20)",
        "class A:\n    def run(self, kind):\n        return getattr(self, f'on_{kind}')()",
        "class A:\n    def names(self):\n        return [getattr(self, n) for n in ('a', 'b')]",
        "def name(e):\n    return type(e).__name__ + e.__class__.__name__",
        "def first(self, kind):\n    return getattr(kind, 'value', kind)",
        "class A:\n    def __init__(self, **given):\n        self.__dict__.update(given)",
        "import sys\nthis = sys.modules[__name__]\nx = 'json' in sys.modules",
        "from abc import ABCMeta\nclass A(metaclass=ABCMeta): ...",
        "with open('notes.txt') as f:\n    text = f.read()",
        "text = open('a', mode='rb').read()",
        "from operator import attrgetter\nkey = attrgetter('price')",
        "def f(eval):\n    return eval",
        "ROLE = {'role': 'system'}\nWORD = ['user', 'system'][1]",
        "from src.agent.agent_interface import _TOOL_REGISTRY, Tool",
        "from src.agent import proxy_client\nc = proxy_client.ProxyClient()",
        "def f(x: 'Node') -> 'list[Node]': ...",
        "PROMPT = 'Never use eval() or exec; import os is of no use either.'",
    ],
)
def test_what_honest_agents_write_passes(code: str) -> None:
    assert rules(code) == set()


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("import subprocess", Rule.MODULE),
        ("from socket import socket as s", Rule.MODULE),
        ("import os as o\no.system('id')", Rule.MODULE_NAME),
        ("import os\nx = os.path.os", Rule.MODULE_NAME),
        ("import logging\nx = logging.os", Rule.MODULE_NAME),
        ("from json import codecs", Rule.MODULE_NAME),
        ("import enum\nx = enum.bltns", Rule.MODULE_NAME),
        ("import urllib.parse\nx = urllib.request", Rule.MODULE_NAME),
        ("from typing import *", Rule.STAR),
        ("from . import helper", Rule.RELATIVE),
        ("import os\nx = [os]", Rule.MODULE_VALUE),
        ("import os\no = os", Rule.MODULE_VALUE),
        ("import os\ndef f(m=os): ...", Rule.MODULE_VALUE),
        ("class A:\n    import os", Rule.MODULE_VALUE),
        ("import sys\nx = sys.modules['os']", Rule.MODULE_VALUE),
        ("import sys\nfor m in sys.modules.values(): ...", Rule.MODULE_VALUE),
        ("import os, sys\nx = sys.modules[__name__].os", Rule.MODULE_VALUE),
        ("import os, sys\nme = sys.modules[__name__]\nx = me.os", Rule.MODULE_VALUE),
        ("import sys\nsys.modules['a'] = 1", Rule.MODULE_CHANGED),
        ("import json\njson.loads = len", Rule.MODULE_CHANGED),
        ("x = eval", Rule.DYNAMIC),
        ("if 0:\n    eval = None\nx = eval('1')", Rule.DYNAMIC),
        ("ｅｖａｌ('1')", Rule.DYNAMIC),
        ("x = f'{__import__(\"os\")}'", Rule.DYNAMIC),
        ("@exec\ndef f(): ...", Rule.DYNAMIC),
        ("x = map(getattr, [1], ['a'])", Rule.DYNAMIC),
        ("x = locals()", Rule.DYNAMIC),
        ("def f(x: 'g()'): ...", Rule.DYNAMIC),
        ("x = __builtins__", Rule.INTERNALS),
        ("x = ().__class__.__bases__", Rule.INTERNALS),
        ("def f(): ...\nx = f.__globals__", Rule.INTERNALS),
        ("def f(e):\n    match e:\n        case object(__class__=c): return c", Rule.INTERNALS),
        ("def f(e):\n    return e.__traceback__.tb_frame", Rule.INTERNALS),
        ("def f(o):\n    return getattr(o, '__class__')", Rule.INTERNALS),
        ("def f(o, n):\n    return getattr(o, n)", Rule.HIDDEN_NAME),
        ("def f(o):\n    return getattr(*o)", Rule.HIDDEN_NAME),
        ("names = ['a']\nnames.append('x')\nx = [getattr(1, n) for n in names]", Rule.HIDDEN_NAME),
        ("from operator import attrgetter\nx = map(attrgetter, ['a'])", Rule.HIDDEN_NAME),
        ("x = '{0.__class__}'.format(1)", Rule.HIDDEN_NAME),
        ("x = 'ev' + 'al'", Rule.HIDDEN_NAME),
        ("x = ''.join(chr(c) for c in (101, 120, 101, 99))", Rule.HIDDEN_NAME),
        ("x = type('A', (), {})", Rule.METACLASS),
        ("class A(metaclass=print): ...", Rule.METACLASS),
        ("open('a', 'w')", Rule.FILE_WRITE),
        ("def f(m):\n    return open('a', m)", Rule.FILE_WRITE),
        ("o = open", Rule.FILE_WRITE),
        ("open(*['a', 'w'])", Rule.FILE_WRITE),
        ("import logging\nlogging.basicConfig(filename='x')", Rule.FILE_WRITE),
        ("x = open(__file__)", Rule.OWN_FILE),
        ("x = open('agent.py')", Rule.OWN_FILE),
    ],
)
def test_what_is_forbidden_is_found(code: str, rule: Rule) -> None:
    assert rule in rules(code)


def test_names_of_the_standard_library_do_not_depend_on_what_is_loaded() -> None:
    """A module that another test imported must not become an attribute that passes."""
    assert rules("import concurrent.futures\nx = concurrent.futures.thread.os") != set()


def test_a_policy_may_forbid_opening_files_and_allow_a_module() -> None:
    assert rules("open('a')", Policy(read_files=False)) == {Rule.FILE}
    allowed = Policy(modules={**Policy().modules, "numpy": ("*",)})
    assert rules("import numpy as np\nx = np.zeros(1)", allowed) == set()
    assert rules("import numpy as np\nx = np.os", allowed) == {Rule.MODULE_NAME}


def test_a_violation_names_its_line_and_says_why_and_how_to_mend_it() -> None:
    reading = read_source(b"import json\n\n\nimport shutil\n" + MAIN.encode(), Policy())
    (found,) = reading.violations
    assert (found.line, found.column, found.found) == (4, 1, "import shutil")
    assert "list" in found.why
    assert "docs/admission.md" in found.fix
