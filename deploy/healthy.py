"""Healthcheck of a container: exits with 0 when the address answers with 200.

python healthy.py URL
"""

import sys
import urllib.error
import urllib.request


def main() -> None:
    """Ask once, for at most three seconds."""
    try:
        with urllib.request.urlopen(sys.argv[1], timeout=3) as answer:  # noqa: S310 - our own
            sys.exit(0 if answer.status == 200 else 1)
    except (urllib.error.URLError, OSError) as error:
        sys.exit(f"{sys.argv[1]}: {error}")


main()
