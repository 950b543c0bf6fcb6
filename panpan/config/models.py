"""Vendors and their models: addresses, context windows, longest replies, and prices.

A vendor's key is only for its own address, or for the address in its own `*_BASE_URL` variable. The figures are in
`models.json`, which `scripts/update_models.py` writes, and are read on first use. Unknown figures are not guessed: an
unknown model has no price and a small context window.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from panpan.types.dataclass import dataclass
from panpan.types.messages import Usage
from panpan.types.pattern import compile_late

UNKNOWN_CONTEXT_TOKENS = 32_768
"""Context window of an unknown model, as local servers commonly have it."""
UNKNOWN_OUTPUT_TOKENS = 8_192
"""Longest reply of an unknown model; servers refuse a request if the reply might not fit into the window with it."""

_DATA_FILE = Path(__file__).with_name("models.json")
_DATE = compile_late(r"[-@](\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


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
    """Price of tokens. Some vendors charge more for all tokens of a long request, hence several rates."""

    rates: tuple[Rates, ...]
    """Rates by rising `above_tokens`; the first is for 0."""

    @classmethod
    def flat(
        cls,
        input_usd: float,
        output_usd: float,
        *,
        cache_read_usd: float | None = None,
        cache_write_usd: float | None = None,
    ) -> "Price":
        """Return a price in US dollars per million tokens, the same for every length; None for that of input."""
        read = input_usd if cache_read_usd is None else cache_read_usd
        write = input_usd if cache_write_usd is None else cache_write_usd
        return cls((Rates(0, input_usd, output_usd, read, write),))

    def cost_usd(self, usage: Usage) -> float:
        """Return the cost of a request and its reply in US dollars."""
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
"""Price of a reply that comes from no vendor."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Context window, longest reply and price of one model."""

    name: str
    context_tokens: int
    """Limit on the tokens of a request and its reply together."""
    max_output_tokens: int
    """Limit on the tokens of a reply, thinking included."""
    price: Price | None
    """Price; the highest if it depends on the hour, None if it is not known."""
    is_known: bool = True


def facts_about(model: str, vendor: str | None) -> ModelFacts:
    """Return the figures of a model as its vendor serves it, or those of an unknown model.

    Args:
        model: The vendor's name of the model; a date at its end does not matter.
        vendor: Name of the vendor. None, or a vendor that serves the models of others, such as a local program, has no
            figures, since the same name may mean another window and another price there.
    """
    models = _table().get(vendor or "", {})
    name = model.lower()
    row = models.get(name) or models.get(_DATE.sub("", name))
    if row is None:
        return ModelFacts(model, UNKNOWN_CONTEXT_TOKENS, UNKNOWN_OUTPUT_TOKENS, None, is_known=False)
    return ModelFacts(model, row["context"], row["output"], _price(row["price"]))


def known_models(vendor: str) -> tuple[str, ...]:
    """Return the known models of a vendor, newest first."""
    return tuple(_table().get(vendor, {}))


def vendor_of(model: str) -> str | None:
    """Return the vendor of a known model; None for an unknown one."""
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


Dialect: TypeAlias = Literal["anthropic", "openai"]
"""The Messages API, or OpenAI's chat completions."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """One place that serves models."""

    name: str
    """Name as in `name/model`."""
    base_url: str
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold its key, in order; none for a local program, which needs no key."""
    dialect: Dialect = "openai"
    base_url_variable: str | None = None
    """Environment variable with another address, to which its key goes, too."""
    default_model: str | None = None
    aliases: tuple[tuple[str, str], ...] = ()
    """Short names that mean a model of this vendor once the vendor is chosen."""
    model_pattern: str | None = field(default=None, repr=False)
    """Regular expression for the names of its own models."""
    title: str = ""
    """Its name for people."""
    key_page: str = ""
    """Web page where its users get a key."""
    key_path: str = "/models"
    """Path of a request that checks a key."""

    @property
    def is_local(self) -> bool:
        """True if it is a program on this machine."""
        return not self.key_variables

    def makes(self, model: str) -> bool:
        """Return True if a model of this name is the vendor's own."""
        return self.model_pattern is not None and re.match(self.model_pattern, model, re.IGNORECASE) is not None


