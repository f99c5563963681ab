"""Who signs, and how a signature is checked: sr25519 by a Bittensor hotkey.

The SDK is imported when the first key is made: most commands need none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from bittensor.keyfiles import Keypair

ALGORITHM = "sr25519"


class Signer(Protocol):
    """A key that can sign; nothing here ever sees the key itself."""

    @property
    def address(self) -> str:
        """The SS58 address of its public key."""
        ...

    def sign(self, message: bytes) -> bytes:
        """64 bytes. Signing the same message twice gives two different signatures."""
        ...


class KeypairSigner:
    """A key in memory: a wallet's hotkey, or `//Alice` and the like for tests."""

    def __init__(self, key: str | Keypair) -> None:
        """`key` is a key pair of the SDK, or the URI that makes one."""
        from bittensor.keyfiles import Keypair

        self._pair = Keypair.create_from_uri(key) if isinstance(key, str) else key

    @property
    def address(self) -> str:
        """The SS58 address of its public key."""
        return str(self._pair.ss58_address)

    @property
    def pair(self) -> Keypair:
        """The key pair itself, for the SDK's own calls."""
        return self._pair

    def sign(self, message: bytes) -> bytes:
        """64 bytes."""
        return bytes(self._pair.sign(message))


def verify_signature(address: str, message: bytes, signature: bytes) -> bool:
    """Whether the key of `address` signed `message`. False for an address that is none."""
    from bittensor.keyfiles import Keypair

    try:
        return bool(Keypair(ss58_address=address).verify(message, signature))
    except (ValueError, TypeError):
        return False
