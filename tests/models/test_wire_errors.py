from datetime import UTC, datetime
from typing import Any

import pytest

from panpan.errors import (
    AuthenticationError,
    ContextOverflowError,
    ProviderError,
    RateLimitError,
    RetryableError,
)
from panpan.models.wire_errors import WireError, one_line, provider_error, read_error_body, retry_after_s
from panpan.system.text.redact import Redactor

OVERFLOWS: list[tuple[int | None, Any]] = [
    # https://platform.claude.com/docs/en/build-with-claude/context-windows
    (400, {"type": "error", "error": {"type": "invalid_request_error",
                                      "message": "prompt is too long: 208310 tokens > 200000 maximum"}}),
    (400, {"error": {"type": "invalid_request_error",
                     "message": "input length and `max_tokens` exceed context limit: 199211 + 20000 > 200000"}}),
    (413, {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}),
    # https://platform.openai.com/docs/guides/error-codes
    (400, {"error": {"code": "context_length_exceeded", "type": "invalid_request_error", "param": "messages",
                     "message": "This model's maximum context length is 128000 tokens."}}),
    # llama.cpp, tools/server/README.md
    (400, {"error": {"code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 9999, "n_ctx": 4096,
                     "message": "the request exceeds the available context size, try increasing it"}}),
    # vLLM, which once put the error at the top of the document
    (400, {"object": "error", "type": "BadRequestError", "code": 400, "param": None,
           "message": "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens"}),
    # DashScope
    (400, {"error": {"code": "invalid_parameter_error", "type": "invalid_request_error",
                     "message": "Range of input length should be [1, 98304]"}}),
    # Kimi
    (400, {"error": {"type": "invalid_request_error",
                     "message": "Invalid request: Your request exceeded model token limit: 262144"}}),
    # LM Studio, in the stream
    (None, {"error": "The number of tokens to keep from the initial prompt is greater than the context length"}),
    # Ollama
    (400, {"error": {"message": "input length exceeds the context length", "type": "api_error", "code": None}}),
    # Gemini, whose error is in a list
    (400, [{"error": {"code": 400, "status": "INVALID_ARGUMENT",
                      "message": "The input token count (1200293) exceeds the maximum number of tokens allowed."}}]),
]  # fmt: skip
IN_WORDS_ALONE = [
    "Your input exceeds the context window of this model. Please adjust your input and try again.",  # OpenAI
    "The input token count exceeds the maximum number of tokens allowed 1048575.",  # Gemini
    "Unable to submit request because the input token count is 1200000 but the model only supports up to 9.",  # Vertex
    "prompt token count of 130000 exceeds the limit of 128000",  # GitHub
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",  # xAI
    "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",  # Mistral
    "Please reduce the length of the messages or completion.",  # Groq, Cerebras
    "Context size has been exceeded.",  # llama.cpp
    "prompt too long; exceeded max context length by 27 tokens",  # Ollama
    "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with 4096",
    "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",  # vLLM
    "The prompt (total length 25938) is too long to fit into the model (context length 4096).",  # vLLM
    "The input (5000 tokens) is longer than the model's context length (4096 tokens).",  # SGLang
    "`inputs` must have less than 4096 tokens. Given: 5000",  # text-generation-inference
    "invalid params, context window exceeds limit (2013)",  # MiniMax
    "Prompt exceeds max length",  # GLM
    "Input token length too long",  # Kimi
    "Input is too long for requested model.",  # Bedrock
]


@pytest.mark.parametrize(("status", "body"), OVERFLOWS)
def test_too_long_request_is_recognised(status: int | None, body: Any) -> None:
    error = provider_error(with_status(read_error_body(body), status), provider="p", is_mid_stream=status is None)

    assert type(error) is ContextOverflowError


@pytest.mark.parametrize("words", IN_WORDS_ALONE)
def test_too_long_request_is_recognised_by_many_servers_words(words: str) -> None:
    error = provider_error(WireError(message=words, status=400), provider="p")

    assert type(error) is ContextOverflowError


