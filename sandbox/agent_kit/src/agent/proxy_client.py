"""The HTTP client that SN15 agents import: JSON or None, with retries.

Runs inside a sandbox, on `requests`. It talks to the sandbox's gateway and to
nothing else: there is nothing else to talk to.
"""

from __future__ import annotations

import logging
import os
import time
from typing import Any

import requests

logger = logging.getLogger(__name__)

DEFAULT_PROXY_URL = "http://proxy:80"
_INFERENCE = "/inference/"


class ProxyClient:
    """Sends requests to the gateway and returns decoded JSON, or None after the retries.

    Times are seconds. `proxy_url` defaults to SANDBOX_PROXY_URL, `api_key` to
    CHUTES_ACCESS_TOKEN. A 429 waits `rate_limit_retry_delay`, a 5xx, a lost connection
    or an answer that is not JSON `retry_delay`; any other status is final.
    """

    def __init__(
        self,
        proxy_url: str | None = None,
        timeout: float = 120,
        max_retries: int = 3,
        retry_delay: float = 2,
        rate_limit_retry_delay: float = 5,
        api_key: str | None = None,
    ) -> None:
        url = proxy_url or os.environ.get("SANDBOX_PROXY_URL") or DEFAULT_PROXY_URL
        self.proxy_url = url.rstrip("/")
        self.timeout = timeout
        self.max_retries = max_retries
        self.retry_delay = retry_delay
        self.rate_limit_retry_delay = rate_limit_retry_delay
        self.api_key = api_key or os.environ.get("CHUTES_ACCESS_TOKEN") or None
        self._session = requests.Session()
        # A proxy named in the environment would be another way out; there is none.
        self._session.trust_env = False

    def get(self, path: str, params: dict[str, Any] | None = None) -> Any:
        """GET `path`; decoded JSON, or None when every try failed."""
        return self._send("GET", path, params=params)

    def post(
        self,
        path: str,
        json_data: dict[str, Any] | None = None,
        params: dict[str, Any] | None = None,
    ) -> Any:
        """POST `json_data` to `path`; decoded JSON, or None when every try failed."""
        return self._send("POST", path, params=params, json_data=json_data)

    def _send(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        json_data: dict[str, Any] | None = None,
    ) -> Any:
        url = f"{self.proxy_url}/{path.lstrip('/')}"
        headers = {}
        if self.api_key and f"/{path.lstrip('/')}".startswith(_INFERENCE):
            headers["Authorization"] = f"Bearer {self.api_key}"
        tries = max(1, self.max_retries)
        for attempt in range(1, tries + 1):
            delay = self.retry_delay
            try:
                response = self._session.request(
                    method,
                    url,
                    params=params,
                    json=json_data,
                    headers=headers,
                    timeout=self.timeout,
                )
                if response.ok:
                    return response.json()
                logger.warning("%s %s answered %d", method, path, response.status_code)
                if response.status_code == 429:
                    delay = self.rate_limit_retry_delay
                elif response.status_code < 500:
                    return None
            except (requests.RequestException, ValueError) as error:
                logger.warning("%s %s failed: %s", method, path, error)
            if attempt < tries:
                time.sleep(delay)
        return None
