"""Words of products and shoppers in one form, whatever case, spelling, unit or number.

`1.5kg`, `1,500 g` and `1.5 kilos` become one token, and so do `grey` and `gray`, `XL` and
`extra large`, `two pieces` and `2pcs`. Used only to tell whether two problems ask the same
thing; nobody is shown this form. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from sandbox.catalog.stemmer import stem

MAX_TEXT = 20_000
"""Characters of one text that are read. Longer ones come from no shopper."""

# fmt: off
_UNITS: dict[str, tuple[str, float]] = {
    **dict.fromkeys(("mg", "milligram", "milligrams"), ("g", 0.001)),
    **dict.fromkeys(("g", "gm", "gms", "gr", "gram", "grams"), ("g", 1.0)),
    **dict.fromkeys(("kg", "kgs", "kilo", "kilos", "kilogram", "kilograms"), ("g", 1000.0)),
    **dict.fromkeys(("lb", "lbs", "pound", "pounds"), ("g", 453.592)),
    **dict.fromkeys(("oz", "ounce", "ounces"), ("g", 28.3495)),
    **dict.fromkeys(("ml", "mls", "milliliter", "milliliters", "millilitre", "millilitres",
                     "cc"), ("ml", 1.0)),
    **dict.fromkeys(("cl", "centiliter", "centilitre"), ("ml", 10.0)),
    **dict.fromkeys(("l", "lt", "ltr", "liter", "liters", "litre", "litres"), ("ml", 1000.0)),
    **dict.fromkeys(("gal", "gallon", "gallons"), ("ml", 3785.41)),
    **dict.fromkeys(("mm", "millimeter", "millimeters", "millimetre", "millimetres"),
                    ("mm", 1.0)),
    **dict.fromkeys(("cm", "cms", "centimeter", "centimeters", "centimetre", "centimetres"),
                    ("mm", 10.0)),
    **dict.fromkeys(("m", "mtr", "meter", "meters", "metre", "metres"), ("mm", 1000.0)),
    **dict.fromkeys(("inch", "inches", "in", '"', "″"), ("mm", 25.4)),
    **dict.fromkeys(("ft", "foot", "feet"), ("mm", 304.8)),
    **dict.fromkeys(("yd", "yard", "yards"), ("mm", 914.4)),
    **dict.fromkeys(("w", "watt", "watts"), ("w", 1.0)),
    **dict.fromkeys(("kw", "kilowatt", "kilowatts"), ("w", 1000.0)),
    **dict.fromkeys(("v", "volt", "volts"), ("v", 1.0)),
    **dict.fromkeys(("mah",), ("mah", 1.0)),
    **dict.fromkeys(("ah",), ("mah", 1000.0)),
    **dict.fromkeys(("hz", "hertz"), ("hz", 1.0)),
    **dict.fromkeys(("khz",), ("hz", 1e3)),
    **dict.fromkeys(("mhz",), ("hz", 1e6)),
    **dict.fromkeys(("ghz",), ("hz", 1e9)),
    **dict.fromkeys(("mb", "megabyte", "megabytes"), ("mb", 1.0)),
    **dict.fromkeys(("gb", "gigabyte", "gigabytes"), ("mb", 1024.0)),
    **dict.fromkeys(("tb", "terabyte", "terabytes"), ("mb", 1048576.0)),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), ("h", 1 / 60)),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), ("h", 1.0)),
    **dict.fromkeys(("day", "days"), ("h", 24.0)),
    **dict.fromkeys(("month", "months"), ("mo", 1.0)),
    **dict.fromkeys(("year", "years", "yr", "yrs"), ("mo", 12.0)),
    **dict.fromkeys(("pc", "pcs", "piece", "pieces", "pack", "packs", "pk", "pks", "count",
                     "ct"), ("pc", 1.0)),
    **dict.fromkeys(("pair", "pairs"), ("pair", 1.0)),
    **dict.fromkeys(("%", "percent"), ("%", 1.0)),
}
_NUMBER_WORDS = {
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "ten": "10", "eleven": "11", "twelve": "12", "fifteen": "15",
    "twenty": "20", "thirty": "30", "forty": "40", "fifty": "50", "sixty": "60",
    "hundred": "100", "dozen": "12", "single": "1", "double": "2", "triple": "3", "twin": "2",
}
_PHRASES = {
    "extra extra large": "xxl", "extra large": "xl", "extra small": "xs", "x large": "xl",
    "x small": "xs", "2 xl": "xxl", "2xl": "xxl", "3xl": "xxxl", "free size": "onesize",
    "one size fits all": "onesize", "one size": "onesize", "navy blue": "navy",
    "army green": "olive", "olive green": "olive", "sky blue": "skyblue",
    "light blue": "skyblue", "rose gold": "rosegold", "stainless steel": "stainless",
    "type c": "usbc", "usb c": "usbc", "power bank": "powerbank", "cell phone": "phone",
    "mobile phone": "phone", "t shirt": "tshirt", "hand bag": "handbag", "back pack": "backpack",
    "flip flops": "flipflop", "flip flop": "flipflop", "faux leather": "puleather",
    "pu leather": "puleather", "synthetic leather": "puleather", "leak proof": "leakproof",
    "water proof": "waterproof", "long sleeved": "long sleeve", "short sleeved": "short sleeve",
    "key chain": "keychain", "ear phone": "earphone", "head phone": "headphone",
}
_SYNONYMS = {
    "gray": "grey", "colour": "color", "aluminium": "aluminum", "tee": "tshirt",
    "cellphone": "phone", "smartphone": "phone", "mobile": "phone", "small": "s",
    "medium": "m", "large": "l", "xsmall": "xs", "xlarge": "xl", "xxlarge": "xxl",
    "mens": "men", "womens": "women", "ladies": "women", "lady": "women", "woman": "women",
    "man": "men", "male": "men", "female": "women", "kids": "kid", "children": "kid",
    "child": "kid", "childrens": "kid", "jewellery": "jewelry", "sneakers": "sneaker",
    "couch": "sofa", "fibre": "fiber", "moisturiser": "moisturizer", "organiser": "organizer",
    "pyjamas": "pajamas", "tyre": "tire", "torch": "flashlight", "earbuds": "earphone",
    "earphones": "earphone", "motorbike": "motorcycle", "refrigerator": "fridge",
    "tv": "television", "doughnut": "donut", "golden": "gold", "wooden": "wood",
    "woollen": "wool", "woolen": "wool", "rechargable": "rechargeable",
}
# fmt: on

_SHORT = 80
_NUMBER = r"\d+(?:\.\d+)?"
# "in" counts only when it is joined to its number: "size 39 in black" is no length.
_SPACED = "|".join(sorted(map(re.escape, set(_UNITS) - {"in"}), key=len, reverse=True))
_UNIT = rf"(?:(?<=\d)in|(?<=\d-)in|[\s-]?(?:{_SPACED}))(?![\w%])"
_MEASURE = re.compile(rf"(?<![\w.])({_NUMBER})-?({_UNIT})")
_DIMENSIONS = re.compile(rf"(?<![\w.])({_NUMBER}(?:\s?[x×*/-]\s?{_NUMBER})+)({_UNIT})")
_FRACTION = re.compile(r"(?<![\w./])(?:(\d+)[\s-])?(\d)/(\d{1,2})(?=[\s-]?(?:inch|in\b|\"|″))")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_PACK_OF = re.compile(r"\b(?:pack|set|box|bundle) of (\d+)\b")
_SIZE_SYSTEM = re.compile(r"\b(?:int|intl|international)\b\s*:?\s*")
_NUMBERED_SIZE = re.compile(r"\b(eu|us|uk)\s*[:.]?\s*(\d{1,2}(?:\.5)?)\b")
_LONE = re.compile(r"\b([a-z])[- ](shirt|neck|line|type)s?\b")
_DIGIT = re.compile(r"\d")
_TOKEN = re.compile(r"\d+\.\d+[a-z]*%?|[^\W_]+%?")
_POSSESSIVE = re.compile(r"['’`]s?\b")
_SPACES = re.compile(r"[-_/\s:]+")
_PHRASE = re.compile(
    r"\b(?:" + "|".join(sorted(map(re.escape, _PHRASES), key=len, reverse=True)) + r")\b"
)
_WORD_NUMBER = re.compile(r"\b(?:" + "|".join(_NUMBER_WORDS) + r")\b(?=[\s-]\w)")


def tokens(text: str) -> tuple[str, ...]:
    """The words of a text in their one form, in order.

    Measures become one token in a base unit (`12 inch` → `305mm`, three significant
    digits), words their stem, sizes and well-known spellings one of their kind.
    """
    return _short(text) if len(text) < _SHORT else _read(text[:MAX_TEXT])


def _read(text: str) -> tuple[str, ...]:
    plain = unicodedata.normalize("NFKC", text).casefold()
    plain = _POSSESSIVE.sub("", _THOUSANDS.sub("", plain))
    plain = _WORD_NUMBER.sub(lambda m: _NUMBER_WORDS[m[0]], plain)
    plain = _FRACTION.sub(_decimal, plain)
    plain = _PACK_OF.sub(r"\1pcs", plain)
    plain = _NUMBERED_SIZE.sub(r"\1\2 ", _SIZE_SYSTEM.sub(" ", plain))
    plain = _DIMENSIONS.sub(_each, plain)
    plain = _MEASURE.sub(lambda m: f" {measure(float(m[1]), m[2].strip(' -'))} ", plain)
    plain = _LONE.sub(r"\1\2", _SPACES.sub(" ", plain))
    plain = _PHRASE.sub(lambda m: _PHRASES[m[0]], plain)
    return tuple(_one(word) for word in _TOKEN.findall(plain))


# Values of options and attributes come again and again, queries do not.
_short = lru_cache(maxsize=1 << 15)(_read)


def measure(value: float, unit: str) -> str:
    """A quantity in its base unit, to three significant digits: `measure(1.5, "kg")` is `1500g`."""
    base, factor = _UNITS[unit]
    return f"{number(value * factor)}{base}"


def number(value: float) -> str:
    """A number to three significant digits, without an exponent or needless zeros."""
    rounded = float(f"{value:.3g}")
    return str(int(rounded)) if rounded.is_integer() else f"{rounded:.10f}".rstrip("0")


def is_code(token: str) -> bool:
    """Whether it holds a digit: a measure, a number, a model's name."""
    return _DIGIT.search(token) is not None


def _decimal(match: re.Match[str]) -> str:
    whole, part, of = match.groups()
    return f"{int(whole or 0) + int(part) / max(1, int(of)):.4g}"


def _each(match: re.Match[str]) -> str:
    parts = re.findall(_NUMBER, match[1])
    return " " + " ".join(measure(float(part), match[2].strip(" -")) for part in parts) + " "


@lru_cache(maxsize=1 << 16)
def _one(word: str) -> str:
    if is_code(word):
        return word.lstrip("0") or "0"
    stemmed = stem(word)
    return _BY_STEM.get(stemmed, stemmed)


_BY_STEM = {stem(word): stem(known) for word, known in _SYNONYMS.items()}
