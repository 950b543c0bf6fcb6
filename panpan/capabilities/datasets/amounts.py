"""Sizes and times in words."""

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def size_text(count: int) -> str:
    """Return a number of bytes in words, such as "1.5 GB"; a kB is a thousand bytes."""
    amount, unit = float(count), 0
    while amount >= 999.5 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1000, unit + 1
    return f"{count} bytes" if unit == 0 else f"{amount:.3g} {_UNITS[unit]}"


def time_text(seconds: float) -> str:
    """Return a time in words, such as "3 min"."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
