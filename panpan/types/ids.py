"""Ids of messages, records and questions: UUIDs that sort by the time they were made."""

import os
import time
from collections.abc import Set as AbstractSet


def new_id() -> str:
    """Return a UUID of version 7 (RFC 9562, section 5.7): 48 bits of Unix milliseconds, then random bits."""
    milliseconds = time.time_ns() // 1_000_000
    random = int.from_bytes(os.urandom(10), "big")
    value = (
        (milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | (random >> 68) << 64 | 0b10 << 62 | random & (1 << 62) - 1
    )
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def unique_id(wanted: str, taken: AbstractSet[str]) -> str:
    """Return `wanted`, or `wanted` with a number behind it that makes it unlike every id in `taken`: the next one.

    Servers exist that call the first tool of every reply "call_0", or that name none at all.
    """
    wanted = wanted or "call"
    if wanted not in taken:
        return wanted
    last, free = 1, 2
    while f"{wanted}-{free}" in taken:  # there may be thousands, so that each is not looked at
        last, free = free, 2 * free
    while free - last > 1:
        middle = (last + free) // 2
        last, free = (middle, free) if f"{wanted}-{middle}" in taken else (last, middle)
    return f"{wanted}-{free}"
