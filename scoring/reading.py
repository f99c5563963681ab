"""Reading of products, problems and vouchers from the public ShoppingBench JSON.

Every function takes any JSON value and either returns a typed object or raises
ProblemError naming the field. The caller knows the file and the line and adds them.
Part of scoring: no I/O.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

from scoring.exceptions import ProblemError
from scoring.types import Bucket, Json, JsonObject, PriceBand, Problem, Product, Reward, Voucher

# Codes of ProblemError. Stable: files and pages show them.
MISSING_FIELD = "problem.missing_field"
BAD_FIELD = "problem.bad_field"
UNKNOWN_BUCKET = "problem.unknown_bucket"
VOUCHER_INCOMPLETE = "problem.voucher_incomplete"

_VOUCHER_TYPES = ("platform", "shop")
_DISCOUNT_TYPES = ("fixed", "percentage")
_BAND_SIDES = {"between": (True, True), "greater than": (True, False), "less than": (False, True)}
MAX_ID_LENGTH = 128
_SHOWN = 60


def read_product(value: object, field: str = "product") -> Product:
    """Read the `product` object of a catalogue line.

    `price` is in pesos and must be finite and not negative. Absent lists and mappings
    are empty; SKU and attribute values that are not text become their JSON text.
    """
    item = _object(value, field)
    price = _number(_need(item, "price", field), f"{field}.price")
    if price < 0:
        raise _bad(f"{field}.price", "a number of pesos, not below 0", price)
    sold = item.get("sold_count")
    return Product(
        product_id=_id(item, "product_id", field),
        shop_id=_id(item, "shop_id", field),
        title=_text(_need(item, "title", field), f"{field}.title"),
        price=price,
        service=tuple(_texts(item.get("service"), f"{field}.service")),
        sold_count=0 if sold is None else int(_number(sold, f"{field}.sold_count")),
        short_description=_text(item.get("short_description") or "", f"{field}.short_description"),
        description=_text(item.get("description") or "", f"{field}.description"),
        sku_options={
            name: _scalars(option, f"{field}.sku_options.{name}")
            for name, option in _mapping(item.get("sku_options"), f"{field}.sku_options").items()
        },
        attributes={
            key: _scalar_list(values, f"{field}.attributes.{key}")
            for key, values in _mapping(item.get("attributes"), f"{field}.attributes").items()
        },
    )


def read_problem(value: object, *, problem_id: str | None = None) -> Problem:
    """Read one line of a ShoppingBench file or one item of an SN15 suite.

    `problem_id` stands in when the object has none. The bucket is `category` or
    `bucket` where given, else: a voucher → voucher, a list of rewards → shop, one
    reward → product.
    """
    item = _object(value, "problem")
    query = _text(_need(item, "query", "problem"), "query")
    if not query.strip():
        raise _bad("query", "text that is not empty", query)
    given = item.get("problem_id")
    identity = problem_id if given is None else _id(item, "problem_id", "problem")
    if identity is None:
        raise ProblemError("problem_id is missing", code=MISSING_FIELD)
    if len(identity) > MAX_ID_LENGTH or not all(map(str.isprintable, identity)):
        raise _bad("problem_id", f"at most {MAX_ID_LENGTH} printable characters", identity)
    bucket = bucket_of(item)
    return Problem(
        problem_id=identity,
        query=query,
        bucket=bucket,
        rewards=_rewards(_need(item, "reward", "problem"), bucket),
        voucher=read_voucher(item.get("voucher")) if bucket is Bucket.VOUCHER else None,
        difficulty=_optional_text(item.get("difficulty"), "difficulty"),
        title_embeddings={
            title: _vector(vector, f"reward_title_embeddings[{_shown(title)}]")
            for title, vector in _mapping(
                item.get("reward_title_embeddings"), "reward_title_embeddings"
            ).items()
        },
        pool=_optional_text(item.get("pool"), "pool"),
        cluster=_optional_text(item.get("cluster"), "cluster"),
    )


def bucket_of(item: JsonObject) -> Bucket:
    """The bucket that a problem names, or the one that its shape implies.

    Raises ProblemError for a name that is none of the three, or one that contradicts
    the shape (a Product with a list of rewards, a Voucher without a voucher).
    """
    voucher, reward = item.get("voucher"), item.get("reward")
    shape = Bucket.PRODUCT
    if voucher is not None:
        shape = Bucket.VOUCHER
    elif isinstance(reward, list):
        shape = Bucket.SHOP
    for field in ("category", "bucket"):
        name = item.get(field)
        if name is None:
            continue
        try:
            named = Bucket(_text(name, field).lower())
        except ValueError:
            raise ProblemError(
                f"{field} {_shown(name)} is none of Product, Shop, Voucher", code=UNKNOWN_BUCKET
            ) from None
        if named is Bucket.VOUCHER and voucher is None:
            raise ProblemError("voucher is missing", code=VOUCHER_INCOMPLETE)
        if named is not shape:
            raise ProblemError(
                f"{field} says {named.category}, but the problem has the shape of {shape.category}",
                code=UNKNOWN_BUCKET,
            )
    return shape


def read_voucher(value: object) -> Voucher:
    """Read a voucher: its numbers must be there for its type of discount.

    `fixed` needs `face_value`; `percentage` needs `discount` (a fraction) and `cap`.
    """
    item = _object(value, "voucher")
    kind = _one_of(item, "voucher_type", _VOUCHER_TYPES)
    discount_type = _one_of(item, "discount_type", _DISCOUNT_TYPES)
    needed = ["threshold", "budget"]
    needed += ["face_value"] if discount_type == "fixed" else ["discount", "cap"]
    for name in needed:
        if item.get(name) is None:
            raise ProblemError(
                f"voucher.{name} is missing in a voucher of type {discount_type}",
                code=VOUCHER_INCOMPLETE,
            )
    numbers = {name: _amount(item, name) for name in _VOUCHER_NUMBERS}
    fraction = numbers["discount"]
    if fraction is not None and fraction > 1:
        raise _bad("voucher.discount", "a fraction between 0 and 1", fraction)
    return Voucher(
        voucher_type=kind,
        discount_type=discount_type,
        threshold=cast("float", numbers["threshold"]),
        budget=cast("float", numbers["budget"]),
        face_value=numbers["face_value"],
        discount=fraction,
        cap=numbers["cap"],
        price_after_voucher=numbers["price_after_voucher"],
    )


_VOUCHER_NUMBERS = ("threshold", "budget", "face_value", "discount", "cap", "price_after_voucher")


def read_reward(value: object, field: str = "reward") -> Reward:
    """Read one reward item: the answer's id and the constraints that a product must meet."""
    item = _object(value, field)
    return Reward(
        product_id=_id(item, "product_id", field),
        title=tuple(_texts(item.get("title"), f"{field}.title")),
        price=tuple(
            band
            for i, entry in enumerate(_list(item.get("price"), f"{field}.price"))
            for band in _bands(entry, f"{field}.price[{i}]")
        ),
        service=tuple(_texts(item.get("service"), f"{field}.service")),
        sku_options=tuple(
            _scalars(entry, f"{field}.sku_options[{i}]")
            for i, entry in enumerate(_list(item.get("sku_options"), f"{field}.sku_options"))
        ),
        attributes=tuple(
            {
                key: _scalar_list(values, f"{field}.attributes[{i}].{key}")
                for key, values in _object(entry, f"{field}.attributes[{i}]").items()
            }
            for i, entry in enumerate(_list(item.get("attributes"), f"{field}.attributes"))
        ),
    )


