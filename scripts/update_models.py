"""Write panpan/config/models.json: `python scripts/update_models.py`, after an update of genai-prices.

Prices and known context windows come from genai-prices (MIT, https://github.com/pydantic/genai-prices). The rest is in
the tables below, from the vendors' model pages. If a vendor states no longest reply, the figure here is a cautious one,
which only limits panpan's requests. Models without a price are newer than the price list, or their vendor is not in it.
"""

import argparse
import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

TARGET = Path(__file__).parent.parent / "panpan" / "config" / "models.json"

PRICE_LISTS = {
    "anthropic": "anthropic",
    "openai": "openai",
    "deepseek": "deepseek",
    "zai": "zai",
    "zhipu": "zhipuai",
    "dashscope": None,
    "moonshot": "moonshotai",
    "mistral": "mistral",
    "gemini": "google",
    "xai": "x-ai",
    "minimax": "minimax",
    "openrouter": "openrouter",
    "groq": "groq",
}
"""Names of vendors in genai-prices, by panpan's names."""

MODELS: dict[str, list[tuple[str, int, int]]] = {
    # name, context window if the price list has none (else 0), longest reply
    # https://platform.claude.com/docs/en/models
    "anthropic": [
        ("claude-sonnet-5-5", 0, 128_000),
        ("claude-opus-5-5", 0, 128_000),
        ("claude-haiku-5-5", 0, 128_000),
        ("claude-fable-5-2", 0, 128_000),
        ("claude-fable-5-1", 0, 128_000),
        ("claude-mythos-5-2", 0, 128_000),
        ("claude-fable-5", 0, 128_000),
        ("claude-opus-5", 0, 128_000),
        ("claude-sonnet-5", 0, 128_000),
        ("claude-opus-4-8", 0, 128_000),
        ("claude-opus-4-7", 0, 128_000),
        ("claude-opus-4-6", 0, 128_000),
        ("claude-sonnet-4-6", 0, 64_000),
        ("claude-opus-4-5", 0, 64_000),
        ("claude-sonnet-4-5", 0, 64_000),
        ("claude-haiku-4-5", 0, 64_000),
    ],
    # https://developers.openai.com/api/docs/models
    "openai": [
        ("gpt-6.2-astra", 1_050_000, 128_000),
        ("gpt-6.2-sol", 1_050_000, 128_000),
        ("gpt-6.1-sol", 0, 128_000),
        ("gpt-6.1-terra", 0, 128_000),
        ("gpt-6-astra", 0, 128_000),
        ("gpt-6-sol", 0, 128_000),
        ("gpt-6-luna", 0, 128_000),
        ("gpt-5.6-sol", 0, 128_000),
        ("gpt-5.6-terra", 0, 128_000),
        ("gpt-5.6-luna", 0, 128_000),
        ("gpt-5.5", 0, 128_000),
        ("gpt-5.4", 0, 128_000),
        ("gpt-5.4-mini", 0, 128_000),
        ("gpt-5.4-nano", 0, 128_000),
        ("gpt-5.2", 0, 128_000),
        ("gpt-5.1", 0, 128_000),
        ("gpt-5", 0, 128_000),
        ("gpt-5-mini", 0, 128_000),
        ("gpt-5-nano", 0, 128_000),
        ("gpt-4.1", 0, 32_768),
        ("gpt-4.1-mini", 0, 32_768),
    ],
    # https://api-docs.deepseek.com/quick_start/pricing
    "deepseek": [
        ("deepseek-v4-pro", 0, 384_000),
        ("deepseek-v4-flash", 0, 384_000),
    ],
    # https://docs.z.ai/guides/overview/pricing
    "zai": [
        ("glm-5.3", 0, 131_072),
        ("glm-5.3-flash", 0, 131_072),
        ("glm-5.2", 0, 131_072),
        ("glm-4.7", 200_000, 131_072),
    ],
    "zhipu": [
        ("glm-5.3", 0, 131_072),
        ("glm-5.3-flash", 0, 131_072),
        ("glm-5.2", 0, 131_072),
        ("glm-4.7", 0, 131_072),
    ],
    # https://www.alibabacloud.com/help/en/model-studio/models
    "dashscope": [
        ("qwen3.8-max", 991_000, 65_536),
        ("qwen3.8-flash", 991_000, 65_536),
        ("qwen3-coder-plus", 991_000, 65_536),
    ],
    # https://platform.moonshot.ai/docs
    "moonshot": [
        ("kimi-k3.1-pro", 0, 65_536),
        ("kimi-k3", 0, 65_536),
        ("kimi-k2.7-code", 0, 32_768),
        ("kimi-k2.6", 0, 32_768),
    ],
    # https://docs.mistral.ai/getting-started/models
    "mistral": [
        ("mistral-large-4", 0, 32_768),
        ("mistral-medium-3-5", 0, 32_768),
        ("mistral-small-2603", 0, 32_768),
        ("codestral-2508", 0, 32_768),
    ],
    # https://ai.google.dev/gemini-api/docs/models
    "gemini": [
        ("gemini-4-argon", 0, 65_536),
        ("gemini-3.8-flash", 0, 65_536),
        ("gemini-3.1-pro-preview", 1_048_576, 65_536),
        ("gemini-3.1-flash-lite", 0, 65_536),
    ],
    # https://docs.x.ai/docs/models
    "xai": [
        ("grok-4.7", 0, 32_768),
        ("grok-code-fast-1", 0, 32_768),
    ],
    # https://platform.minimax.io/docs
    "minimax": [
        ("minimax-m3", 0, 32_768),
        ("minimax-m3.1-flash", 0, 32_768),
    ],
    # https://openrouter.ai/models
    "openrouter": [
        ("anthropic/claude-sonnet-5.5", 0, 128_000),
        ("anthropic/claude-opus-5.5", 0, 128_000),
        ("openai/gpt-6.1-sol", 0, 128_000),
        ("deepseek/deepseek-v4-pro", 1_000_000, 128_000),
    ],
    # https://console.groq.com/docs/models
    "groq": [
        ("openai/gpt-oss-120b", 0, 65_536),
        ("openai/gpt-oss-20b", 0, 65_536),
    ],
}


