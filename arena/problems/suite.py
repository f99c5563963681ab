"""Suites of problems: read from disk, checked, written back.

Two shapes are read: JSON Lines (ShoppingBench, and what this project writes) and one
JSON array (the SN15 suites), each plain or gzip-compressed. Whatever is wrong is named
with its file and line (or item). Belongs to the problems room; touches files only.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, NoReturn, Protocol

from arena.problems.identity import LOCAL_KEY, problem_id_of
from sandbox.strict_json import check_text
from scoring.exceptions import ProblemError
from scoring.reading import read_problem
from scoring.types import Bucket, Json, JsonObject, PriceBand, Problem, Product, Reward, Voucher

# Codes of ProblemError for files. Stable.
UNREADABLE = "problem.unreadable_file"
BROKEN_JSON = "problem.broken_json"
DUPLICATE = "problem.duplicate"
EMPTY = "problem.empty_suite"
REVEALING_ID = "problem.id_reveals_answer"
UNKNOWN_PRODUCT = "problem.unknown_product"

_TELLING = 5
"""A product id of fewer characters turns up in any text by chance."""
MAX_FILE_BYTES = 1 << 30
"""A suite is read into memory; a compressed one that grows beyond this is refused."""
_LISTED = 5


@dataclass(frozen=True, slots=True)
class Suite:
    """Problems in the order of their file; ids are distinct."""

    name: str
    problems: tuple[Problem, ...]

    def counts(self) -> dict[Bucket, int]:
        """How many problems of each bucket."""
        found = Counter(problem.bucket for problem in self.problems)
        return {bucket: found[bucket] for bucket in Bucket}


class ProductSource(Protocol):
    """The part of a catalogue that `check_against` needs."""

    def products(self, product_ids: Iterable[str]) -> dict[str, Product]:
        """Those of the ids that exist."""
        ...


def load_suite(path: Path, *, key: bytes = LOCAL_KEY) -> Suite:
    """Read one suite file.

    `key` makes the ids of problems that have none. Raises ProblemError naming file and
    line: broken JSON, a field that is wrong or missing, an unknown bucket, a voucher
    without its numbers, a problem that stands twice, a file without problems.
    """
    problems: list[Problem] = []
    seen: dict[str, str] = {}
    for place, value in _items(path):
        try:
            problem = _problem(value, key)
        except ProblemError as error:
            raise ProblemError(f"{place}: {error.message}", code=error.code) from None
        first = seen.setdefault(problem.problem_id, place)
        if first != place:
            raise ProblemError(
                f"{place}: problem {problem.problem_id[:80]} stands already at {first}",
                code=DUPLICATE,
            )
        problems.append(problem)
    if not problems:
        raise ProblemError(f"{path}: holds no problem", code=EMPTY)
    return Suite(path.name.removesuffix(".gz").rpartition(".")[0] or path.name, tuple(problems))


def load_suites(paths: Sequence[Path], *, key: bytes = LOCAL_KEY) -> tuple[Problem, ...]:
    """Read several suites as one set of problems. A problem in two of them is an error."""
    seen: dict[str, Path] = {}
    problems: list[Problem] = []
    for path in paths:
        for problem in load_suite(path, key=key).problems:
            first = seen.setdefault(problem.problem_id, path)
            if first is not path:
                raise ProblemError(
                    f"{path}: problem {problem.problem_id[:80]} stands already in {first}",
                    code=DUPLICATE,
                )
            problems.append(problem)
    return tuple(problems)


def check_against(problems: Iterable[Problem], catalog: ProductSource) -> None:
    """Make sure that every reward names a product of the catalogue.

    Raises ProblemError naming the first few that it lacks; a race on such a suite would
    count a failure that no agent could avoid.
    """
    asked = list(problems)
    wanted = {r.product_id: None for p in asked for r in p.rewards}
    found = catalog.products(wanted)
    missing = [
        f"{reward.product_id} (problem {problem.problem_id})"
        for problem in asked
        for reward in problem.rewards
        if reward.product_id not in found
    ]
    if missing:
        more = f" and {len(missing) - _LISTED} more" if len(missing) > _LISTED else ""
        raise ProblemError(
            f"the catalogue lacks rewarded products: {', '.join(missing[:_LISTED])}{more}",
            code=UNKNOWN_PRODUCT,
            remedy="give the catalogue that the suite was made from",
        )


def write_suite(problems: Iterable[Problem], path: Path) -> int:
    """Write JSON Lines that `load_suite` reads back to the same problems; returns how many.

    The same problems give the same bytes, compressed (`.gz`) or not. Raises ProblemError
    when the file cannot be written.
    """
    try:
        return _write(problems, path)
    except OSError as error:
        raise ProblemError(
            f"{path}: cannot be written: {error.strerror}", code=UNREADABLE
        ) from None


def _write(problems: Iterable[Problem], path: Path) -> int:
    count = 0
    with ExitStack() as stack:
        file = stack.enter_context(path.open("wb"))
        # No file name and no time in the header of a compressed one.
        target: IO[bytes] | gzip.GzipFile = file
        if path.suffix == ".gz":
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
            stack.callback(packed.close)
            target = packed
        for problem in problems:
            line = json.dumps(problem_to_json(problem), ensure_ascii=False) + "\n"
            target.write(line.encode("utf-8"))
            count += 1
    return count


def problem_to_json(problem: Problem) -> JsonObject:
    """The ShoppingBench form of a problem, with `problem_id` and `category`.

    Holds the rewards: never hand it to an agent.
    """
    rewards: list[Json] = [_reward_to_json(reward) for reward in problem.rewards]
    value: JsonObject = {
        "problem_id": problem.problem_id,
        "category": problem.bucket.category,
        "query": problem.query,
        "reward": rewards[0] if problem.bucket is Bucket.PRODUCT else rewards,
    }
    if problem.voucher:
        value["voucher"] = _voucher_to_json(problem.voucher)
    for name in ("difficulty", "pool", "cluster"):
        if (text := getattr(problem, name)) is not None:
            value[name] = text
    if problem.title_embeddings:
        value["reward_title_embeddings"] = {
            title: list(vector) for title, vector in problem.title_embeddings.items()
        }
    return value


def _problem(value: Json, key: bytes) -> Problem:
    problem = read_problem(value, problem_id="")
    if not problem.problem_id:
        assert isinstance(value, dict)
        return replace(problem, problem_id=problem_id_of(value, key))
    for reward in problem.rewards:
        answer = reward.product_id
        shown = answer in problem.problem_id if len(answer) >= _TELLING else False
        if shown or answer == problem.problem_id:
            raise ProblemError("problem_id tells the answer's product_id", code=REVEALING_ID)
    return problem


def _items(path: Path) -> Iterator[tuple[str, Json]]:
    """Every problem's JSON with its place in the file."""
    text = _text(path)
    if text.lstrip()[:1] == "[":
        value = _parse(text, str(path))
        for i, item in enumerate(value if isinstance(value, list) else [value]):
            yield f"{path}, item {i + 1}", item
        return
    # Only these end a line: a text may hold U+2028 and the like unescaped.
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        if line.strip():
            place = f"{path}, line {number}"
            yield place, _parse(line, place)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if packed:
                with gzip.GzipFile(fileobj=raw) as file:
                    data = file.read(MAX_FILE_BYTES + 1)
            else:
                data = raw.read(MAX_FILE_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ProblemError(f"{path}: cannot be read: {reason}", code=UNREADABLE) from None
    if len(data) > MAX_FILE_BYTES:
        raise ProblemError(f"{path}: larger than {MAX_FILE_BYTES} bytes", code=UNREADABLE)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ProblemError(f"{path}, line {line}: not UTF-8", code=BROKEN_JSON) from None


def _parse(text: str, place: str) -> Json:
    try:
        value: Json = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        where = f"{place}, line {error.lineno}" if error.lineno > 1 else place
        raise ProblemError(
            f"{where}: broken JSON at character {error.colno}: {error.msg}", code=BROKEN_JSON
        ) from None
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "nested too deep"
        raise ProblemError(f"{place}: broken JSON: {reason}", code=BROKEN_JSON) from None
    if "\\u" in text:  # the only way for what UTF-8 and Postgres cannot hold to come in
        try:
            _check_texts(value)
        except ValueError as error:
            raise ProblemError(f"{place}: {error}", code=BROKEN_JSON) from None
    return value


def _check_texts(value: Json) -> None:
    if isinstance(value, str):
        check_text(value)
    elif isinstance(value, list):
        for item in value:
            _check_texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            check_text(key)
            _check_texts(item)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _reward_to_json(reward: Reward) -> JsonObject:
    value: JsonObject = {"product_id": reward.product_id, "title": list(reward.title)}
    if reward.sku_options:
        value["sku_options"] = [dict(option) for option in reward.sku_options]
    if reward.attributes:
        value["attributes"] = [
            {key: list(values) for key, values in entry.items()} for entry in reward.attributes
        ]
    if reward.service:
        value["service"] = list(reward.service)
    if reward.price:
        value["price"] = [_band_to_json(band) for band in reward.price]
    return value


def _band_to_json(band: PriceBand) -> JsonObject:
    if band.low is not None and band.high is not None:
        return {"between": [_number(band.low), _number(band.high)]}
    if band.low is not None:
        return {"greater than": [_number(band.low), None]}
    return {"less than": [None, _number(band.high)]}


def _voucher_to_json(voucher: Voucher) -> JsonObject:
    return {
        "voucher_type": voucher.voucher_type,
        "threshold": _number(voucher.threshold),
        "discount_type": voucher.discount_type,
        "face_value": _number(voucher.face_value),
        "discount": _number(voucher.discount),
        "cap": _number(voucher.cap),
        "price_after_voucher": _number(voucher.price_after_voucher),
        "budget": _number(voucher.budget),
    }


def _number(value: float | None) -> Json:
    """Whole pesos without a fraction, as the public files have them."""
    return int(value) if value is not None and value.is_integer() else value