def _rewards(value: Json, bucket: Bucket) -> tuple[Reward, ...]:
    if bucket is Bucket.PRODUCT or (bucket is Bucket.VOUCHER and isinstance(value, dict)):
        return (read_reward(value),)
    items = _list(value, "reward")
    if not items:
        raise _bad("reward", "at least one item", value)
    return tuple(read_reward(item, f"reward[{i}]") for i, item in enumerate(items))


def _bands(value: Json, field: str) -> list[PriceBand]:
    return [_band(name, bounds, field) for name, bounds in _object(value, field).items()]


def _band(name: str, bounds: Json, field: str) -> PriceBand:
    field = f"{field}.{_shown(name)}"
    if name not in _BAND_SIDES:
        raise _bad(field, "one of between, greater than, less than", name)
    pair = _list(bounds, field)
    if len(pair) != 2:
        raise _bad(field, "a pair of numbers", bounds)
    # Upstream looks only at the bound that the name speaks of.
    low, high = (
        _number(bound, field) if stated else None
        for bound, stated in zip(pair, _BAND_SIDES[name], strict=True)
    )
    return PriceBand(low, high)


def _object(value: object, field: str) -> JsonObject:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise _bad(field, "a JSON object", value)
    return value


def _mapping(value: Json, field: str) -> JsonObject:
    return {} if value is None else _object(value, field)


