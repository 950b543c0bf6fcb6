"""Times as people say them."""

_MINUTE, _HOUR = 60, 3_600


def spoken_s(seconds: float) -> str:
    """Return a time in seconds as `0.4 s`, `12 s`, `3 min 20 s` or `2 h 5 min`."""
    if seconds < 9.95:
        return f"{max(seconds, 0):.1f} s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE} min"
