"""Variants of problems as a careless bank would let them in, planted to be found again.

Made without the detector: the words, units and turns of phrase below are this module's
own, and none of the detector's tables is read. A variant keeps what a leak keeps: whoever
knows the answer to the one knows, or nearly knows, that to the other.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from scoring.types import Bucket, PriceBand, Problem, Reward, Voucher

# fmt: off
SYNONYMS: Mapping[str, str] = {
    "sneakers": "trainers", "pants": "trousers", "sofa": "settee", "bag": "pouch",
    "backpack": "rucksack", "wallet": "billfold", "cap": "hat", "shirt": "top",
    "t-shirt": "tee", "dress": "gown", "jacket": "coat", "sandals": "slides",
    "slippers": "house shoes", "necklace": "pendant chain", "earphones": "earbuds",
    "headset": "headphones", "speaker": "soundbox", "charger": "power adapter",
    "cable": "cord", "lamp": "light", "flashlight": "torch", "fan": "ventilator",
    "blender": "mixer", "pot": "saucepan", "pan": "skillet", "knife": "blade",
    "tumbler": "flask", "bottle": "canteen", "curtain": "drape", "carpet": "rug",
    "comforter": "duvet", "pillow": "cushion", "serum": "essence", "lipstick": "lip color",
    "shampoo": "hair wash", "toy": "plaything", "diaper": "nappy", "drill": "boring tool",
    "notebook": "notepad", "planner": "organizer", "coffee": "java", "candy": "sweets",
    "cookies": "biscuits", "motorcycle": "motorbike", "car": "automobile", "bicycle": "bike",
    "phone": "cellphone", "holder": "stand", "case": "cover", "sticker": "decal",
    "waterproof": "water-resistant", "foldable": "collapsible", "portable": "handy",
    "lightweight": "feather-light", "wireless": "cordless", "silent": "noiseless",
    "quiet": "noiseless", "thick": "chunky", "soft": "plush", "cute": "adorable",
    "elegant": "graceful", "vintage": "retro", "modern": "contemporary",
    "oversized": "extra-loose", "breathable": "airy", "durable": "sturdy",
    "rechargeable": "battery-powered", "automatic": "self-acting", "plain": "unpatterned",
    "striped": "stripy", "printed": "patterned", "floral": "flowery", "grey": "gray",
    "gray": "grey", "red": "crimson", "beige": "sand", "brown": "chocolate", "pink": "rose",
    "purple": "violet", "navy blue": "dark blue", "black": "jet black", "white": "ivory",
    "men": "gents", "women": "ladies", "kids": "children", "baby": "infant",
    "leather": "hide", "cotton": "cotton cloth", "stainless steel": "inox",
    "aluminum": "aluminium", "wooden": "timber", "wood": "timber", "plastic": "polymer",
    "large": "big", "small": "little", "mini": "tiny", "long": "lengthy",
}
_OTHER_BRANDS = ("Kestrelle", "Omnivo", "Batangan", "Luzviva", "Tindahan", "Quorra", "Zenfola")
_NOISE = ("Lowest Price", "Sulit Deal", "Ships Today", "PH Stock", "Trusted Seller", "Legit",
          "On Promo", "Restocked", "Bestselling", "Mall Quality")
_OPENERS = ("Could you track down", "I'm in the market for", "Help me pick out", "Any chance of",
            "I'd love to get hold of", "Please recommend", "My friend asked me for",
            "Time to replace mine, so point me to")
_CLOSERS = ("Thanks!", "That would be great.", "It's a present.", "Hoping to order this week.",
            "Nothing else will do.", "")
_LEAD = re.compile(
    r"^(?:looking for|i'm looking for|i am looking for|show me|find(?: me)?|i need|i want"
    r"|can you (?:show|find) me|are there|do you have|searching for)\s+", re.IGNORECASE)
_BRANDED = re.compile(r"\b(?:from|by) the brand [\w'&-]+(?: [\w'&-]+)?", re.IGNORECASE)
_UNITS: tuple[tuple[str, float, str], ...] = (
    ("kg", 1000, " grams"), ("kilo", 1000, " g"), ("kilos", 1000, "g"), ("g", 0.001, " kg"),
    ("grams", 0.001, "kg"), ("ml", 0.001, " litres"), ("l", 1000, " ml"), ("liter", 1000, "ml"),
    ("liters", 1000, "ml"), ("litre", 1000, "ml"), ("cm", 10, " mm"), ("mm", 0.1, " cm"),
    ("inch", 2.54, " cm"), ("inches", 2.54, "cm"), ("feet", 30.48, " cm"), ("ft", 30.48, "cm"),
    ("meters", 100, " cm"), ("meter", 100, " cm"), ("pcs", 1, " pieces"), ("pc", 1, " piece"),
    ("hours", 60, " minutes"), ("kw", 1000, " W"), ("gb", 1024, "MB"), ("tb", 1024, " GB"),
    ("years", 12, " months"), ("year", 12, " months"), ("w", 0.001, " kW"),
)
_NUMBER = r"\d+(?:\.\d+)?"
_MEASURE = re.compile(
    r"(?<![\w.])((?:\d+(?:\.\d+)?[-x/])*\d+(?:\.\d+)?) ?(" + "|".join(u for u, _, _ in sorted(
        _UNITS, key=lambda row: -len(row[0]))) + r")(?!\w)", re.IGNORECASE)
# fmt: on

Make = Callable[[Problem, random.Random], Problem | None]


def relisted(problem: Problem, rng: random.Random) -> Problem:
    """The same with product ids that nobody saw, as when another shop lists the goods.

    Hides the plainest link, so that the other rules show what they find alone.
    """
    rewards = [replace(r, product_id=str(rng.randrange(10**11, 10**12))) for r in problem.rewards]
    return _named(replace(problem, rewards=tuple(rewards)), rng)


def paraphrase(problem: Problem, rng: random.Random) -> Problem | None:
    """Another opening and ending, the clauses in another order; the reward stays."""
    return _named(replace(problem, query=_retold(problem.query, rng)), rng)


def reordered(problem: Problem, rng: random.Random) -> Problem | None:
    """The same constraints and wishes in another order, keys and values alike."""
    rewards = [_shuffled(reward, rng) for reward in problem.rewards]
    if len(rewards) > 1:
        rng.shuffle(rewards)
    elif not problem.rewards[0].attributes and not problem.rewards[0].sku_options:
        return None
    head, tail = _parts(problem.query)
    query = _clauses(head, rng) + tail
    return _named(replace(problem, rewards=tuple(rewards), query=query), rng)


def shop_swap(problem: Problem, rng: random.Random) -> Problem | None:
    """Another shop's listing of the same goods: ids, brand and title in its seller's manner."""
    brand = rng.choice(_OTHER_BRANDS)
    query = _BRANDED.sub(f"by the brand {brand.lower()}", problem.query)
    rewards = []
    for reward in problem.rewards:
        old = {v for e in reward.attributes for k, vs in e.items() if k == "brand" for v in vs}
        titles = tuple(_relabelled(title, old, brand, rng) for title in reward.title)
        attributes = tuple(
            {k: (brand.lower(),) if k == "brand" else v for k, v in entry.items()}
            for entry in reward.attributes
        )
        rewards.append(replace(reward, title=titles, attributes=attributes))
        for name in old:
            query = re.sub(rf"\b{re.escape(name)}\b", brand, query, flags=re.IGNORECASE)
    return relisted(replace(problem, query=query, rewards=tuple(rewards)), rng)


def unit_change(problem: Problem, rng: random.Random) -> Problem | None:
    """Every quantity in another unit: 1.5kg for 1500 grams; None without a quantity."""
    return _rewritten(problem, lambda text: _MEASURE.sub(_converted, text), rng)


def synonym(problem: Problem, rng: random.Random) -> Problem | None:
    """Up to a third of the words that have a synonym replaced by it, at least one."""
    text = " ".join([problem.query, *_texts(problem)]).casefold()
    known = [word for word in SYNONYMS if re.search(rf"\b{re.escape(word)}\b", text)]
    if not known:
        return None
    for word in rng.sample(known, max(1, len(known) // 3)):
        pattern, other = re.compile(rf"\b{re.escape(word)}\b", re.IGNORECASE), SYNONYMS[word]

        def swap(text: str, p: re.Pattern[str] = pattern, o: str = other) -> str:
            return p.sub(o, text)

        problem = _rewritten(problem, swap, rng) or problem
    return problem


def bucket_change(problem: Problem, rng: random.Random) -> Problem | None:
    """One of its products asked for in another bucket, with another price and other words."""
    reward = rng.choice(problem.rewards)
    reward = replace(reward, price=(PriceBand(float(rng.randint(1, 50)), None),))
    stated = [v for option in reward.sku_options for v in option.values()]
    stated += [v for entry in reward.attributes for vs in entry.values() for v in vs]
    rng.shuffle(stated)
    words = " ".join([*stated, *reward.title[0].split()[:7]])
    query = f"{rng.choice(_OPENERS)} {words}, {reward.price[0].low:.0f} pesos or more."
    if problem.bucket is not Bucket.PRODUCT:
        return _named(Problem("", query, Bucket.PRODUCT, (reward,)), rng)
    voucher = Voucher("platform", 10.0, "fixed", budget=9000.0, face_value=5.0)
    told = " My budget is only `9000`. A voucher takes `5` off a total above `10`."
    return _named(Problem("", query + told, Bucket.VOUCHER, (reward,), voucher), rng)


KINDS: Mapping[str, Make] = {
    "paraphrase": paraphrase,
    "attribute order": reordered,
    "shop swap": shop_swap,
    "unit change": unit_change,
    "synonym": synonym,
    "bucket change": bucket_change,
}


def _named(problem: Problem, rng: random.Random) -> Problem:
    return replace(problem, problem_id=f"variant-{rng.getrandbits(64):016x}", cluster=None)


def _parts(query: str) -> tuple[str, str]:
    """What is asked for, and the rules of the voucher behind it."""
    head, mark, tail = query.partition("\n\n")
    return head, mark + tail


def _clauses(text: str, rng: random.Random) -> str:
    """The clauses of each sentence after its first one, shuffled."""
    sentences = []
    for sentence in re.split(r"(?<=[.?!]) ", text):
        first, *others = re.split(r",\s+(?:and )?", sentence.rstrip(".?!"))
        rng.shuffle(others)
        sentences.append(", ".join([first, *others]))
    return ". ".join(sentences) + "."


def _retold(query: str, rng: random.Random) -> str:
    head, tail = _parts(query)
    body = _LEAD.sub("", _clauses(head, rng))
    return f"{rng.choice(_OPENERS)} {body} {rng.choice(_CLOSERS)}".strip() + tail


def _shuffled(reward: Reward, rng: random.Random) -> Reward:
    options = [dict(rng.sample(list(o.items()), len(o))) for o in reward.sku_options]
    attributes = rng.sample(reward.attributes, len(reward.attributes))
    services = rng.sample(reward.service, len(reward.service))
    return replace(
        reward,
        sku_options=tuple(options),
        attributes=tuple(attributes),
        service=tuple(services),
    )


def _relabelled(title: str, old: set[str], brand: str, rng: random.Random) -> str:
    """A title with another brand in front, sellers' noise, and one word in seven dropped."""
    words = [word for word in title.split() if word.casefold() not in old]
    for _ in range(len(words) // 7):
        words.pop(rng.randrange(len(words)))
    if len(words) > 3:  # some sellers put the last words first
        cut = rng.randrange(len(words) - 1)
        words = words[cut:] + words[:cut]
    return " ".join([brand, *words, rng.choice(_NOISE)])


def _converted(match: re.Match[str]) -> str:
    """`1-3 years` → `12-36 months`: every number before the unit is converted."""
    amounts, unit = match.groups()
    _, factor, other = next(row for row in _UNITS if row[0] == unit.casefold())
    return re.sub(_NUMBER, lambda m: f"{float(m[0]) * factor:.6g}", amounts) + other


def _texts(problem: Problem) -> Sequence[str]:
    return [text for reward in problem.rewards for text in _reward_texts(reward)]


def _reward_texts(reward: Reward) -> Sequence[str]:
    options = [v for option in reward.sku_options for v in option.values()]
    values = [v for entry in reward.attributes for vs in entry.values() for v in vs]
    return [*reward.title, *options, *values]


def _rewritten(
    problem: Problem, change: Callable[[str], str], rng: random.Random
) -> Problem | None:
    """The problem with a change made to query, titles and values; None when it changes none."""
    head, tail = _parts(problem.query)
    rewards = tuple(
        replace(
            reward,
            title=tuple(map(change, reward.title)),
            sku_options=tuple({k: change(v) for k, v in o.items()} for o in reward.sku_options),
            attributes=tuple(
                {k: tuple(map(change, vs)) for k, vs in e.items()} for e in reward.attributes
            ),
        )
        for reward in problem.rewards
    )
    if change(head) == head and rewards == problem.rewards:
        return None
    return _named(replace(problem, query=change(head) + tail, rewards=rewards), rng)
