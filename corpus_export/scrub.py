"""Secrets and personal data are found in a row's messages and taken out.

Agents put what they like into their prompts and thinking: keys from their own files,
addresses, phone numbers. What finds them: `detect-secrets` (keys and tokens of services),
`phonenumbers` (phone numbers), `python-stdnum` (check digits of cards and bank accounts),
and patterns for what those leave out: keys of model providers, Bittensor addresses and
mnemonics, mail addresses, public IP addresses, long random tokens.

A value that is found anywhere is taken out everywhere in the row, so that a secret named
in a thought does not stay in an argument. Catalogue data is left as it is: product and
shop ids are never touched, and an observation that is what the wire answered is only
searched for values that were found elsewhere. Names of people are not looked for: every
second product is called after somebody.
"""

from __future__ import annotations

import ipaddress
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import cast

import phonenumbers
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.plugins.base import RegexBasedDetector
from stdnum import iban, luhn

from scoring.types import Json, JsonObject

REGION = "PH"
"""Where a phone number without a country code is dialled from: the catalogue's country."""
MIN_RANDOM_CHARS = 32
_MIN_RANDOM_BITS = 3.5
"""Per character. Hexadecimal digests have about 3.7, English words joined by `_` below 3.3."""

Found = tuple[str, str]
"""A kind and the text to take out."""

_PATTERNS: dict[str, re.Pattern[str]] = {
    "email": re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"),
    "key": re.compile(
        r"(?<![\w-])(?:sk-[\w-]{16,200}|cpk_[\w.]{16,200}|hf_\w{20,100}|gsk_\w{20,100}"
        r"|r8_\w{20,100}|xai-[\w-]{20,200}|AIza[\w-]{35}|github_pat_\w{22,255})"
    ),
    "token": re.compile(r"(?i)(?<!\w)(?:bearer|basic)\s+([A-Za-z0-9._~+/=-]{16,2000})"),
    "password": re.compile(
        r"(?i)(?<!\w)(?:password|passwd|passphrase|api[_-]?key|secret|access[_-]?token)"
        r"[\"']?\s{0,3}[:=]\s{0,3}[\"']?([^\s\"',;&<>]{6,200})"
    ),
    "address": re.compile(r"(?<!\w)(?:5[1-9A-HJ-NP-Za-km-z]{47}|0x[0-9a-fA-F]{40,128})(?!\w)"),
}
_QUADRATIC = frozenset({"JSON Web Token", "NPM tokens", "OpenAI Token"})
"""Kinds of `detect-secrets` whose patterns read to the end of the line from every place where
they could begin: seconds for a text made for it. Searched for in linear time instead."""
_LINEAR = (
    re.compile(r"(?<![\w=-])eyJ[\w=-]+\.[\w=-]+(?:\.[\w.+/=-]*)?"),
    re.compile(r":_authToken\s{0,3}=\s{0,3}[\w-]{20,200}"),
    re.compile(r"(?<![\w-])[\w-]+T3BlbkFJ[\w-]+"),
)
_IP = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")
_DIGITS = re.compile(r"(?<![\w.,])\d+(?:[ -]\d+)*(?![\w.,]\d)", re.ASCII)
_GROUP = re.compile(r"\d+", re.ASCII)
_CARD_SIZES = frozenset({(4, 4, 4, 4), (4, 4, 4, 4, 3), (4, 6, 5), (4, 6, 4), (4, 4, 4, 1)})
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?!\w)")
_PHONE_HINT = re.compile(r"(?:\+|(?<!\d)0|\(0?\d)[\d() .-]{6,}")
_PHONE_START = re.compile(r"\s{2,}|\s(?=\+|0\d)")
_PHONES = 16
"""Numbers looked for in one stretch of digits, besides the whole of it."""
_RANDOM = re.compile(rf"(?<![\w-])[\w-]{{{MIN_RANDOM_CHARS},400}}(?![\w-])")
_ID_FIELDS = frozenset({"product_id", "product_ids", "shop_id"})


class Scrubber:
    """Takes secrets and personal data out of rows. `literals` are the operator's own secrets."""

    def __init__(self, literals: Iterable[str] = ()) -> None:
        self._literals = tuple(sorted({x for x in literals if len(x) >= 8}))

    def scrub(
        self, messages: Sequence[JsonObject], *, foreign: frozenset[str] = frozenset()
    ) -> tuple[list[JsonObject], Counter[str]]:
        """The messages without what was found, and how many values of each kind that was.

        `messages` are in the OpenAI schema. `foreign` names the tool_call_ids whose result
        is not what the wire answered: text of the agent, searched like its other text.
        """
        ids = _catalogue_ids(messages)
        found: dict[str, str] = {}
        for message in messages:
            if message.get("role") == "tool" and message.get("tool_call_id") not in foreign:
                continue
            for text in _texts(message):
                for kind, value in self._find(text):
                    if value not in ids:
                        found.setdefault(value, kind)
        if not found:
            return list(messages), Counter()
        # The longest first: one value may be a part of another, and may also stand alone.
        order = sorted(found, key=lambda value: (-len(value), value))
        taken: set[str] = set()
        replace = _replacing(order, found, taken)
        clean = [cast("JsonObject", _rewrite(message, replace)) for message in messages]
        return clean, Counter(found[value] for value in order if value in taken)

    def _find(self, text: str) -> Iterator[Found]:
        yield from (("literal", x) for x in self._literals if x in text)
        for kind, pattern in _PATTERNS.items():
            for match in pattern.finditer(text):
                yield kind, match[match.lastindex or 0]
        for pattern in (*_LINEAR, *_service_patterns()):
            found = (match[0] for match in pattern.finditer(text))
            yield from (("key", value) for value in found if len(value) >= 8)
        yield from _numbers(text)
        for match in _RANDOM.finditer(text):
            if _is_random(match[0]):
                yield "token", match[0]


