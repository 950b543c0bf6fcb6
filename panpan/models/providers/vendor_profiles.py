"""What differs between the servers that speak chat completions, as data.

The rule: a difference is a field here, never a vendor's name in the code that sends or reads. Each profile names the
page that it follows; what a page leaves open is left at the default, which suits most servers.
"""

import re
from collections.abc import Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from panpan.config.models import LOCAL_PORTS
from panpan.types.dataclass import dataclass
from panpan.types.llm import Effort

ReasoningField: TypeAlias = Literal["reasoning_content", "reasoning"]

_LOCAL_IDLE_TIMEOUT_S = 600.0
"""A local server says nothing while it reads a long prompt, which takes minutes without a graphics card."""

_WRITES_CALLS_AS_TEXT = r"qwen[-_]?2[._]?5[-_](\d+(\.\d+)?b[-_])?coder"
"""Qwen2.5-Coder does not write the tags that its template asks for and that servers look for
(https://github.com/ollama/ollama/issues/12174, https://github.com/vllm-project/vllm/issues/32926)."""


@dataclass(frozen=True, slots=True)
class VendorProfile:
    """How to talk to one vendor's server."""

    name: str
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    asks_for_usage: bool = True
    """Whether to send `stream_options`; without it most servers count nothing."""
    reasoning_field: ReasoningField | None = None
    """Where the model's own thinking is sent back."""
    needs_reasoning: bool = False
    """True if a reply without that field is refused; then a blank stands for thinking that is not there."""
    thinking: Mapping[str, Any] = field(default_factory=dict)
    """Sent when thinking is asked for; "$budget" stands for the number of tokens."""
    takes_images: bool = True
    takes_documents: bool = False
    max_id_chars: int | None = None
    """Longest id of a call, where other ids than plain ones are refused; None: any id is sent as it came."""
    unsupported_keywords: frozenset[str] = frozenset()
    """Keywords of JSON schema that the server stumbles over; left out of the tools."""
    takes_every_default: bool = True
    """True if `default` may stand anywhere in the schemas of tools, and not only with simple types."""
    needs_required: bool = False
    """True if each object in the schemas of tools must list the properties that it needs, also where it needs none."""
    min_name_chars: int = 1
    """Shortest name of a tool; shorter ones get underscores on the wire and lose them again in replies."""
    image_types: frozenset[str] | None = None
    """Media types of pictures that the server reads; None: every one that panpan sends."""
    efforts: tuple[Effort, ...] = ()
    """Efforts that the server knows, lowest first; others become the nearest of them. Empty: all are sent as asked."""
    asks_for_parallel_calls: bool = False
    """Whether to ask for several calls in one reply; most servers allow them unasked."""
    streams_calls: bool = False
    """Whether to ask for the arguments of calls as they are written (`tool_stream`), not each call at once."""
    idle_timeout_s: float | None = None
    """Longest wait for the next bytes of a reply, in seconds, where nothing else is said; None: that of all servers."""
    calls_in_text: str | None = None
    """Found in the names of models whose calls reach us as text, whatever the server does."""

    def reads_calls_in_text(self, model: str) -> bool:
        """True if text of this model is looked at for calls (`calls_in_text.py`)."""
        return self.calls_in_text is not None and re.search(self.calls_in_text, model, re.IGNORECASE) is not None


GENERIC = VendorProfile("generic", calls_in_text=_WRITES_CALLS_AS_TEXT)

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
    efforts=("low", "high", "max"),  # https://docs.bigmodel.cn/cn/guide/models/text/glm-5.3
    streams_calls=True,  # https://docs.z.ai/guides/tools/stream-tool
)

DEEPSEEK = VendorProfile(  # https://api-docs.deepseek.com/guides/thinking_mode
    "deepseek",
    reasoning_field="reasoning_content",
    needs_reasoning=True,
    thinking={"thinking": {"type": "enabled"}},
    takes_images=False,
)

QWEN = VendorProfile(  # https://docs.qwencloud.com/api-reference/chat/openai-chat
    "qwen",
    max_tokens_field="max_completion_tokens",  # the older one does not limit the thinking
    asks_for_parallel_calls=True,
    efforts=("low", "medium", "xhigh"),  # of the template of Qwen 3.8; older ones know none
    thinking={"enable_thinking": True, "thinking_budget": "$budget"},
)

KIMI = VendorProfile(  # https://platform.kimi.ai/docs/api/chat
    "kimi",
    max_tokens_field="max_completion_tokens",
    unsupported_keywords=frozenset({"pattern", "format"}),  # https://github.com/MoonshotAI/walle, its own subset
    takes_every_default=False,
    needs_required=True,  # https://github.com/NousResearch/hermes-agent/pull/68154
    min_name_chars=3,  # https://platform.kimi.ai/docs/api/tool-use
    efforts=("low", "high", "max"),  # https://platform.kimi.ai/docs/guide/use-thinking-effort
    reasoning_field="reasoning_content",
    needs_reasoning=True,
    thinking={"thinking": {"type": "enabled"}},
)

OLLAMA = VendorProfile(  # https://docs.ollama.com/api/openai-compatibility
    "ollama",
    reasoning_field="reasoning",
    image_types=frozenset({"image/jpeg", "image/png", "image/webp"}),  # its openai/openai.go refuses all others
    efforts=("low", "medium", "high", "max"),  # https://github.com/ollama/ollama/pull/17252
    idle_timeout_s=_LOCAL_IDLE_TIMEOUT_S,
    calls_in_text=_WRITES_CALLS_AS_TEXT,
)

LLAMA_CPP = VendorProfile(  # https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
    "llama.cpp",
    reasoning_field="reasoning_content",
    unsupported_keywords=frozenset({"pattern", "format"}),  # its grammar takes anchored patterns and few formats only
    idle_timeout_s=_LOCAL_IDLE_TIMEOUT_S,
    calls_in_text=_WRITES_CALLS_AS_TEXT,
)

VLLM = VendorProfile(  # https://docs.vllm.ai/en/latest/features/reasoning_outputs/
    "vllm",
    reasoning_field="reasoning",
    idle_timeout_s=_LOCAL_IDLE_TIMEOUT_S,
    calls_in_text=_WRITES_CALLS_AS_TEXT,
)

LM_STUDIO = VendorProfile(  # https://lmstudio.ai/docs/developer/openai-compat/tools
    "lmstudio",
    unsupported_keywords=frozenset({"pattern", "format"}),  # it runs llama.cpp
    idle_timeout_s=_LOCAL_IDLE_TIMEOUT_S,
    calls_in_text=_WRITES_CALLS_AS_TEXT,
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
_BY_LOCAL_PORT = {
    LOCAL_PORTS[vendor]: profile
    for vendor, profile in (("ollama", OLLAMA), ("lmstudio", LM_STUDIO), ("llamacpp", LLAMA_CPP), ("vllm", VLLM))
}


def profile_elsewhere(maker: VendorProfile) -> VendorProfile:
    """Return the profile of a maker's model at an unknown server: the model's needs, and else what suits most."""
    return replace(
        maker,
        max_tokens_field=GENERIC.max_tokens_field,
        asks_for_usage=GENERIC.asks_for_usage,
        streams_calls=GENERIC.streams_calls,
        asks_for_parallel_calls=GENERIC.asks_for_parallel_calls,
        efforts=GENERIC.efforts,
        calls_in_text=GENERIC.calls_in_text,
    )


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
