"""A limit on money needs a price."""

from panpan.errors import BudgetError


def check_price_known(limit_usd: float | None, *, model: str, is_price_known: bool) -> None:
    """Refuse to start with a budget that cannot be kept.

    Raises:
        BudgetError: There is a budget and the model has no known price.
    """
    if limit_usd is not None and not is_price_known:
        raise BudgetError(
            f"the price of {model} is not known, so that a budget cannot be kept; start without --max-budget-usd, or "
            "choose a model with a known price"
        )
