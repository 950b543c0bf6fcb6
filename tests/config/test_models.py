import json
import re
import subprocess
import sys
from datetime import UTC, date, datetime, time

import pytest
from genai_prices.types import Usage as ListedUsage

from panpan.config.models import (
    ALIASES,
    UNKNOWN_CONTEXT_TOKENS,
    VENDORS,
    Price,
    facts_about,
    known_models,
    vendor_named,
    vendor_of,
)
from panpan.types.messages import Usage
from scripts.update_models import MODELS, TARGET, listed_model

DOCUMENT = json.loads(TARGET.read_bytes())

ALL = [(vendor, name) for vendor, rows in MODELS.items() for name, *_ in rows]

LENGTHS = (1, 100_000, 100_001, 199_999, 200_000, 200_001, 272_000, 272_001, 512_001, 900_000)
"""Tokens of a request, around the lengths from which some vendors charge more."""


@pytest.mark.parametrize(("vendor", "name"), ALL)
def test_model_prices_equal_the_price_list(vendor: str, name: str) -> None:
    price = facts_about(name, vendor).price
    listed = listed_model(vendor, name)

    if listed is None:
        assert price is None
        return
    assert price is not None
    day = date.fromisoformat(DOCUMENT["as_of"])
    by_hour = [listed.get_prices(datetime.combine(day, time(hour), UTC)) for hour in range(24)]
    distinct = [one for number, one in enumerate(by_hour) if one not in by_hour[:number]]
    for length in LENGTHS:
        usage, listed_usage = _usage_of(length)
        highest = max(float(one.calc_price(listed_usage)["total_price"]) for one in distinct)
        assert price.cost_usd(usage) == pytest.approx(highest)


def _usage_of(length: int) -> tuple[Usage, ListedUsage]:
    """Return the same use in our words and in those of the price list, which counts cached tokens as input."""
    read, written = length // 2, length // 5
    ours = Usage(
        input_tokens=length - read - written,
        output_tokens=1_234,
        cache_read_input_tokens=read,
        cache_creation_input_tokens=written,
    )
    theirs = ListedUsage(input_tokens=length, output_tokens=1_234, cache_read_tokens=read, cache_write_tokens=written)
    return ours, theirs


@pytest.mark.parametrize(("vendor", "name"), ALL)
def test_context_windows_equal_the_price_list(vendor: str, name: str) -> None:
    facts = facts_about(name, vendor)
    listed = listed_model(vendor, name)

    assert facts.is_known
    assert 0 < facts.max_output_tokens < facts.context_tokens
    if listed is not None and listed.context_window is not None:
        assert facts.context_tokens == listed.context_window


def test_model_file_equals_its_generator() -> None:
    assert {vendor: known_models(vendor) for vendor in MODELS} == {
        vendor: tuple(name for name, *_ in rows) for vendor, rows in MODELS.items()
    }


@pytest.mark.parametrize(
    "vendor", [vendor for vendor in VENDORS if not vendor.is_local], ids=lambda vendor: vendor.name
)
def test_defaults_and_aliases_name_known_models(vendor) -> None:
    for model in (vendor.default_model, *dict(vendor.aliases).values()):
        assert facts_about(model, vendor.name).is_known, model
    assert all(vendor.makes(model) for model in known_models(vendor.name)) or vendor.model_pattern is None


def test_general_aliases_name_known_models() -> None:
    assert all(vendor_of(model) is not None for _, model in ALIASES)


def test_claude_model_names_are_those_of_the_sdk() -> None:
    from typing import get_args

    from anthropic.types import Model

    literals = {name for part in get_args(Model) for name in get_args(part)}
    assert set(known_models("anthropic")) <= literals


def test_gpt_model_names_are_those_of_the_sdk() -> None:
    from typing import get_args

    from openai.types.shared import ChatModel

    assert set(known_models("openai")) <= set(get_args(ChatModel))


def test_only_older_claude_models_take_a_thinking_budget() -> None:
    from panpan.models.providers.anthropic_request import takes_thinking_budget

    older = {"claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5"}
    assert {name for name in known_models("anthropic") if takes_thinking_budget(name)} == older


@pytest.mark.parametrize("name", ["claude-haiku-4-5-20251001", "claude-haiku-4-5@20251001", "CLAUDE-HAIKU-4-5-latest"])
def test_model_facts_ignore_a_date_behind_the_name(name: str) -> None:
    facts = facts_about(name, "anthropic")

    assert facts.context_tokens == 200_000
    assert facts.name == name
    assert vendor_of(name) == "anthropic"


@pytest.mark.parametrize(
    ("name", "vendor"),
    [("claude-opus-9", "anthropic"), ("claude-opus-5-5-mini", "anthropic"), ("claude-opus-5-5", None), ("x", "nobody")],
)
def test_unknown_model_has_no_price_and_a_small_window(name: str, vendor: str | None) -> None:
    facts = facts_about(name, vendor)

    assert (facts.price, facts.context_tokens, facts.is_known) == (None, UNKNOWN_CONTEXT_TOKENS, False)


def test_long_request_costs_more_for_all_its_tokens() -> None:
    price = facts_about("claude-haiku-5-5", "anthropic").price

    assert price.cost_usd(Usage(input_tokens=100_000)) == pytest.approx(0.01)
    assert price.cost_usd(Usage(input_tokens=1, cache_read_input_tokens=100_000)) == pytest.approx(0.0050005)


def test_flat_price_charges_cached_tokens_as_input_unless_told() -> None:
    usage = Usage(cache_read_input_tokens=1_000_000, cache_creation_input_tokens=1_000_000)

    assert Price.flat(2, 8).cost_usd(usage) == pytest.approx(4)
    assert Price.flat(2, 8, cache_read_usd=0.2, cache_write_usd=2.5).cost_usd(usage) == pytest.approx(2.7)


def test_model_figures_are_read_on_demand() -> None:
    program = (
        "import sys, builtins, io, pathlib\n"
        "import panpan.config.models as models\n"
        "assert models._table.cache_info().currsize == 0\n"
        "models.facts_about('x', 'openai')\n"
        "assert models._table.cache_info().currsize == 1\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('genai_prices', 'anthropic', 'openai')])\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_vendors_have_clean_addresses_and_valid_patterns() -> None:
    for vendor in VENDORS:
        assert re.fullmatch(r"https?://[^ ]+[^/]", vendor.base_url)
        assert not vendor.makes("some-model-of-nobody")
    assert len({vendor.name for vendor in VENDORS}) == len(VENDORS)
    assert vendor_named("nobody") is None


def test_model_file_is_plain_json_with_one_model_a_line() -> None:
    assert list(DOCUMENT) == ["as_of", "source", "price", "models"]
    assert max(len(line) for line in TARGET.read_text().splitlines()) < 250