@cache
def _service_patterns() -> tuple[re.Pattern[str], ...]:
    """The patterns of `detect-secrets` for services' keys. Its keyword and entropy plugins
    are for source code, line by line, and its IP addresses are found here with a check."""
    classes: dict[str, type] = get_mapping_from_secret_type_to_class()
    return tuple(
        pattern
        for name, cls in sorted(classes.items())
        if issubclass(cls, RegexBasedDetector)
        and "Public IP" not in name
        and name not in _QUADRATIC
        for pattern in cls().denylist
    )


def _numbers(text: str) -> Iterator[Found]:
    for match in _DIGITS.finditer(text):
        yield from (("card", card) for card in _cards(match[0]))
    for match in _IBAN.finditer(text):
        if iban.is_valid(match[0]):
            yield "bank_account", match[0]
    for match in _IP.finditer(text):
        try:
            if ipaddress.ip_address(match[0]).is_global:
                yield "ip_address", match[0]
        except ValueError:
            continue
    for hint in _PHONE_HINT.finditer(text):
        # Only what is written like a phone number: ids and prices are numbers too. What stands
        # before one or behind it may be a number as well.
        for part in dict.fromkeys((hint[0], *_PHONE_START.split(hint[0])[:_PHONES])):
            for number in phonenumbers.PhoneNumberMatcher(part, REGION, max_tries=8):
                yield "phone", number.raw_string


def _cards(digits: str) -> Iterator[str]:
    """The card numbers among groups of digits: all of them, or some that are grouped like one."""
    groups = list(_GROUP.finditer(digits))
    for first, opening in enumerate(groups):
        sizes: tuple[int, ...] = ()
        for last in groups[first : first + 19]:
            sizes += (len(last[0]),)
            if sum(sizes) > 19:
                break
            written = digits[opening.start() : last.end()]
            if written == digits or len(sizes) == 1 or sizes in _CARD_SIZES:
                number = re.sub(r"\D", "", written)
                if _is_card(number):
                    yield written


def _is_card(number: str) -> bool:
    right = 13 <= len(number) <= 19 and number[0] in "3456" and len(set(number)) > 1
    return right and bool(luhn.is_valid(number))


def _is_random(text: str) -> bool:
    """Whether a long token looks drawn by chance: letters and digits, and no repetition."""
    if not (any(c.isdigit() for c in text) and any(c.isalpha() for c in text)):
        return False
    counts = Counter(text).values()
    bits = -sum(n / len(text) * math.log2(n / len(text)) for n in counts)
    return bits >= _MIN_RANDOM_BITS


def _texts(message: Mapping[str, Json]) -> Iterator[str]:
    """Everything in a message that somebody wrote."""
    for key in ("content", "reasoning_content"):
        value = message.get(key)
        if isinstance(value, str):
            yield value
    for call in cast("list[JsonObject]", message.get("tool_calls") or []):
        function = cast("dict[str, str]", call["function"])
        yield function["name"]
        yield from _strings(_parsed(function["arguments"]))


def _strings(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)


def _parsed(text: str) -> Json:
    try:
        return cast("Json", json.loads(text))
    except (ValueError, RecursionError):
        return text


def _catalogue_ids(messages: Sequence[JsonObject]) -> frozenset[str]:
    """Every product and shop id of the row, so that none is taken for a phone number."""
    ids: set[str] = set()

    def walk(value: Json) -> None:
        if isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, dict):
            for key, item in value.items():
                if key in _ID_FIELDS and isinstance(item, str):
                    ids.update(part.strip() for part in item.split(","))
                walk(item)

    for message in messages:
        content = message.get("content")
        if message.get("role") == "tool" and isinstance(content, str):
            walk(_parsed(content))
    return frozenset(i for i in ids if i.isdecimal())


def _replacing(
    order: Sequence[str], kinds: Mapping[str, str], taken: set[str]
) -> Callable[[str], str]:
    """Puts `[removed KIND]` for each value, an earlier one before a later; `taken` learns which
    stood anywhere: one that is only ever a part of another is no find of its own."""
    # As JSON text has them, too: results and arguments are JSON inside of a string.
    forms: dict[str, str] = {}
    for value in order:
        for form in (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]):
            forms.setdefault(form, value)
    pattern = re.compile("|".join(re.escape(form) for form in forms))

    def removed(match: re.Match[str]) -> str:
        value = forms[match[0]]
        taken.add(value)
        return f"[removed {kinds[value]}]"

    return lambda text: pattern.sub(removed, text)


def _rewrite(value: Json, replace: Callable[[str], str]) -> Json:
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, list):
        return [_rewrite(item, replace) for item in value]
    if isinstance(value, dict):
        return {key: _rewrite(item, replace) for key, item in value.items()}
    return value
