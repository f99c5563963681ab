"""Names that the gate knows: of builtins, of Python's internals. Standard library only."""

from __future__ import annotations

import re

RUNS_TEXT = frozenset(
    {"eval", "exec", "compile", "__import__", "globals", "breakpoint", "execfile", "reload"}
)
"""Builtins that run text, or hand out every name."""
INTERNAL_NAMES = frozenset(
    {"__builtins__", "__loader__", "__spec__", "__build_class__", "__class__", "__cached__"}
)
CALLED_ONLY = frozenset({"getattr", "open", "locals", "vars"})
"""Builtins that are looked at where they are called, and nowhere else may stand."""

FRAMES = frozenset(
    {
        *("tb_frame", "f_globals", "f_locals", "f_builtins", "f_back", "f_code", "f_trace"),
        *("gi_frame", "gi_code", "gi_yieldfrom", "cr_frame", "cr_code", "ag_frame", "ag_code"),
        *("co_code", "co_consts", "co_names", "func_globals", "func_code", "mro", "_getframe"),
        *("exec_module", "load_module", "find_spec", "get_source", "modules_by_index"),
        *("popen", "subprocess_exec", "subprocess_shell", "execve", "execvp", "spawnv", "forkpty"),
        *("create_connection", "create_server", "create_unix_connection", "open_connection"),
    }
)
"""Attributes that lead to frames, code, processes or sockets, on whatever object."""

HARMLESS = frozenset(
    f"__{name}__"
    for name in (
        *("name", "qualname", "doc", "module", "version", "annotations", "wrapped", "members"),
        *("init", "post_init", "new", "call", "enter", "exit", "aenter", "aexit", "del"),
        *("iter", "next", "aiter", "anext", "len", "contains", "getitem", "setitem", "delitem"),
        *("eq", "ne", "lt", "le", "gt", "ge", "hash", "repr", "str", "format", "bool", "int"),
        *("float", "index", "add", "radd", "iadd", "sub", "rsub", "mul", "rmul", "truediv"),
        *("floordiv", "mod", "pow", "neg", "pos", "abs", "and", "or", "xor", "invert", "round"),
        *("missing", "copy", "deepcopy", "cause", "context", "traceback", "notes", "reversed"),
        *("setattr", "getattr", "delattr", "dir", "length_hint", "dataclass_fields", "slots"),
        *("suppress_context", "match_args", "await", "fspath", "bytes", "sizeof"),
        *("init_subclass", "set_name", "class_getitem"),
    )
)
"""Names between double underscores that honest classes define and call."""

TELLING = re.compile(
    r"__(?:subclasses|globals|builtins|import|code|closure|getattribute|bases?|mro|reduce(?:_ex)?"
    r"|build_class|loader|self|func)__"
)
"""Internals named in a text: nothing but code put together at run time needs them there."""
FIELD_WALK = re.compile(r"\{[^{}]*(?:\.|\[)_+[a-z]")
"""A format field that walks into an object: `{0.__class__}`."""

SPELLED_HARD = frozenset(
    {
        *("eval", "exec", "compile", "__import__", "globals", "getattr", "setattr", "builtins"),
        *("__builtins__", "importlib", "import_module", "subprocess", "ctypes", "marshal"),
        *("pickle", "os.system", "base64", "b64decode", "codecs", "shutil", "popen", "_getframe"),
    }
)
"""Words that nobody puts together from pieces in good faith."""
SPELLED_SOFT = frozenset({"system", "socket", "open", "zlib", "http", "write", "inspect", "loads"})
"""The same, unless the word also stands in the file as it is."""
CODE_TEXT = re.compile(
    r"\b(?:eval|exec|compile|__import__|getattr)\s*\(|"
    r"(?:^|[;\n])\s*(?:import|from)\s+(?:os|sys|subprocess|socket|importlib|ctypes|shutil)\b"
)
"""Code in a text, when the text was put together."""


def is_internal(attribute: str) -> bool:
    """Whether an attribute leads into Python's internals, whatever it is an attribute of."""
    dunder = attribute.startswith("__") and attribute.endswith("__") and len(attribute) > 4
    return attribute in FRAMES or (dunder and attribute not in HARMLESS)
