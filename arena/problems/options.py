"""The options of `arena problems` that hold a small table."""

from __future__ import annotations

from arena.exceptions import SettingsError
from arena.problems.growth import DIFFICULTIES
from scoring.types import Bucket


def read_counts(text: str) -> dict[Bucket, int]:
    """Read `product=30,shop=30`; a bucket that is not named gets none.

    Raises SettingsError.
    """
    counts = dict.fromkeys(Bucket, 0)
    for part in text.split(","):
        name, _, number = part.partition("=")
        name, number = name.strip(), number.strip()
        if name not in set(Bucket) or not number.isdecimal() or len(number) > 7:
            raise SettingsError(
                f"--bucket: {part[:60]!r} is not of the form product=30,shop=30,voucher=30"
            )
        counts[Bucket(name)] = int(number)
    if not any(counts.values()):
        raise SettingsError("--bucket asks for no problem")
    return counts


def read_mix(text: str) -> dict[str, float]:
    """Read `easy=0.4,medium=0.6`; a difficulty that is not named gets nothing.

    Raises SettingsError.
    """
    mix = dict.fromkeys(DIFFICULTIES, 0.0)
    for part in text.split(","):
        name, _, number = part.partition("=")
        share = number.strip()
        if name.strip() not in mix or not share.replace(".", "", 1).isdecimal() or len(share) > 9:
            raise SettingsError(
                f"--mix: {part[:60]!r} is not of the form easy=0.4,medium=0.4,hard=0.2"
            )
        mix[name.strip()] = float(share)
    if not any(mix.values()):
        raise SettingsError("--mix asks for no difficulty")
    return mix