def _list(value: Json, field: str) -> list[Json]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _bad(field, "a list", value)
    return value


def _need(item: JsonObject, name: str, field: str) -> Json:
    value = item.get(name)
    if value is None:
        raise ProblemError(f"{field}.{name} is missing", code=MISSING_FIELD)
    return value


def _id(item: JsonObject, name: str, field: str) -> str:
    value = _need(item, name, field)
    # Some exports write ids as numbers; the text is the same.
    text = str(value) if _is_small_int(value) else value
    if not isinstance(text, str) or not text.strip() or text != text.strip() or "," in text:
        raise _bad(f"{field}.{name}", "an id", value)
    return text


def _text(value: Json, field: str) -> str:
    if not isinstance(value, str):
        raise _bad(field, "text", value)
    return value


def _optional_text(value: Json, field: str) -> str | None:
    return None if value is None else _text(value, field)


def _texts(value: Json, field: str) -> list[str]:
    return [_text(item, f"{field}[{i}]") for i, item in enumerate(_list(value, field))]


def _scalars(value: Json, field: str) -> Mapping[str, str]:
    return {key: _scalar(item, f"{field}.{key}") for key, item in _object(value, field).items()}


def _scalar_list(value: Json, field: str) -> tuple[str, ...]:
    items: Sequence[Json] = value if isinstance(value, list) else [value]
    return tuple(_scalar(item, f"{field}[{i}]") for i, item in enumerate(items))


def _scalar(value: Json, field: str) -> str:
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, list | dict):
        raise _bad(field, "text", value)
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if _is_small_int(value) else f"{_number(value, field):.15g}"


def _is_small_int(value: Json) -> bool:
    # Python refuses to write integers of thousands of digits.
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18


def _number(value: Json, field: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _bad(field, "a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _bad(field, "a finite number", value)
    return number


def _amount(voucher: JsonObject, name: str) -> float | None:
    value = voucher.get(name)
    if value is None:
        return None
    number = _number(value, f"voucher.{name}")
    if number < 0:
        raise _bad(f"voucher.{name}", "a number, not below 0", number)
    return number


def _one_of(voucher: JsonObject, name: str, known: tuple[str, ...]) -> str:
    value = voucher.get(name)
    if value is None:
        raise ProblemError(f"voucher.{name} is missing", code=VOUCHER_INCOMPLETE)
    if not isinstance(value, str) or value not in known:
        raise _bad(f"voucher.{name}", f"one of {', '.join(known)}", value)
    return value


def _vector(value: Json, field: str) -> tuple[float, ...]:
    return tuple(_number(item, field) for item in _list(value, field))


def _shown(value: object) -> str:
    """A bounded piece of the value, for a message."""
    text = value if isinstance(value, str) else type(value).__name__
    if isinstance(value, float):
        text = repr(value)
    return text[:_SHOWN] + ("…" if len(text) > _SHOWN else "")


def _bad(field: str, expected: str, value: object) -> ProblemError:
    return ProblemError(f"{field}: expected {expected}, got {_shown(value)!r}", code=BAD_FIELD)
