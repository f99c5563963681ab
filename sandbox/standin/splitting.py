"""Splits a wish for several things into the words of each thing, in the order asked.

Shoppers number their items, call them "First" and "Lastly", end them with a
semicolon, give each a sentence, or just list them. Each way is tried in that order.
"""

from __future__ import annotations

import re

from sandbox.standin.lexicon import AMBIGUOUS_NOUNS, ATTRIBUTE_NOUNS

_ORDINAL = (
    r"(?:first(?:ly)?|second(?:ly)?|third(?:ly)?|fourth(?:ly)?|fifth(?:ly)?|last(?:ly)?"
    r"|finally|next)"
)
_ALSO = r"(?<=[.;]\s)(?:also|additionally|then|furthermore|moreover|plus)\b\s*,?\s*"
_NUMBERED = re.compile(r"(?:(?<=\s)|^)(?:\(\d{1,2}\)|\d{1,2}\)|\d{1,2}\.(?=\s))\s*")
_NAMED = re.compile(
    rf"(?:(?<=[.;:,]\s)|^|(?<=\s))(?:and\s+)?(?:for\s+)?(?:the\s+)?{_ORDINAL}"
    rf"(?:\s+(?:one|item|product))?\s*(?:,|:|\bis\b|\bshould be\b)\s*|{_ALSO}",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9])")
_TRAILER = re.compile(
    r"^(?:(?:please|kindly)\b|can you\b|could you help|show (?:only|stores|shops|results)|only show"
    r"|all (?:products|items|should|of these)|both (?:items|products|should)|the shop should"
    r"|focus on|thanks?\b|show me (?:stores|shops|sellers)|make sure|i need them all)",
    re.IGNORECASE,
)
_SHARED = re.compile(r"^(?:both|all|each)\b.{0,30}?\bshould (?:be|have|come)\b", re.IGNORECASE)
_LEAD = re.compile(
    r"^(?:(?:hi|hello|please|also|additionally|then|plus|next|lastly|finally|and|but)\b[,\s]*)*"
    r"(?:(?:(?:i'm|i am|we're|we are)\s+)?(?:also\s+)?(?:still\s+)?"
    r"(?:looking|searching|seeking|shopping)(?:\s+(?:for|at))?"
    r"|(?:i|we)(?:'d| would)?\s+(?:also\s+)?(?:need|want|like|wish)(?:\s+to\s+(?:buy|find|get))?"
    r"|(?:i'm|i am|also)?\s*(?:also\s+)?interested in"
    r"|(?:also\s+)?(?:show|find|get|give|list|help)(?:\s+me)?(?:\s+(?:find|some|options for|any))?"
    r"|(?:could|can|do) you (?:also )?(?:show me|find|have|help me find)|need|want|search for"
    r"|look for|(?:also\s+)?offers?(?= an?\b))\b[\s,:]*",
    re.IGNORECASE,
)
_SHOP_LEAD = re.compile(
    r"^(?:(?:a|an|any|one|some|the)\s+)?(?:online\s+)?(?:shops?|stores?|sellers?)\b"
    r"(?:\s+on\s+lazmall)?\s*(?:(?:that|which|where|who|can|also|both|is|are|has|have|i can|"
    r"offer(?:s|ing)?|sell(?:s|ing)?|carr(?:y|ies|ying)|stock(?:s|ing)?|with|buy|find|"
    r"provid\w+|at least|"
    r"all|multiple|several|various|a variety of|(?:\w+\s+)?(?:these|the following|of these)|"
    r"(?:two|three|four|five)?\s*(?:items?|products?)(?=\s*:|\s*\.|,))\s*)*[:,]?\s*",
    re.IGNORECASE,
)
_PRODUCT_LEAD = re.compile(
    r"^(?:(?:some|these|the following|several|two|three|four|multiple)\s+)?(?:[\w ]{3,30}\s+)??"
    r"(?:items|products|things|filters|[\w]+s(?= with| matching))\b\s*"
    r"(?:matching these filters|with these features|with the following)?[:.]\s*",
    re.IGNORECASE,
)
_FIRST = re.compile(r"\W*(?:for\s+|the\s+|and\s+)*(?:first|\(?1[).])", re.IGNORECASE)
_WISH = re.compile(rf"(?:for \w+(?: \w+)?, )?(?:{_LEAD.pattern[1:]})", re.IGNORECASE)
_ONE_OF = re.compile(
    r"^(?:(?:the )?(?:one|another|third|second|fourth)|a (?:second|third|fourth))\b"
    r"(?: (?:product|item|option))?(?= (?:in|with|from|that|which|is|has|should|includes?|comes?"
    r"|called|named|costs?|priced|available|also|for|made|sized?)\b)",
    re.IGNORECASE,
)
_ABOUT = re.compile(r"for (the [\w' -]{3,40}),\s*(?:it should|i want it|i need it)?", re.IGNORECASE)
_MADE = re.compile(r"\b(?:made (?:in|of|from)|that|which|priced|costing|compatible)\b")
_KINDS = re.compile(r"(?:some|any|these)?\s*(?:products|items|things|goods)\b", re.IGNORECASE)
_ABOUT_NEW = re.compile(
    r"(?:lastly, |finally, |also, |next, )?for (?:an?|another) ([\w' -]{3,40}),\s*"
    r"(?:look for|search for|select|choose|pick|find|i (?:want|need))",
    re.IGNORECASE,
)
_PRICE = re.compile(
    r"(?:between|from|within|range of|costs?)\s+[\d.,]+\s*(?:php|pesos?)?\s*(?:and|to|-)\s*[\d.,]+",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"\s*;\s*(?:and\s+)?|,\s*as well as\s+|\s+as well as\s+|,?\s+and also\s+")