def main() -> None:
    """Write the file and print the number of models."""
    parser = argparse.ArgumentParser(description="Write panpan/config/models.json from genai-prices.")
    parser.add_argument("--as-of", type=date.fromisoformat, default=datetime.now(UTC).date())
    options = parser.parse_args()
    document = {
        "as_of": options.as_of.isoformat(),
        "source": f"genai-prices {version('genai-prices')} (MIT) and the vendors' pages, by scripts/update_models.py",
        "price": "[above input tokens, input, output, cache read, cache write], US dollars per million tokens",
        "models": {vendor: dict(_rows(vendor, options.as_of)) for vendor in MODELS},
    }
    TARGET.write_text(_one_model_a_line(document), encoding="utf-8")
    print(f"{TARGET}: {sum(len(rows) for rows in MODELS.values())} models, prices of {options.as_of}")  # noqa: T201


def _rows(vendor: str, day: date) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, context, output in MODELS[vendor]:
        listed = listed_model(vendor, name)
        yield (
            name,
            {
                "context": context or (listed.context_window if listed else None),
                "output": output,
                "price": None if listed is None else _rates(highest_price(listed, day)),
            },
        )


def listed_model(vendor: str, name: str) -> ModelInfo | None:
    """Return genai-prices' entry for a model, if any."""
    provider = next((one for one in get_snapshot().providers if one.id == PRICE_LISTS[vendor]), None)
    return None if provider is None else provider.find_model(name)


def highest_price(model: ModelInfo, day: date) -> ModelPrice:
    """Return the price on a day; the highest of prices that depend on the hour."""
    hours = (datetime.combine(day, time(hour), UTC) for hour in range(24))
    return max((model.get_prices(hour) for hour in hours), key=lambda price: _at(price.output_mtok, 0))


def _rates(price: ModelPrice) -> list[list[float]]:
    kinds = (price.input_mtok, price.output_mtok, price.cache_read_mtok, price.cache_write_mtok)
    starts = {tier.start for kind in kinds if isinstance(kind, TieredPrices) for tier in kind.tiers}
    return [[start, *_amounts(kinds, start)] for start in sorted({0, *starts})]


def _amounts(kinds: tuple[Decimal | TieredPrices | None, ...], start: int) -> list[float]:
    """Return the four amounts for requests longer than `start`; cached input without a price costs as much as input."""
    return [_number(_at(kinds[0] if kind is None else kind, start)) for kind in kinds]


def _at(price: Decimal | TieredPrices | None, start: int) -> Decimal:
    if price is None:
        return Decimal(0)
    if isinstance(price, TieredPrices):
        return next((tier.price for tier in reversed(price.tiers) if start >= tier.start), price.base)
    return price


def _number(amount: Decimal) -> float:
    return int(amount) if amount == int(amount) else float(amount)


def _one_model_a_line(document: dict[str, Any]) -> str:
    lines = [f"{json.dumps(name)}: {json.dumps(document[name])}," for name in ("as_of", "source", "price")]
    vendors = []
    for vendor, models in document["models"].items():
        rows = ",\n".join(f"   {json.dumps(name)}: {json.dumps(row)}" for name, row in models.items())
        vendors.append(f"  {json.dumps(vendor)}: {{\n{rows}\n  }}")
    return "{\n " + "\n ".join(lines) + '\n "models": {\n' + ",\n".join(vendors) + "\n }\n}\n"


if __name__ == "__main__":
    main()
