"""Differences between the servers that speak chat completions, as data.

The rule: a difference is a field here, never a vendor's name in the code that sends or reads. Each profile names the
page that it follows; fields that the page does not settle keep the default, which suits most servers.
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
"""Idle time-out of local servers, which send nothing while they read a long prompt, for minutes without a GPU."""

_WRITES_CALLS_AS_TEXT = r"qwen[-_]?2[._]?5[-_](\d+(\.\d+)?b[-_])?coder"
"""Names of models that write calls as text: Qwen2.5-Coder omits the tags of its template, which servers look for
(https://github.com/ollama/ollama/issues/12174, https://github.com/vllm-project/vllm/issues/32926)."""


@dataclass(frozen=True, slots=True)
class VendorProfile:
    """Format of requests to one vendor's server, and of its replies."""

    name: str
    domains: tuple[str, ...] = ()
    """Domains of its servers."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    asks_for_usage: bool = True
    """True if `stream_options` is sent, without which most servers count nothing."""
    reasoning_field: ReasoningField | None = None
    """Field in which the model's own thinking is sent back; None to leave it out."""
    needs_reasoning: bool = False
    """True if a reply without that field is refused; then missing thinking is sent as a blank."""
    thinking: Mapping[str, Any] = field(default_factory=dict)
    """Fields that turn thinking on; "$budget" is replaced by the number of tokens."""
    takes_images: bool = True
    takes_documents: bool = False
    max_id_chars: int | None = None
    """Longest id of a call, if the server accepts only plain ids; None to send any id unchanged."""
    unsupported_keywords: frozenset[str] = frozenset()
    """Keywords of JSON schema that the server cannot handle; they are left out of the tools."""
    takes_every_default: bool = True
    """True if schemas of tools may have a `default` anywhere, False if only with simple types."""
    needs_required: bool = False
    """True if each object in the schemas of tools must have a list of required properties, even an empty one."""
    min_name_chars: int = 1
    """Shortest name of a tool; shorter ones get underscores on the wire, which are removed from replies."""
    image_types: frozenset[str] | None = None
    """Media types of pictures that the server reads; None for all that panpan sends."""
    efforts: tuple[Effort, ...] = ()
    """Efforts that the server knows, lowest first; any other becomes the nearest one. Empty to send all unchanged."""
    asks_for_parallel_calls: bool = False
    """True if requests ask for several calls in one reply; most servers allow them by default."""
    streams_calls: bool = False
    """True if requests ask for the arguments of calls piece by piece (`tool_stream`), not each call at once."""
    idle_timeout_s: float | None = None
    """Default for the longest wait for the next bytes of a reply, in seconds; None for that of all servers."""
    calls_in_text: str | None = None
    """Regular expression for the names of models that write calls as text, whatever the server does."""

    def reads_calls_in_text(self, model: str) -> bool:
        """Return True if text of this model is searched for calls (`calls_in_text.py`)."""
        return self.calls_in_text is not None and re.search(self.calls_in_text, model, re.IGNORECASE) is not None


GENERIC = VendorProfile("generic", calls_in_text=_WRITES_CALLS_AS_TEXT)

GPT = VendorProfile(  # https://platform.openai.com/docs/api-reference/chat/create
    "gpt",
    domains=("openai.com", "openai.azure.com"),
    max_tokens_field="max_completion_tokens",
    takes_documents=True,
    max_id_chars=40,
)

GLM = VendorProfile(  # https://docs.z.ai/guides/capabilities/thinking-mode; the last chunk always has the usage
    "glm",
    domains=("z.ai", "bigmodel.cn"),
    asks_for_usage=False,
    reasoning_field="reasoning_content",
    thinking={"thinking": {"type": "enabled", "clear_thinking": False}},
    efforts=("low", "high", "max"),  # https://docs.bigmodel.cn/cn/guide/models/text/glm-5.3
    streams_calls=True,  # https://docs.z.ai/guides/tools/stream-tool
)

DEEPSEEK = VendorProfile(  # https://api-docs.deepseek.com/guides/thinking_mode
    "deepseek",
    domains=("deepseek.com",),
    reasoning_field="reasoning_content",
    needs_reasoning=True,
    thinking={"thinking": {"type": "enabled"}},
    takes_images=False,
)

QWEN = VendorProfile(  # https://docs.qwencloud.com/api-reference/chat/openai-chat
    "qwen",
    domains=("aliyuncs.com",),
    max_tokens_field="max_completion_tokens",  # the older field does not limit the thinking
    asks_for_parallel_calls=True,
    efforts=("low", "medium", "xhigh"),  # from the template of Qwen 3.8; older models have none
    thinking={"enable_thinking": True, "thinking_budget": "$budget"},
)

KIMI = VendorProfile(  # https://platform.kimi.ai/docs/api/chat
    "kimi",
    domains=("moonshot.ai", "moonshot.cn", "kimi.com", "kimi.ai"),
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
    domains=("ollama.com",),
    reasoning_field="reasoning",
    image_types=frozenset({"image/jpeg", "image/png", "image/webp"}),  # its openai/openai.go refuses all others
    efforts=("low", "medium", "high", "max"),  # https://github.com/ollama/ollama/pull/17252
    idle_timeout_s=_LOCAL_IDLE_TIMEOUT_S,
    calls_in_text=_WRITES_CALLS_AS_TEXT,
)

LLAMA_CPP = VendorProfile(  # https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
    "llama.cpp",
    reasoning_field="reasoning_content",
    unsupported_keywords=frozenset({"pattern", "format"}),  # its grammar has only anchored patterns and few formats
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

_BY_DOMAIN = {domain: profile for profile in PROFILES.values() for domain in profile.domains}
_BY_LOCAL_PORT = {
    LOCAL_PORTS[vendor]: profile
    for vendor, profile in (("ollama", OLLAMA), ("lmstudio", LM_STUDIO), ("llamacpp", LLAMA_CPP), ("vllm", VLLM))
}


def profile_elsewhere(maker: VendorProfile) -> VendorProfile:
    """Return the profile of a maker's model at an unknown server: the model's needs, and the defaults for the rest."""
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
    """Return the profile of a server, judging by its address or its name in the settings.

    Args:
        base_url: Its address; None for OpenAI's own.
        name: Its name in the settings; the name of a profile chooses it for a gateway or a local server.
    """
    if not base_url:
        return GPT
    try:
        parts = urlsplit(base_url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError:
        return GENERIC
    for domain, profile in _BY_DOMAIN.items():
        if host == domain or host.endswith(f".{domain}"):
            return profile
    if name is not None and name in PROFILES:
        return PROFILES[name]
    is_local = host == "localhost" or host == "::1" or host.startswith("127.")
    return _BY_LOCAL_PORT.get(port or 0, GENERIC) if is_local else GENERIC