_COMMA = re.compile(
    r"\s*,\s*(?:and\s+|also\s+|plus\s+|as well as\s+|or\s+|finally,?\s+|lastly,?\s+)*|\s+and\s+"
)
_GOES_ON = re.compile(
    r"^(?:(?:with|without|made|in|on|at|of|to|by|from|for|priced?|pric(?:es|ing)|sized?|suitable|"
    r"featuring|features?|available|costs?|costing|includ\w+|comes?|coming|crafted|support\w*|"
    r"that|which|has|have|having|uses?|using|runs?|compatible|designed|perfect|preferably|"
    r"especially|ideal|categor\w+|classif\w+|model\w*|type|brand\w*|colou?r\w*|style[ds]?|over|"
    r"above|under|below|more|less|between|is|are|it|its|released|sold|plus free|weighing|"
    r"weigh\w*|about|around|up|non|not|no|free|complimentary|cash|pay|lazmall|lazflash|"
    r"authenticity|easy|quick|fast|guaranteed|inspired|related|themed|part|offered|"
    r"offers?(?! an? )|named|called|"
    r"showing|recommended|rated|fits?|fitting|works?|working|packed|pack|packaged|measuring|"
    r"must|specifically|needs?|good|great|can|allows?|both|under|if|plus|or|along|together|based|"
    r"crafted|produced|manufactured|formulated|scented|flavou?red|equipped|adjustable|"
    r"\d[\w.+-]*(?:gb|mah|mm|cm|ml|kg|w|v|mp|hz|m|g|l)?\b(?!\s*(?:pcs|pieces?|pack)))\b"
    r"|size\b|100%|❤)",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"^(?:a|an|another|some|one)\s+(?:\w|['\"])", re.IGNORECASE)
_STOP_AT = re.compile(
    r"\b(?:with|without|made|in|from|for|priced|that|which|featuring|available|of|costing|sized|"
    r"suitable|like|by|compatible|related|crafted|on|at|supporting|over|above|between|comes?|"
    r"including|to)\b|[(\d⟦]",
    re.IGNORECASE,
)


def split_items(wish: str) -> list[str]:
    """The words of each item, in order; at least one when `wish` has any words."""
    text = " ".join(wish.split())[:6000]
    for marker in (_NUMBERED, _NAMED):
        found = list(marker.finditer(text))
        if len(found) > 1 and any(_FIRST.match(m[0]) for m in found):
            items = _by_marker(text, found)
            if len(items) > 1:
                return _name_each(items)
    return _name_each(_by_sentence(text))


