"""Pure operations on constants, each bounded before it is done. Standard library only.

What a hostile file computes here can neither take long nor grow large: an operation whose
result would pass `MAX_CHARS` raises `Unknown`, as does everything that is not listed.
"""

from __future__ import annotations

import ast
import base64
import binascii
import codecs
import operator
import re
import string
import zlib
from collections.abc import Callable, Sequence
from typing import Any

MAX_CHARS = 100_000
"""Of a text, and of all texts of a collection."""
MAX_ITEMS = 5_000
MAX_BITS = 16_384


class Unknown(Exception):  # noqa: N818 - no error: the value is not known
    """The value cannot be told, or would be too large."""


def bounded(value: Any) -> Any:
    """The value, when it is of a known kind and small. Raises Unknown."""
    if value is None or isinstance(value, bool | float | complex):
        return value
    if isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise Unknown
        return value
    if isinstance(value, str | bytes | bytearray):
        if len(value) > MAX_CHARS:
            raise Unknown
        return value
    if isinstance(value, list | tuple | dict | set | frozenset | range):
        if len(value) > MAX_ITEMS:
            raise Unknown
        return value
    raise Unknown


def weight(value: Any, depth: int = 4) -> int:
    """Roughly the characters of a value with all that it holds. Raises Unknown when large."""
    if isinstance(value, str | bytes | bytearray):
        return len(value) + 1
    if isinstance(value, dict):
        return weight([*value.keys(), *value.values()], depth)
    if isinstance(value, list | tuple | set | frozenset):
        if depth == 0 or len(value) > MAX_ITEMS:
            raise Unknown
        total = 1 + sum(weight(item, depth - 1) for item in value)
        if total > MAX_CHARS:
            raise Unknown
        return total
    return 1


def _multiply(left: Any, right: Any) -> Any:
    for many, times in ((left, right), (right, left)):
        if isinstance(many, str | bytes | list | tuple) and isinstance(times, int):
            if weight(many) * max(times, 0) > MAX_CHARS:
                raise Unknown
            return many * times
    return left * right if _numbers(left, right) else _no()


def _power(left: Any, right: Any) -> Any:
    if not _numbers(left, right) or abs(right) > 4096:
        raise Unknown
    if isinstance(left, int) and left.bit_length() * abs(right) > MAX_BITS:
        raise Unknown
    return left**right


def _shift(left: Any, right: Any) -> Any:
    if not _numbers(left, right) or not 0 <= right <= MAX_BITS:
        raise Unknown
    return left << right


def _modulo(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        if re.search(r"%[^a-zA-Z%]*(?:\d{4}|\*)", left):
            raise Unknown
        weight(right)
        return left % right
    return left % right


def _numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) for value in values)


def _no() -> Any:
    raise Unknown


BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: _multiply,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: _modulo,
    ast.Pow: _power,
    ast.LShift: _shift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.Not: operator.not_,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda item, many: item in many,
    ast.NotIn: lambda item, many: item not in many,
}


def _int(value: Any, base: int | None = None) -> int:
    if isinstance(value, str | bytes) and len(value) > 4_000:
        raise Unknown
    return int(value) if base is None else int(value, base)


def _bytes(value: Any = b"", *more: Any) -> bytes:
    if isinstance(value, int) and value > MAX_CHARS:
        raise Unknown
    return bytes(value, *more)


def _items(function: Callable[..., Any]) -> Callable[..., Any]:
    """A builtin over collections, its arguments bounded and its result made a list."""

    def bounded_items(*many: Any) -> list[Any]:
        return list(function(*(bounded(m) for m in many)))

    return bounded_items


BUILTINS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ascii": ascii,
    "bin": bin,
    "bool": bool,
    "bytearray": _bytes,
    "bytes": _bytes,
    "chr": chr,
    "dict": dict,
    "divmod": divmod,
    "enumerate": _items(enumerate),
    "float": float,
    "frozenset": frozenset,
    "hex": hex,
    "int": _int,
    "len": len,
    "list": list,
    "max": max,
    "min": min,
    "oct": oct,
    "ord": ord,
    "range": lambda *bounds: bounded(range(*bounds)),
    "repr": lambda value: weight(value) and repr(value),
    "reversed": _items(reversed),
    "round": round,
    "set": set,
    "slice": slice,
    "sorted": lambda many: sorted(bounded(many)),
    "str": lambda *value: weight(value) and str(*value),
    "sum": lambda many, start=0: sum(many, start) if _numbers(*many, start) else _no(),
    "tuple": tuple,
    "zip": _items(zip),
}

_CODECS = re.compile(
    r"utf[-_]?(?:8|16|32)(?:[-_]?[lb]e)?|ascii|latin[-_]?1|iso-?8859-1|cp1252|"
    r"unicode[-_]escape|raw[-_]unicode[-_]escape",
    re.IGNORECASE,
)


def _replace(text: Any, old: Any, new: Any, count: int = -1) -> Any:
    if len(text) + (text.count(old) + 1) * len(new) > MAX_CHARS:
        raise Unknown
    return text.replace(old, new, count)


