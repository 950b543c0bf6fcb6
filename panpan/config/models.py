"""What is known of models: context window, longest reply, and price.

The figures lie in `models.json`, written by `scripts/update_models.py`, and are read when they are first asked for. The
rule: a figure that is not known is not guessed. An unknown model has no price and a small context window.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from panpan.types.dataclass import dataclass
from panpan.types.messages import Usage

UNKNOWN_CONTEXT_TOKENS = 32_768
"""Context window of a model that is not known: what local servers commonly have."""
UNKNOWN_OUTPUT_TOKENS = 8_192
"""Longest reply of a model that is not known; servers refuse a request whose reply might not fit beside it."""

_DATA_FILE = Path(__file__).with_name("models.json")
_DATE = re.compile(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


@dataclass(frozen=True, slots=True)
class Rates:
    """US dollars per million tokens, for requests with more than `above_tokens` of input."""

    above_tokens: int
    input: float
    output: float
    cache_read: float
    cache_write: float


@dataclass(frozen=True, slots=True)
class Price:
    """What tokens cost. Some vendors charge more for all tokens of a long request, hence several rates."""

    rates: tuple[Rates, ...]
    """By rising `above_tokens`; the first is for 0."""

    @classmethod
    def flat(
        cls,
        input_usd: float,
        output_usd: float,
        *,
        cache_read_usd: float | None = None,
        cache_write_usd: float | None = None,
    ) -> "Price":
        """Return a price that is the same for requests of every length, in US dollars per million tokens.

        Args:
            input_usd: For tokens of the request.
            output_usd: For tokens of the reply.
            cache_read_usd: For tokens read from the cache; None: as for input.
            cache_write_usd: For tokens written to the cache; None: as for input.
        """
        read = input_usd if cache_read_usd is None else cache_read_usd
        write = input_usd if cache_write_usd is None else cache_write_usd
        return cls((Rates(0, input_usd, output_usd, read, write),))

    def cost_usd(self, usage: Usage) -> float:
        """Return what a request and its reply cost, in US dollars."""
        length = usage.input_tokens + usage.cache_read_input_tokens + usage.cache_creation_input_tokens
        rates = max((rates for rates in self.rates if length > rates.above_tokens), key=_above, default=self.rates[0])
        millionths = (
            usage.input_tokens * rates.input
            + usage.output_tokens * rates.output
            + usage.cache_read_input_tokens * rates.cache_read
            + usage.cache_creation_input_tokens * rates.cache_write
        )
        return millionths / 1_000_000


FREE = Price.flat(0, 0)
"""Price of a reply that no vendor gave."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What is known of one model."""

    name: str
    context_tokens: int
    """Tokens of a request and its reply together."""
    max_output_tokens: int
    """Longest reply, thinking included."""
    price: Price | None
    """None where it is not known. Where it depends on the hour, the highest."""
    is_known: bool = True


def facts_about(model: str, vendor: str | None) -> ModelFacts:
    """Return what is known of a model as its vendor serves it.

    Args:
        model: Its name as the vendor knows it; a date at its end does not matter.
        vendor: Name of the vendor; None, or one that serves other people's models, such as a local program, knows no
            figures, since the same name may mean another window and another price there.
    """
    models = _table().get(vendor or "", {})
    name = model.lower()
    row = models.get(name) or models.get(_DATE.sub("", name))
    if row is None:
        return ModelFacts(model, UNKNOWN_CONTEXT_TOKENS, UNKNOWN_OUTPUT_TOKENS, None, is_known=False)
    return ModelFacts(model, row["context"], row["output"], _price(row["price"]))


def known_models(vendor: str) -> tuple[str, ...]:
    """Return the models of a vendor that are known, the newest first."""
    return tuple(_table().get(vendor, {}))


def vendor_of(model: str) -> str | None:
    """Return the vendor whose own model this is, as far as it is known."""
    name = _DATE.sub("", model.lower())
    return next((vendor for vendor, models in _table().items() if name in models), None)


def _above(rates: Rates) -> int:
    return rates.above_tokens


def _price(rows: list[list[float]] | None) -> Price | None:
    return None if rows is None else Price(tuple(Rates(int(above), *rest) for above, *rest in rows))


@cache
def _table() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    models: Mapping[str, Mapping[str, Mapping[str, Any]]] = json.loads(_DATA_FILE.read_bytes())["models"]
    return models