def _by_marker(text: str, found: list[re.Match[str]]) -> list[str]:
    before = text[: found[0].start()]
    items = [] if _FIRST.match(found[0][0]) else _drop_announcement(_by_sentence(before))
    ends = [m.start() for m in found[1:]] + [len(text)]
    for match, end in zip(found, ends, strict=True):
        items.extend(_wishes(text[match.end() : end]))
    return items


def _drop_announcement(items: list[str]) -> list[str]:
    """Items without a first one that only announces: "some ink bottles", "a variety of"."""
    if items and len(items[0].split()) < 4 and not _ARTICLE.match(items[0]):
        return items[1:]
    return items


def _wishes(text: str) -> list[str]:
    """The items of a marked stretch: one, unless a later sentence wishes again."""
    items: list[str] = []
    for sentence in _SENTENCE.split(text.strip()):
        if _TRAILER.match(sentence) or _is_pointer(sentence):
            continue
        if items and not _WISH.match(sentence):
            items[-1] += f". {sentence}"
        else:
            items.append(_WISH.sub("", sentence, count=1) if items else sentence)
    return [tidy for item in items if _says_something(tidy := strip_request(item).strip(" .;,:?"))]


def _is_pointer(sentence: str) -> bool:
    """Whether a sentence only points back: "I'm looking for these parts"."""
    return bool(
        re.match(r"(?:these|those|such|them|all)\b", strip_request(sentence), re.IGNORECASE)
    )


def _says_something(item: str) -> bool:
    return bool(re.search(r"[^\W\d_]{2}", item)) and not re.fullmatch(
        r"(?:some|any|these|those)?\s*(?:items|products)?", item, re.IGNORECASE
    )


def _name_each(items: list[str]) -> list[str]:
    """Give "one in blue, another in red" the thing that was named before them."""
    which = [bool(_ONE_OF.match(item)) for item in items]
    if not any(which) or which[0]:
        return items
    first = which.index(True)
    if not re.match(r"(?:the )?one\b", items[first], re.IGNORECASE):
        return items
    kind = " ".join(items[:first])
    return [
        f"{kind}, {_ONE_OF.sub('', item).strip()}" if is_one else item
        for item, is_one in zip(items[first:], which[first:], strict=True)
    ]


def strip_request(text: str) -> str:
    """`text` without "I'm looking for", "a shop that offers both" and the like."""
    previous = None
    while previous != text:
        previous = text
        text = text.strip()
        for pattern in (_LEAD, _SHOP_LEAD, _PRODUCT_LEAD):
            text = pattern.sub("", text, count=1)
    return text


def _by_sentence(text: str) -> list[str]:
    items: list[str] = []
    for sentence in re.split(rf"{_SENTENCE.pattern}|,\s+while\s+(?=the\b)", text):
        if _SHARED.match(sentence) and items:
            items = [f"{item}, {_SHARED.sub('', sentence)}" for item in items]
        elif items and (_TRAILER.match(sentence) or _is_pointer(sentence)):
            continue
        elif items and _ONE_OF.match(sentence):
            items.append(sentence)
        elif items and re.match(r"(?:the|it|they|this|its)\b", sentence, re.IGNORECASE):
            items[_referred(items, sentence.split(" should ")[0])] += f", {sentence}"
        elif about := _ABOUT_NEW.match(sentence):
            items.append(f"{about[1]}, {sentence[about.end() :]}")
        elif items and (about := _ABOUT.match(sentence)):
            items[_referred(items, about[1])] += f", {sentence[about.end() :]}"
        else:
            items.extend(_sentence_items(strip_request(_WISH.sub("", sentence, count=1))))
    items = [item for item in items if _says_something(item)]
    # "Products for all ages. I need a ...": the first sentence spoke of all of them.
    return items[1:] if len(items) > 2 and _KINDS.match(items[0]) else items