LOCAL_PORTS: Mapping[str, int] = MappingProxyType({"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000})
"""Vendors that are programs on this machine, with their default ports."""

VENDORS: tuple[Vendor, ...] = (
    Vendor(
        "anthropic",
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
        dialect="anthropic",
        base_url_variable="ANTHROPIC_BASE_URL",
        default_model="claude-sonnet-5-5",
        aliases=(("fast", "claude-haiku-5-5"), ("smart", "claude-opus-5-5")),
        model_pattern=r"claude-",
        title="Anthropic",
        key_page="https://platform.claude.com/settings/keys",
    ),
    Vendor(
        "openai",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        base_url_variable="OPENAI_BASE_URL",
        default_model="gpt-6.1-sol",
        aliases=(("fast", "gpt-6-luna"), ("smart", "gpt-6-astra")),
        model_pattern=r"(gpt-(?!oss)|o\d(-|$)|chatgpt-|codex-)",
        title="OpenAI",
        key_page="https://platform.openai.com/api-keys",
    ),
    Vendor(
        "deepseek",
        "https://api.deepseek.com",
        ("DEEPSEEK_API_KEY",),
        base_url_variable="DEEPSEEK_BASE_URL",
        default_model="deepseek-v4-pro",
        aliases=(("fast", "deepseek-v4-flash"), ("smart", "deepseek-v4-pro")),
        model_pattern=r"deepseek-",
        title="DeepSeek",
        key_page="https://platform.deepseek.com/api_keys",
    ),
    Vendor(
        "zai",
        "https://api.z.ai/api/paas/v4",
        ("ZAI_API_KEY", "Z_AI_API_KEY"),
        base_url_variable="ZAI_BASE_URL",
        default_model="glm-5.3",
        aliases=(("fast", "glm-5.3-flash"), ("smart", "glm-5.3")),
        model_pattern=r"glm-",
        title="Z.ai",
        key_page="https://z.ai/manage-apikey/apikey-list",
    ),
    Vendor(
        "zhipu",
        "https://open.bigmodel.cn/api/paas/v4",
        ("ZHIPUAI_API_KEY", "ZHIPU_API_KEY"),
        base_url_variable="ZHIPUAI_BASE_URL",
        default_model="glm-5.3",
        aliases=(("fast", "glm-5.3-flash"), ("smart", "glm-5.3")),
        model_pattern=r"glm-",
        title="Zhipu",
        key_page="https://open.bigmodel.cn/usercenter/apikeys",
    ),
    Vendor(
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        base_url_variable="DASHSCOPE_BASE_URL",
        default_model="qwen3.8-max",
        aliases=(("fast", "qwen3.8-flash"), ("smart", "qwen3.8-max")),
        model_pattern=r"(qwen|qwq-|qvq-)",
        title="Qwen (DashScope)",
        key_page="https://modelstudio.console.alibabacloud.com",
    ),
    Vendor(
        "moonshot",
        "https://api.moonshot.ai/v1",
        ("MOONSHOT_API_KEY",),
        base_url_variable="MOONSHOT_BASE_URL",
        default_model="kimi-k3.1-pro",
        aliases=(("fast", "kimi-k2.7-code"), ("smart", "kimi-k3.1-pro")),
        model_pattern=r"(kimi-|moonshot-)",
        title="Moonshot (Kimi)",
        key_page="https://platform.moonshot.ai/console/api-keys",
    ),
    Vendor(
        "mistral",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        default_model="mistral-large-4",
        aliases=(("fast", "mistral-small-2603"), ("smart", "mistral-large-4")),
        model_pattern=r"((mini|magi|code|dev)?stral|mistral|open-mi|ministral)",
        title="Mistral",
        key_page="https://console.mistral.ai/api-keys",
    ),
    Vendor(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        default_model="gemini-3.8-flash",
        aliases=(("fast", "gemini-3.1-flash-lite"), ("smart", "gemini-4-argon")),
        model_pattern=r"(gemini-|gemma-)",
        title="Gemini",
        key_page="https://aistudio.google.com/apikey",
    ),
    Vendor(
        "xai",
        "https://api.x.ai/v1",
        ("XAI_API_KEY",),
        default_model="grok-4.7",
        aliases=(("fast", "grok-code-fast-1"), ("smart", "grok-4.7")),
        model_pattern=r"grok-",
        title="xAI",
        key_page="https://console.x.ai",
    ),
    Vendor(
        "minimax",
        "https://api.minimax.io/v1",
        ("MINIMAX_API_KEY",),
        default_model="MiniMax-M3",
        aliases=(("fast", "MiniMax-M3.1-Flash"), ("smart", "MiniMax-M3")),
        model_pattern=r"minimax-",
        title="MiniMax",
        key_page="https://platform.minimax.io",
    ),
    Vendor(
        "openrouter",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        default_model="anthropic/claude-sonnet-5.5",
        aliases=(("sonnet", "anthropic/claude-sonnet-5.5"), ("opus", "anthropic/claude-opus-5.5")),
        title="OpenRouter",
        key_page="https://openrouter.ai/settings/keys",
        key_path="/key",  # its list of models needs no key
    ),
    Vendor(
        "groq",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        default_model="openai/gpt-oss-120b",
        aliases=(("fast", "openai/gpt-oss-20b"), ("smart", "openai/gpt-oss-120b")),
        title="Groq",
        key_page="https://console.groq.com/keys",
    ),
    *(Vendor(name, f"http://127.0.0.1:{port}/v1") for name, port in LOCAL_PORTS.items()),
)
"""Every vendor. If the keys of several are set and nothing else decides, the first is used."""

ALIASES: tuple[tuple[str, str], ...] = (
    ("sonnet", "claude-sonnet-5-5"),
    ("opus", "claude-opus-5-5"),
    ("haiku", "claude-haiku-5-5"),
    ("gpt", "gpt-6.1-sol"),
    ("deepseek", "deepseek-v4-pro"),
    ("glm", "glm-5.3"),
    ("qwen", "qwen3.8-max"),
    ("kimi", "kimi-k3.1-pro"),
    ("gemini", "gemini-3.8-flash"),
    ("grok", "grok-4.7"),
)
"""Short names of models, whatever the vendor; only `fast` and `smart` depend on it."""


def vendor_named(name: str) -> Vendor | None:
    """Return the vendor of this name."""
    return next((vendor for vendor in VENDORS if vendor.name == name), None)
