"""A deterministic offline world of products, at any size, streaming.

Products come in families: one specification and near-copies of it that each break
something a buyer may ask for (price, service, option, attribute), in shops that each
carry several kinds of goods. Every product is computed from the seed and its number
alone; ids and the order of lines are keyed permutations, so that neither tells which
product is whose copy. Writes the one file it is asked for.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import IO, cast

from sandbox.catalog.filters import SERVICES
from sandbox.catalog.permutation import Permutation
from sandbox.catalog.wares import (
    AUDIENCE,
    BRANDS,
    EMOJI,
    HOSTILE,
    HYPE,
    KINDS,
    SCRIPTS,
    Kind,
)
from sandbox.exceptions import CatalogError
from scoring.types import Json, JsonObject

FAMILY = 6
"""Products of one specification: near-copies of each other."""

PER_SHOP = 16
"""Products a shop has on average."""

KINDS_OF_A_SHOP = (0, 3, 7, 12, 19)
"""A shop numbered n carries the kinds (n + each) mod the number of kinds."""

BREAKS = ("nothing", "price", "service", "option", "attribute", "price and option")
"""What a member of a family changes, one each, in an order the family shuffles."""

_FIRST_ID, _IDS = 1_000_000_000, 9_000_000_000
_FIRST_SHOP, _SHOPS = 100_000, 9_900_000


class World:
    """The world of one seed. `document(i)` is line i of its file."""

    def __init__(self, products: int, seed: int) -> None:
        self.products = products
        self.shops = min(max(2, products // PER_SHOP), _SHOPS)
        self._seed = seed
        self._order = Permutation(products, f"{seed} order")
        self._ids = Permutation(_IDS, f"{seed} product ids")
        self._shop_ids = Permutation(_SHOPS, f"{seed} shop ids")

    def __iter__(self) -> Iterator[JsonObject]:
        return (self.document(line) for line in range(self.products))

    def document(self, line: int) -> JsonObject:
        """Catalogue line number `line`, from 0."""
        number = self._order[line]
        family, member = divmod(number, FAMILY)
        of_family, of_member = self._random("family", family), self._random("member", number)
        kind_number = family % len(KINDS)  # a small world has all kinds, too
        kind = KINDS[kind_number]
        goods = _Goods(kind, of_family)
        order = of_family.sample(BREAKS, len(BREAKS))
        goods.change(order[member], of_member)
        product_id = str(_FIRST_ID + self._ids[number])
        shop_id = str(_FIRST_SHOP + self._shop_ids[self._shop(kind_number, of_member)])
        return goods.document(product_id, shop_id, of_member)

    def _random(self, what: str, number: int) -> Random:
        return Random(f"{self._seed} {what} {number}")  # noqa: S311 - no secret

    def _shop(self, kind_number: int, random: Random) -> int:
        """A shop that carries the kind; a few shops are much larger than the rest."""
        offset = random.choice(KINDS_OF_A_SHOP)
        first = (kind_number - offset) % len(KINDS)
        rows = max(1, (self.shops - first + len(KINDS) - 1) // len(KINDS))
        row = int(rows * random.random() ** 2)
        return (first + row * len(KINDS)) % self.shops


class _Goods:
    """One product in the making: the family's specification, then a member's change."""

    def __init__(self, kind: Kind, random: Random) -> None:
        self.kind = kind
        self.brand = random.choice(BRANDS)
        self.traits = random.sample(kind.traits, 2)
        self.noun = random.choice(kind.nouns)
        self.model = f"{random.choice('ABDEKLMRSTVX')}{random.randrange(10, 999)}"
        low, high = kind.price
        self.price = round(low * (high / low) ** random.random(), 2)
        self.services = [s for s in SERVICES if random.random() < 0.5]
        self.attributes = {
            key: [random.choice(values)]
            for key, values in kind.attributes.items()
            if random.random() < 0.85
        }
        if random.random() < 0.4:
            self.attributes["brand"] = [self.brand.lower()]
        self.options = self._options(random, random.choice((0, 1, 1, 2, 3, 5)))

    def _options(self, random: Random, count: int) -> list[dict[str, str]]:
        """At most `count` options, none twice."""
        drawn = [
            {key: random.choice(values) for key, values in self.kind.options.items()}
            for _ in range(count)
        ]
        return [option for i, option in enumerate(drawn) if option not in drawn[:i]]

    def change(self, what: str, random: Random) -> None:
        """Break what this member of the family breaks."""
        if "price" in what:
            factor = random.choice((0.35, 0.6, 1.6, 2.4, 4.0))
            self.price = round(self.price * factor, 2)
        else:
            self.price = round(self.price * random.uniform(0.97, 1.03), 2)
        if "option" in what and self.options:
            others = self._options(random, len(self.options) + 1)
            self.options = [option for option in others if option not in self.options]
        if what == "service":
            self.services = [s for s in self.services if random.random() < 0.5][:1]
        if what == "attribute" and self.attributes:
            key = random.choice([k for k in self.attributes if k != "brand"] or ["brand"])
            values = [v.lower() for v in self.kind.attributes.get(key, BRANDS)]
            self.attributes[key] = [
                random.choice([v for v in values if v not in self.attributes[key]])
            ]

    def title(self, random: Random) -> str:
        """Words in a seller's manner; sometimes other scripts, emoji, hostile text."""
        words = [self.brand, *self.traits, self.noun, self.model]
        if random.random() < 0.7:
            words.append(random.choice(AUDIENCE))
        if random.random() < 0.5:
            words.insert(random.randrange(len(words)), random.choice(HYPE))
        if random.random() < 0.15:
            words.append(random.choice(SCRIPTS))
        if random.random() < 0.15:
            words.insert(random.randrange(len(words) + 1), random.choice(EMOJI))
        if random.random() < 0.02:
            words.append(random.choice(HOSTILE))
        return " ".join(words)

    def document(self, product_id: str, shop_id: str, random: Random) -> JsonObject:
        """The catalogue line, in the public form."""
        title = self.title(random)
        random.shuffle(self.services)
        facts = [(k, v) for k, values in self.attributes.items() for v in values]
        short = "; ".join(f"{key.replace('_', ' ')}: {value}" for key, value in facts)
        options = {str(number): option for number, option in enumerate(self.options, 1)}
        values = dict.fromkeys(v for option in self.options for v in option.values())
        product: JsonObject = {
            "product_id": product_id,
            "shop_id": shop_id,
            "title": title,
            "price": self.price,
            "service": cast("list[Json]", self.services),
            "sold_count": int(random.paretovariate(0.8)) - 1 if random.random() < 0.6 else 0,
            "short_description": short,
            "description": f"{title}. {short}",
            "sku_options": cast("JsonObject", options),
            "attributes": cast("JsonObject", self.attributes),
        }
        indexed = (title, " ".join(values), " ".join(dict.fromkeys(v for _, v in facts)))
        return {"id": product_id, "contents": "\n".join(indexed), "product": product}