@pytest.mark.parametrize(
    "words",
    [
        "max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens for this model",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
        "messages: text content blocks must be non-empty",
        "input should be a valid list",
    ],
)
def test_other_refusals_do_not_count_as_too_long(words: str) -> None:
    assert type(provider_error(WireError(message=words, status=400), provider="p")) is ProviderError


def with_status(error: WireError, status: int | None) -> WireError:
    return WireError(kind=error.kind, message=error.message, status=status or error.status)


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (401, "authentication_error", AuthenticationError),
        (403, "permission_error", AuthenticationError),
        (402, "", ProviderError),
        (404, "not_found_error", ProviderError),
        (400, "invalid_request_error", ProviderError),
        (422, "", ProviderError),
        (429, "rate_limit_error", RateLimitError),
        (429, "insufficient_quota", ProviderError),
        (408, "", RetryableError),
        (409, "", RetryableError),
        (500, "api_error", RetryableError),
        (502, "", RetryableError),
        (503, "", RetryableError),
        (529, "overloaded_error", RetryableError),
        (400, "no_db_connection", AuthenticationError),  # litellm
    ],
)
def test_status_decides_if_an_error_is_retryable(status: int, kind: str, expected: type[ProviderError]) -> None:
    error = provider_error(WireError(kind=kind, message="why", status=status), provider="p")

    assert type(error) is expected
    assert error.status == status
    assert "why" in str(error)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": {"type": "overloaded_error", "message": "Overloaded"}}, RetryableError),
        ({"error": {"type": "rate_limit_error", "message": "slow"}}, RateLimitError),
        ({"error": {"type": "invalid_request_error", "message": "bad"}}, ProviderError),
        ({"error": {"type": "authentication_error", "message": "no"}}, AuthenticationError),
        ({"error": {"message": "boom", "code": 503}}, RetryableError),
        ({"error": {"message": "boom", "code": 400}}, ProviderError),
        ({"error": {"message": "boom", "type": "None", "code": "400"}}, ProviderError),  # litellm
        ({"error": {"message": "boom", "type": "None", "code": "429"}}, RateLimitError),
        ({"error": {"message": "image input is not supported", "type": "server_error", "code": 500}}, ProviderError),
        ({"error": "the model crashed"}, RetryableError),
        ({"error": {"type": "something_new", "message": "?"}}, RetryableError),
        ({}, RetryableError),
    ],
)
def test_mid_stream_errors_are_classified_by_type(body: Any, expected: type[ProviderError]) -> None:
    error = provider_error(read_error_body(body), provider="p", is_mid_stream=True)

    assert type(error) is expected


@pytest.mark.parametrize(
    "body",
    [None, 7, [], "text", {"error": None}, {"error": []}, {"error": {"message": {"a": 1}, "type": 7, "code": []}}],
)
def test_error_body_of_any_content_makes_a_provider_error(body: Any) -> None:
    assert isinstance(provider_error(read_error_body(body), provider="p"), ProviderError)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "30", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Sun, 22 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Sun, 22 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-4"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, now=datetime(2026, 11, 22, 12, 0, tzinfo=UTC)) == seconds


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<!DOCTYPE html><html><head><title>502 Bad Gateway</title><style>x</style>", "502 Bad Gateway"),
        ("<h1>Bad</h1>\n<p>Gateway</p>", "Bad Gateway"),
        ("a < b", "a < b"),
    ],
)
def test_proxy_page_is_described_by_its_title(page: str, text: str) -> None:
    assert one_line(read_error_body(page).message) == text


def test_error_message_is_one_short_clean_line() -> None:
    text = one_line("first\r\nsecond\x1b[31m\tred\x00 my-own-secret " + "x" * 5000, Redactor(["my-own-secret"]))

    assert text.startswith("first second red [redacted] xxx")
    assert len(text) < 420
    assert text.isprintable()
