"""Our errors from those of providers, for both dialects and for every server that speaks one of them.

Called once per failure, by the transport (an HTTP status) and by the providers (an error in mid-stream). The rule: an
error's text is one short line without control characters and without secrets, whatever the server wrote.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from panpan.config.models import vendor_named
from panpan.errors import (
    AuthenticationError,
    ContextOverflowError,
    ProviderError,
    RateLimitError,
    RetryableError,
)
from panpan.system.text.redact import Redactor
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MAX_DETAIL_CHARS = 400
"""Longest part of a provider's own message that is shown."""

THE_KEY = "the API key"
"""Name of a rejected key in errors, until the client replaces it by the place of the key."""

_MAX_PAGE_CHARS = 8000

_RETRYABLE_STATUSES = frozenset({408, 409, 425, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
"""Statuses that may pass: time-outs, conflicts, overload, and those of proxies in front (520 to 524: Cloudflare)."""

_NOT_FOUND = 404

_RETRYABLE_KINDS = frozenset(
    {"overloaded_error", "api_error", "timeout_error", "server_error", "internal_server_error", "service_unavailable"}
)
_RATE_LIMIT_KINDS = frozenset({"rate_limit_error", "rate_limit_exceeded", "too_many_requests"})
_AUTHENTICATION_KINDS = frozenset({"authentication_error", "permission_error", "invalid_api_key", "no_db_connection"})
"""Kinds of errors about the key. The last is litellm's, with status 400, for a wrong key if it has no database of keys
(https://github.com/BerriAI/litellm/issues/12273)."""

_SPENT_KINDS = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached"})
"""Kinds of errors about a spent quota, which OpenAI sends with status 429 although no pause helps."""

_OVERFLOW_KINDS = frozenset({"context_length_exceeded", "exceed_context_size_error", "request_too_large"})
_OVERFLOW_TEXT = (  # a string: it is compiled only when a request fails
    r"prompt (?:is )?too long"  # Anthropic, Ollama
    r"|exceeds? (?:the )?(?:model'?s? )?(?:maximum )?context (?:limit|length|size|window)"  # Anthropic, OpenAI, GLM
    r"|maximum (?:context|prompt) length"  # OpenAI, DeepSeek, vLLM, Mistral; xAI
    r"|context_length_exceeded"
    r"|exceeds? the available context size"  # llama.cpp
    r"|context (?:length|size|window) (?:has been |is |was )?(?:exceed|overflow|reached)"  # MiniMax, many others
    r"|context the overflows|reached context length of"  # LM Studio
    r"|(?:greater|larger|longer|more) than the (?:model'?s )?context (?:length|window|size)"  # LM Studio, SGLang
    r"|longer than the maximum model length|too long to fit into the model"  # vLLM
    r"|(?:input|prompt) token count (?:(?:of |is )?\(?\d+\)? )?(?:exceeds|but )"  # Gemini, GitHub
    r"|range of input length should be"  # Qwen (DashScope)
    r"|exceed(?:s|ed)? (?:the )?model(?:'s)? (?:token|context) (?:limit|length)"  # Kimi
    r"|input (?:is |length |token length )?(?:too long|exceeds)"  # Bedrock, Kimi
    r"|prompt exceeds max|prompt ?超长"  # GLM
    r"|reduce the length of the (?:messages|input|prompt)"  # Groq, Cerebras
    r"|`inputs` (?:must have less than|tokens \+ `max_new_tokens` must)"  # servers of Hugging Face's text generation
    r"|reached its context window limit"
    r"|too many (?:input )?tokens"
)

_FINAL_TEXT = compile_late(r"image input is not supported", re.IGNORECASE)
"""Error of llama.cpp, with status 500, for a picture to a model that takes none; another try cannot help."""

_SECRETLESS = Redactor()


@dataclass(frozen=True, slots=True)
class WireError:
    """A server's account of a failure, as far as it could be read."""

    kind: str = ""
    """Its type or code, such as "overloaded_error"; empty if it has none."""
    message: str = ""
    status: int | None = None
    request_id: str | None = None
    retry_after_s: float | None = None


def read_error_body(body: object) -> WireError:
    """Return the error in a document: `{"error": {"type", "code", "message"}}` and the many looser forms of it."""
    if isinstance(body, str):
        return WireError(message=_without_markup(body))
    if isinstance(body, list) and len(body) == 1:
        body = body[0]  # Gemini
    if not isinstance(body, Mapping):
        return WireError()
    error = body.get("error", body)
    request_id = body.get("request_id")
    if not isinstance(error, Mapping):
        error = {"message": error}
    message = error.get("message") or error.get("detail") or error.get("msg") or body.get("message") or ""
    code, kind = error.get("code"), error.get("type")
    if isinstance(code, str) and re.fullmatch("[45][0-9]{2}", code):
        code = int(code)  # litellm
    names = [str(name) for name in (code, kind) if isinstance(name, str) and name]
    known = next((name for name in names if name.lower() in _KNOWN_KINDS), names[0] if names else "")
    return WireError(
        kind=known.lower(),
        message=message if isinstance(message, str) else str(message),
        status=code if isinstance(code, int) and 400 <= code < 600 else None,
        request_id=request_id if isinstance(request_id, str) else None,
    )


def provider_error(
    error: WireError, *, provider: str, redactor: Redactor = _SECRETLESS, is_mid_stream: bool = False
) -> ProviderError:
    """Return our error for a server's.

    If a server breaks off in the middle of a reply without a reason, another try may succeed.
    """
    detail = one_line(error.message, redactor) or error.kind
    status = error.status
    common: dict[str, Any] = {"provider": provider, "status": status, "request_id": error.request_id}
    said = f": {detail}" if detail else ""
    if _is_overflow(error):
        return ContextOverflowError(
            f"the request is longer than the model's context window{said}; start a new session, ask for less at once, "
            "or choose a model with a larger window",
            **common,
        )
    if error.kind in _SPENT_KINDS or status == 402:
        return ProviderError(f"{provider} refuses to go on until the account is in order{said}", **common)
    if error.kind in _AUTHENTICATION_KINDS or status in (401, 403):
        vendor = vendor_named(provider)
        who = vendor.title if vendor is not None else provider
        if status == 403:
            return AuthenticationError(f"{who} refuses access to this (403){said}", **common)
        return AuthenticationError(f"{who} rejected {THE_KEY}{f' ({detail})' if detail else ''}", **common)
    if error.kind in _RATE_LIMIT_KINDS or status == 429:
        return RateLimitError(f"{provider} asks to slow down{said}", retry_after_s=error.retry_after_s, **common)
    if _may_heal(error, is_mid_stream=is_mid_stream):
        what = f" ({status})" if status else ""
        return RetryableError(f"{provider} has a problem{what}{said}", retry_after_s=error.retry_after_s, **common)
    what = f" ({status})" if status else ""
    is_about_model = status == _NOT_FOUND and "model" in f"{error.kind} {detail}".lower()
    advice = "; choose another model: /model, or --model" if is_about_model else ""
    return ProviderError(f"{provider} refused the request{what}{said}{advice}", **common)


def retry_after_s(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """Return the seconds that the server asks to wait: `retry-after-ms`, or `retry-after` as seconds or as a date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None or value is None:
        return seconds
    try:
        moment = parsedate_to_datetime(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())


def one_line(text: str, redactor: Redactor = _SECRETLESS) -> str:
    """Return the text on one line, without control characters or secrets, and cut to `MAX_DETAIL_CHARS`."""
    text = redactor.redact(clean_for_terminal(text[:_MAX_PAGE_CHARS]))
    text = " ".join(text.split())
    return text if len(text) <= MAX_DETAIL_CHARS else text[:MAX_DETAIL_CHARS].rstrip() + " …"


def _without_markup(text: str) -> str:
    """Return the title of a proxy's HTML page, or other text as it is."""
    if not text.lstrip().startswith("<"):
        return text
    title = re.search(r"<title[^>]*>([^<]{1,200})", text[:_MAX_PAGE_CHARS], re.IGNORECASE)
    return title[1] if title else re.sub(r"<[^>]*>", " ", text[:_MAX_PAGE_CHARS])


def _is_overflow(error: WireError) -> bool:
    if error.kind in _OVERFLOW_KINDS or error.status == 413:
        return True
    may_say_so = error.status is None or error.status in (400, 422, 500)  # 500: some local servers
    if not may_say_so or error.kind in _RATE_LIMIT_KINDS:
        return False
    return re.search(_OVERFLOW_TEXT, error.message[:_MAX_PAGE_CHARS], re.IGNORECASE) is not None


def _may_heal(error: WireError, *, is_mid_stream: bool) -> bool:
    if _FINAL_TEXT.search(error.message[:_MAX_PAGE_CHARS]):
        return False
    if error.kind in _RETRYABLE_KINDS or error.status in _RETRYABLE_STATUSES:
        return True
    return is_mid_stream and not _is_named(error)


def _is_named(error: WireError) -> bool:
    """Return True if the server named a problem that another try cannot solve."""
    return error.kind in _FINAL_KINDS or (error.status is not None and error.status < 500)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value else -1.0
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


_FINAL_KINDS = frozenset(
    {"invalid_request_error", "not_found_error", "model_not_found", "bad_request", "billing_error"}
)
_KNOWN_KINDS = (
    _RETRYABLE_KINDS | _RATE_LIMIT_KINDS | _AUTHENTICATION_KINDS | _SPENT_KINDS | _OVERFLOW_KINDS | _FINAL_KINDS
)