def write_world(
    products: int, seed: int, out: Path, on_product: Callable[[int], None] | None = None
) -> str:
    """Write a world to a `.jsonl` or `.jsonl.gz` file, whole or not at all.

    Returns the SHA-256 of the lines before compression. The same arguments give the
    same bytes. Raises CatalogError when the file cannot be written.
    """
    if not out.name.endswith((".jsonl", ".jsonl.gz")):
        raise CatalogError(f"{out} must end in .jsonl or .jsonl.gz", code="catalog.bad_output")
    digest = hashlib.sha256()
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{out.name}.", dir=out.parent)
        fresh = Path(name)
        try:
            with ExitStack() as stack:
                raw = stack.enter_context(os.fdopen(handle, "wb"))
                file: IO[bytes] = raw
                if out.suffix == ".gz":
                    packed = gzip.GzipFile("", "wb", 6, raw, mtime=0)
                    file = cast("IO[bytes]", stack.enter_context(packed))
                for count, document in enumerate(World(products, seed), 1):
                    line = json.dumps(document, ensure_ascii=False).encode() + b"\n"
                    digest.update(line)
                    file.write(line)
                    if on_product and count % 1000 == 0:
                        on_product(count)
            fresh.chmod(0o644)
            fresh.rename(out)
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        raise CatalogError(f"{out}: {error.strerror}", code="catalog.bad_output") from error
    return digest.hexdigest()
