"""Which user a server on this machine belongs to: what it cannot say wrong of itself.

The rule: where the system does not tell (Linux does, in /proc/net), nothing is known; nothing is guessed.
"""

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LISTENING = "0A"
_WORD_DIGITS = 8
_LOOPBACK = (b"\x7f\0\0\1", bytes(10) + b"\xff\xff\x7f\0\0\1")
_ANY = (bytes(4), bytes(16))


def listening_user(port: int) -> int | None:
    """Return the number of the user whose process listens on 127.0.0.1 at `port`."""
    users = {address: user for address, its_port, user in _listeners() if its_port == port}
    # Who listens on the address itself gets what is sent there, and not who listens on all addresses.
    return next((users[address] for address in (*_LOOPBACK, *_ANY) if address in users), None)


def _listeners() -> Iterator[tuple[bytes, int, int]]:
    """Yield address, port and user of each socket that listens."""
    for table in _TABLES:
        with suppress(OSError):
            for line in table.read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == _LISTENING:
                    address, _, port = words[1].partition(":")
                    yield _address(address), int(port, 16), int(words[7])


def _address(digits: str) -> bytes:
    """Return an address as the network writes it; the kernel shows words of four bytes as this machine keeps them."""
    words = (int(digits[start : start + _WORD_DIGITS], 16) for start in range(0, len(digits), _WORD_DIGITS))
    return b"".join(word.to_bytes(4, sys.byteorder) for word in words)
