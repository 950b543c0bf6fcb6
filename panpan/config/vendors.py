"""Who serves models, where, and which environment variables speak of them; the programs that serve models here, too.

A vendor's key is for its own address, or for the address in its own `*_BASE_URL` variable, and for nothing else.
Addresses are those of the vendors' own pages on their OpenAI-compatible or Anthropic API, as of November 2026.
"""

import re
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Literal, TypeAlias

from panpan.types.dataclass import dataclass

Dialect: TypeAlias = Literal["anthropic", "openai"]
"""The Messages API, or OpenAI's chat completions."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """One place that serves models."""

    name: str
    """As in `name/model`."""
    base_url: str
    key_variables: tuple[str, ...] = ()
    """Environment variables that may hold its key, first one first; none for a local program, which asks for none."""
    dialect: Dialect = "openai"
    base_url_variable: str | None = None
    """Environment variable that moves it, together with its key."""
    default_model: str | None = None
    aliases: tuple[tuple[str, str], ...] = ()
    """Short names that mean a model of this vendor once the vendor is chosen."""
    model_pattern: str | None = field(default=None, repr=False)
    """Regular expression for names of models that are its own."""

    @property
    def is_local(self) -> bool:
        """Whether it is a program on this machine."""
        return not self.key_variables

    def makes(self, model: str) -> bool:
        """Return whether a model of this name is the vendor's own."""
        return self.model_pattern is not None and re.match(self.model_pattern, model, re.IGNORECASE) is not None


LOCAL_PORTS: Mapping[str, int] = MappingProxyType({"ollama": 11434, "lmstudio": 1234, "llamacpp": 8080, "vllm": 8000})
"""Vendors that are programs on this machine, and where each listens unless told otherwise."""

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
    ),
    Vendor(
        "openai",
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        base_url_variable="OPENAI_BASE_URL",
        default_model="gpt-6.1-sol",
        aliases=(("fast", "gpt-6-luna"), ("smart", "gpt-6-astra")),
        model_pattern=r"(gpt-(?!oss)|o\d(-|$)|chatgpt-|codex-)",
    ),
    Vendor(
        "deepseek",
        "https://api.deepseek.com",
        ("DEEPSEEK_API_KEY",),
        base_url_variable="DEEPSEEK_BASE_URL",
        default_model="deepseek-v4-pro",
        aliases=(("fast", "deepseek-v4-flash"), ("smart", "deepseek-v4-pro")),
        model_pattern=r"deepseek-",
    ),
    Vendor(
        "zai",
        "https://api.z.ai/api/paas/v4",
        ("ZAI_API_KEY", "Z_AI_API_KEY"),
        base_url_variable="ZAI_BASE_URL",
        default_model="glm-5.3",
        aliases=(("fast", "glm-5.3-flash"), ("smart", "glm-5.3")),
        model_pattern=r"glm-",
    ),
    Vendor(
        "zhipu",
        "https://open.bigmodel.cn/api/paas/v4",
        ("ZHIPUAI_API_KEY", "ZHIPU_API_KEY"),
        base_url_variable="ZHIPUAI_BASE_URL",
        default_model="glm-5.3",
        aliases=(("fast", "glm-5.3-flash"), ("smart", "glm-5.3")),
        model_pattern=r"glm-",
    ),
    Vendor(
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        ("DASHSCOPE_API_KEY",),
        base_url_variable="DASHSCOPE_BASE_URL",
        default_model="qwen3.8-max",
        aliases=(("fast", "qwen3.8-flash"), ("smart", "qwen3.8-max")),
        model_pattern=r"(qwen|qwq-|qvq-)",
    ),
    Vendor(
        "moonshot",
        "https://api.moonshot.ai/v1",
        ("MOONSHOT_API_KEY",),
        base_url_variable="MOONSHOT_BASE_URL",
        default_model="kimi-k3.1-pro",
        aliases=(("fast", "kimi-k2.7-code"), ("smart", "kimi-k3.1-pro")),
        model_pattern=r"(kimi-|moonshot-)",
    ),
    Vendor(
        "mistral",
        "https://api.mistral.ai/v1",
        ("MISTRAL_API_KEY",),
        default_model="mistral-large-4",
        aliases=(("fast", "mistral-small-2603"), ("smart", "mistral-large-4")),
        model_pattern=r"((mini|magi|code|dev)?stral|mistral|open-mi|ministral)",
    ),
    Vendor(
        "gemini",
        "https://generativelanguage.googleapis.com/v1beta/openai",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        default_model="gemini-3.8-flash",
        aliases=(("fast", "gemini-3.1-flash-lite"), ("smart", "gemini-4-argon")),
        model_pattern=r"(gemini-|gemma-)",
    ),
    Vendor(
        "xai",
        "https://api.x.ai/v1",
        ("XAI_API_KEY",),
        default_model="grok-4.7",
        aliases=(("fast", "grok-code-fast-1"), ("smart", "grok-4.7")),
        model_pattern=r"grok-",
    ),
    Vendor(
        "minimax",
        "https://api.minimax.io/v1",
        ("MINIMAX_API_KEY",),
        default_model="MiniMax-M3",
        aliases=(("fast", "MiniMax-M3.1-Flash"), ("smart", "MiniMax-M3")),
        model_pattern=r"minimax-",
    ),
    Vendor(
        "openrouter",
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        default_model="anthropic/claude-sonnet-5.5",
        aliases=(("sonnet", "anthropic/claude-sonnet-5.5"), ("opus", "anthropic/claude-opus-5.5")),
    ),
    Vendor(
        "groq",
        "https://api.groq.com/openai/v1",
        ("GROQ_API_KEY",),
        default_model="openai/gpt-oss-120b",
        aliases=(("fast", "openai/gpt-oss-20b"), ("smart", "openai/gpt-oss-120b")),
    ),
    *(Vendor(name, f"http://127.0.0.1:{port}/v1") for name, port in LOCAL_PORTS.items()),
)
"""Every vendor; where keys of several are set and nothing else decides, the first is taken."""

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
"""Short names that mean a model wherever they are said; `fast` and `smart` depend on the vendor."""


def vendor_named(name: str) -> Vendor | None:
    """Return the vendor of this name."""
    return next((vendor for vendor in VENDORS if vendor.name == name), None)
