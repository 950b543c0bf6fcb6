"""Amounts of money as the user reads them; one that is estimated begins with `~`."""


def shown_cost(known_usd: float, *, is_whole: bool, is_estimated: bool) -> str:
    """Return an amount with four decimals, or what is known of one that is not whole.

    Args:
        known_usd: US dollars of all replies whose price is known.
        is_whole: True if every price is known.
        is_estimated: True if a part of it is an estimate.
    """
    amount = cost_in_short(known_usd, is_estimated=is_estimated)
    if is_whole:
        return amount
    return f"at least {amount}; a price is not known" if known_usd else "price not known"


def cost_in_short(usd: float, *, is_estimated: bool, decimals: int = 4) -> str:
    """Return an amount such as `$0.0123`, or `~$0.0123` for one of which a part is an estimate."""
    return f"{'~' if is_estimated else ''}${usd:.{decimals}f}"