def _sentence_items(sentence: str) -> list[str]:
    sentence = re.sub(r"(?::|,?\s+where)\s+(?=one\b)", ", ", sentence)
    if ";" in sentence:
        return [
            strip_request(part).strip(" .,:?") for part in re.split(r";\s*(?:and\s+)?", sentence)
        ]
    items: list[str] = []
    for clause in _CLAUSE.split(sentence):
        if items and _GOES_ON.match(clause):
            items[-1] += f", {clause}"
        else:
            items.extend(part for part in _list(strip_request(clause)) if part)
    return items


def _referred(items: list[str], subject: str) -> int:
    """Which item a sentence such as "The fan should be blue" speaks of."""
    words = {w for w in re.findall(r"\w+", subject.lower()) if len(w) > 3}
    shared = [len(words & set(re.findall(r"\w+", item.lower()))) for item in items]
    best = max(shared)
    return shared.index(best) if best else len(items) - 1


def _list(clause: str) -> list[str]:
    """Split "a red cup, two forks with a case, and plates" into its things."""
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(match[0])
        kind = "q" if match[0].startswith("'") else "n"
        return f"⟦{kind}{len(held) - 1}⟧"

    def restore(text: str) -> str:
        # What is held was taken in two rounds, so a later part may hold an earlier one.
        for _ in range(2):
            text = re.sub(r"⟦[qn](\d+)⟧", lambda m: held[int(m[1])], text)
        return text

    plain = clause.replace("⟦", "[").replace("⟧", "]")
    masked = re.sub(r"\([^)]*\)|'[^']{3,80}'", hold, _PRICE.sub(hold, plain))
    pieces: list[tuple[str, str]] = []
    position, glue = 0, ""
    for match in [*_COMMA.finditer(masked), None]:
        piece = masked[position : match.start()] if match else masked[position:]
        if piece:
            pieces.append((glue, piece))
        if match:
            glue, position = match[0], match.end()
    return [strip_request(restore(item)).strip(" .,:?") for item in _join(pieces)]


def _join(pieces: list[tuple[str, str]]) -> list[str]:
    """Join what lies between commas into things; a closing ", and" thing makes it a list."""
    items: list[str] = []
    last_glue, last_piece = pieces[-1] if pieces else ("", "")
    listing = "and" in last_glue and _starts_item(last_piece, "", last_glue, listing=False)
    for glue, piece in pieces:
        if not items or _starts_item(piece, items[-1], glue, listing=listing or len(items) > 1):
            items.append(piece)
        else:
            items[-1] += glue + piece
    return items


def _starts_item(piece: str, before: str, glue: str, *, listing: bool) -> bool:
    """Whether `piece`, after `before` and the comma or "and" between, names a new thing."""
    piece = piece.strip()
    if _LEAD.match(piece) and len(piece.split()) > 3:
        return True
    if _ONE_OF.match(piece):
        return True
    if _GOES_ON.match(piece) and not piece.startswith("⟦"):
        return False
    head = _STOP_AT.split(piece, maxsplit=1)[0].strip(" .,").lower().split()
    article = bool(_ARTICLE.match(piece))
    if not head:
        return piece.startswith("⟦q") and (listing or "and" in glue)
    if article and _MADE.search(piece):
        return True
    if head[-1] in ATTRIBUTE_NOUNS or (head[-1] in AMBIGUOUS_NOUNS and not article):
        return False
    if article:
        return True
    described = len(head) < len(piece.strip(" .").split())
    after_price = before.rstrip().lower().endswith(("php", "pesos", "peso", "⟧"))
    plural = head[-1].endswith("s") and not head[-1].endswith("ss") and len(head[-1]) > 3
    if glue.strip() == "and":
        # "black and white cups" is one thing, "cups and red plates with a rim" are two;
        # "Bath and Body" is a name.
        if before[-40:].split()[-1:] and before.split()[-1][0].isupper() and piece[0].isupper():
            return False
        return len(before.split()) > 1 and (plural or after_price) and len(head) > 1
    if len(head) == 1:
        return "and" in glue and listing and described
    return plural or (described and (after_price or listing or "and" in glue))