def _join(glue: Any, parts: Any) -> Any:
    items = list(bounded(parts))
    if sum(map(len, items)) + len(glue) * len(items) > MAX_CHARS:
        raise Unknown
    return glue.join(items)


def _format(text: str, *values: Any, **named: Any) -> str:
    for _, name, spec, _ in string.Formatter().parse(text):
        if re.search(r"[.\[]", name or "") or re.search(r"\d{4}|[{]", spec or ""):
            raise Unknown
    weight([*values, *named.values()])
    return text.format(*values, **named)


def _encode(text: str, codec: str = "utf-8", errors: str = "strict") -> bytes:
    return text.encode(codec, errors) if _CODECS.fullmatch(codec) else _no()


def _decode(data: bytes, codec: str = "utf-8", errors: str = "strict") -> str:
    return data.decode(codec, errors) if _CODECS.fullmatch(codec) else _no()


def _translate(text: Any, table: Any) -> Any:
    if isinstance(table, dict):
        longest = max((len(v) for v in table.values() if isinstance(v, str)), default=1)
        if len(text) * max(longest, 1) > MAX_CHARS:
            raise Unknown
    return text.translate(table)


def _plain(name: str) -> Callable[..., Any]:
    return lambda value, *arguments: getattr(value, name)(*arguments)


_TEXT = (
    *("lower", "upper", "strip", "lstrip", "rstrip", "split", "rsplit", "splitlines"),
    *("swapcase", "title", "capitalize", "casefold", "removeprefix", "removesuffix", "partition"),
    *("rpartition", "startswith", "endswith", "find", "rfind", "index", "count", "hex"),
    *("isdigit", "isalpha", "isalnum", "isupper", "islower", "isspace"),
)
_LIST = ("append", "extend", "insert", "reverse", "pop", "copy", "index", "count")
_DICT = ("get", "keys", "values", "items", "pop", "update", "setdefault")

METHODS: dict[tuple[type, str], Callable[..., Any]] = {
    **{(kind, name): _plain(name) for kind in (str, bytes) for name in _TEXT},
    **{(kind, "join"): _join for kind in (str, bytes)},
    **{(kind, "replace"): _replace for kind in (str, bytes)},
    **{(kind, "translate"): _translate for kind in (str, bytes)},
    (str, "format"): _format,
    (str, "encode"): _encode,
    (bytes, "decode"): _decode,
    **{(list, name): _plain(name) for name in _LIST},
    **{(tuple, name): _plain(name) for name in ("index", "count")},
    **{(dict, name): _plain(name) for name in _DICT},
    (int, "to_bytes"): lambda n, size, order="big": _sized(n, size, order),
}


def _sized(number: int, size: int, order: str) -> bytes:
    return number.to_bytes(size, order) if size <= MAX_BITS // 8 else _no()  # type: ignore[arg-type]


def _unpack(data: bytes, *more: Any) -> bytes:
    return zlib.decompressobj(*more).decompress(data, MAX_CHARS)


def _codec(data: Any, name: str = "utf-8", *_: Any) -> Any:
    known = name.lower().replace("-", "_") in (
        *("rot13", "rot_13", "hex", "hex_codec", "base64", "base64_codec"),
    )
    return codecs.decode(data, name) if known else _decode(data, name)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "bytes.fromhex": bytes.fromhex,
    "bytearray.fromhex": bytes.fromhex,
    "int.from_bytes": lambda data, order="big": int.from_bytes(data, order),
    "str.maketrans": lambda *tables: str.maketrans(*tables),
    "bytes.maketrans": lambda *tables: bytes.maketrans(*tables),
    "str.join": _join,
    "dict.fromkeys": lambda keys, value=None: dict.fromkeys(bounded(keys), value),
    "base64.b64decode": lambda data, *_: base64.b64decode(data),
    "base64.urlsafe_b64decode": base64.urlsafe_b64decode,
    "base64.b32decode": lambda data, *_: base64.b32decode(data),
    "base64.b16decode": lambda data, *_: base64.b16decode(data, casefold=True),
    "base64.b85decode": base64.b85decode,
    "base64.a85decode": lambda data, *_: base64.a85decode(data),
    "binascii.unhexlify": binascii.unhexlify,
    "binascii.a2b_hex": binascii.a2b_hex,
    "binascii.a2b_base64": lambda data, *_: binascii.a2b_base64(data),
    "codecs.decode": _codec,
    "zlib.decompress": _unpack,
}
"""Functions by their full name, the banned decoders too: what they would reveal is looked at."""


def call_bounded(function: Callable[..., Any], arguments: Sequence[Any], named: Any) -> Any:
    """The result of a listed operation. Raises Unknown for whatever goes wrong in it."""
    try:
        for argument in (*arguments, *named.values()):
            weight(argument)
        result = function(*arguments, **named)
        if isinstance(result, bytearray):
            result = bytes(result)
        if type(result).__name__ in ("dict_keys", "dict_values", "dict_items"):
            result = list(result)
        if isinstance(result, slice):
            return result
        weight(result)
        return bounded(result)
    except Unknown:
        raise
    except Exception:  # noqa: BLE001 - the values are the file's: any error means no value
        raise Unknown from None
