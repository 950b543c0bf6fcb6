"""What differs between the servers that speak chat completions, as data.

The rule: a difference is a field here, never a vendor's name in the code that sends or reads. Each profile names the
page that it follows; what a page leaves open is left at the default, which suits most servers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning"]

_LOCAL_IDLE_TIMEOUT_S = 600.0
"""A local server says nothing while it reads a long prompt, which takes minutes without a graphics card."""


@dataclass(frozen=True, slots=True)
class VendorProfile:
    """How to talk to one vendor's server."""

    name: str
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    asks_for_usage: bool = True
    """Whether to send `stream_options`; without it most servers count nothing."""
    reasoning_field: ReasoningField | None = None
    """Where the model's own thinking is sent back; None: it is not."""
    needs_reasoning: bool = False
    """Whether a reply without that field is refused; then a blank stands for thinking that is not there."""
    thinking: Mapping[str, Any] = field(default_factory=dict)
    """Sent when thinking is asked for; "$budget" stands for the number of tokens."""
    takes_images: bool = True
    takes_documents: bool = False
    max_id_chars: int | None = None
    """Longest id of a call, where other ids than plain ones are refused; None: any id is sent as it came."""
    unsupported_keywords: frozenset[str] = frozenset()
    """Keywords of JSON schema that the server stumbles over; left out of the tools."""
    idle_timeout_s: float | None = None
    """Longest wait for the next bytes of a reply, in seconds, where nothing else is said; None: that of all servers."""


GENERIC = VendorProfile("generic")

GPT = VendorProfile(  # https://platform.openai.com/docs/api-reference/chat/create
    "gpt",
    max_tokens_field="max_completion_tokens",
    takes_documents=True,
    max_id_chars=40,
)

GLM = VendorProfile(  # https://docs.z.ai/guides/capabilities/thinking-mode; the usage comes unasked in the last chunk
    "glm",
    asks_for_usage=False,
    reasoning_field="reasoning_content",
    thinking={"thinking": {"type": "enabled", "clear_thinking": False}},
)

DEEPSEEK = VendorProfile(  # https://api-docs.deepseek.com/guides/thinking_mode
    "deepseek",
    reasoning_field="reasoning_content",
    needs_reasoning=True,
    thinking={"thinking": {"type": "enabled"}},
    takes_images=False,
)

QWEN = VendorProfile(  # https://www.alibabacloud.com/help/en/model-studio/deep-thinking
    "qwen",
    thinking={"enable_thinking": True, "thinking_budget": "$budget"},
)

KIMI = VendorProfile(  # https://platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model
    "kimi",
    reasoning_field="reasoning_content",
    needs_reasoning=True,
    thinking={"thinking": {"type": "enabled"}},
)

OLLAMA = VendorProfile(  # https://docs.ollama.com/api/openai-compatibility
    "ollama",
    reasoning_field="reasoning",
    idle_timeout_s=_LOCAL_IDLE_TIMEOUT_S,
)

LLAMA_CPP = VendorProfile(  # https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
    "llama.cpp",
    reasoning_field="reasoning_content",
    unsupported_keywords=frozenset({"pattern", "format"}),  # its grammar takes anchored patterns and few formats only
    idle_timeout_s=_LOCAL_IDLE_TIMEOUT_S,
)

VLLM = VendorProfile(  # https://docs.vllm.ai/en/latest/features/reasoning_outputs/
    "vllm",
    reasoning_field="reasoning",
    idle_timeout_s=_LOCAL_IDLE_TIMEOUT_S,
)

LM_STUDIO = VendorProfile(  # https://lmstudio.ai/docs/developer/openai-compat/tools
    "lmstudio",
    unsupported_keywords=frozenset({"pattern", "format"}),  # it runs llama.cpp
    idle_timeout_s=_LOCAL_IDLE_TIMEOUT_S,
)

PROFILES: Mapping[str, VendorProfile] = MappingProxyType(
    {profile.name: profile for profile in (GENERIC, GPT, GLM, DEEPSEEK, QWEN, KIMI, OLLAMA, LLAMA_CPP, VLLM, LM_STUDIO)}
)

_BY_DOMAIN = (
    ("openai.com", GPT),
    ("openai.azure.com", GPT),
    ("z.ai", GLM),
    ("bigmodel.cn", GLM),
    ("deepseek.com", DEEPSEEK),
    ("aliyuncs.com", QWEN),
    ("moonshot.ai", KIMI),
    ("moonshot.cn", KIMI),
    ("kimi.com", KIMI),
    ("kimi.ai", KIMI),
    ("ollama.com", OLLAMA),
)
_BY_LOCAL_PORT = {11434: OLLAMA, 1234: LM_STUDIO, 8080: LLAMA_CPP, 8000: VLLM}


def profile_for(base_url: str | None, name: str | None = None) -> VendorProfile:
    """Return the profile of a server, as far as its address or its name in the settings tells.

    Args:
        base_url: Its address; None is OpenAI's own.
        name: Its name; that of a profile stands for a gateway or a local server that behaves like it.
    """
    if not base_url:
        return GPT
    try:
        parts = urlsplit(base_url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return GENERIC
    for domain, profile in _BY_DOMAIN:
        if host == domain or host.endswith(f".{domain}"):
            return profile
    if name is not None and name in PROFILES:
        return PROFILES[name]
    is_local = host == "localhost" or host == "::1" or host.startswith("127.")
    return _BY_LOCAL_PORT.get(port or 0, GENERIC) if is_local else GENERIC
