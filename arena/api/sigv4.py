"""Presigned URLs by AWS Signature Version 4, query form: all of S3 that the arena needs.

After "Authenticating Requests: Using Query Parameters (AWS Signature Version 4)" of the
Amazon S3 API reference, whose published example is a test.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

_ALGORITHM = "AWS4-HMAC-SHA256"
_MAX_TTL_S = 604_800


@dataclass(frozen=True, slots=True)
class Credentials:
    """A key of the store."""

    access_key: str
    secret_key: str = field(repr=False)
    region: str = "us-east-1"


def presign(
    method: str,
    url: str,
    credentials: Credentials,
    *,
    now: datetime,
    ttl_s: int,
    headers: Mapping[str, str] | None = None,
) -> str:
    """The URL with its signature, good for `ttl_s` seconds from `now`.

    `headers` are signed by value: the request must carry them as they are. The URL has a
    plain path and no query of its own.
    """
    parts = urlsplit(url)
    at = now.astimezone(UTC)
    stamp, day = at.strftime("%Y%m%dT%H%M%SZ"), at.strftime("%Y%m%d")
    scope = f"{day}/{credentials.region}/s3/aws4_request"
    signed = {"host": parts.netloc, **{k.lower(): v.strip() for k, v in (headers or {}).items()}}
    names = ";".join(sorted(signed))
    query = _query(
        {
            "X-Amz-Algorithm": _ALGORITHM,
            "X-Amz-Credential": f"{credentials.access_key}/{scope}",
            "X-Amz-Date": stamp,
            "X-Amz-Expires": str(min(max(ttl_s, 1), _MAX_TTL_S)),
            "X-Amz-SignedHeaders": names,
        }
    )
    path = quote(parts.path or "/", safe="/-_.~")
    lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
    request = f"{method}\n{path}\n{query}\n{lines}\n{names}\nUNSIGNED-PAYLOAD"
    digest = hashlib.sha256(request.encode()).hexdigest()
    to_sign = f"{_ALGORITHM}\n{stamp}\n{scope}\n{digest}"
    key = _key(credentials, day)
    signature = hmac.new(key, to_sign.encode(), hashlib.sha256).hexdigest()
    return f"{parts.scheme}://{parts.netloc}{path}?{query}&X-Amz-Signature={signature}"


def _key(credentials: Credentials, day: str) -> bytes:
    key = b"AWS4" + credentials.secret_key.encode()
    for part in (day, credentials.region, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key


def _query(parameters: Mapping[str, str]) -> str:
    encoded = sorted((quote(k, safe="-_.~"), quote(v, safe="-_.~")) for k, v in parameters.items())
    return "&".join(f"{name}={value}" for name, value in encoded)
