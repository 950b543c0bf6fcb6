import gzip
import ssl
import sys
import time
from collections.abc import Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path

import anyio
import pytest

from panpan.errors import (
    AuthenticationError,
    ConfigError,
    ContextOverflowError,
    ProviderError,
    RateLimitError,
    RetryableError,
    StreamError,
)
from panpan.models.providers.anthropic import AnthropicProvider
from panpan.models.providers.openai_compatible import OpenAICompatibleProvider
from panpan.models.sdk_clients import SdkClient, open_anthropic, open_openai
from panpan.models.transport import Transport
from panpan.types.llm import Provider
from tests.models.loopback import Answer, Stall, serving
from tests.models.wire import DONE, HELLO, OPTIONS, anthropic_event, ask, chunk, collect

KEY = "my-own-secret-key-12345"
JSON = {"content-type": "application/json"}
ANTHROPIC = b"".join(
    [
        anthropic_event("message_start", message={"id": "m", "usage": {"input_tokens": 1}}),
        anthropic_event("content_block_start", index=0, content_block={"type": "text", "text": "ok"}),
        anthropic_event("content_block_stop", index=0),
        anthropic_event("message_delta", delta={"stop_reason": "end_turn"}),
        anthropic_event("message_stop"),
    ]
)
OPENAI = chunk({"content": "ok"}) + chunk(finish_reason="stop") + DONE

Make = Callable[..., Provider]
BOTH = pytest.mark.parametrize(
    ("make", "stream"),
    [
        pytest.param(AnthropicProvider, ANTHROPIC, id="anthropic"),
        pytest.param(OpenAICompatibleProvider, OPENAI, id="openai"),
    ],
)


async def failure(make: Make, answer: Answer, **options: float) -> ProviderError:
    """Return what asking raises when the server gives this answer."""
    async with serving(answer) as server:
        provider = make(api_key=KEY, base_url=server.url, name="vendor", **options)
        try:
            with pytest.raises(ProviderError) as caught:
                await ask(provider)
        finally:
            await provider.aclose()
        assert len(server.requests) == 1  # the SDK does not try again by itself
    return caught.value


@BOTH
@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, '{"error": {"type": "invalid_request_error", "message": "no such field"}}', ProviderError),
        (400, '{"error": {"type": "invalid_request_error", "message": "prompt is too long"}}', ContextOverflowError),
        (401, '{"error": {"type": "authentication_error", "message": "invalid x-api-key"}}', AuthenticationError),
        (403, '{"error": {"message": "not in your country"}}', AuthenticationError),
        (404, '{"error": {"type": "not_found_error", "message": "model: nope"}}', ProviderError),
        (429, '{"error": {"type": "rate_limit_error", "message": "slow down"}}', RateLimitError),
        (429, '{"error": {"type": "insufficient_quota", "message": "you are out of money"}}', ProviderError),
        (500, '{"error": {"type": "api_error", "message": "Internal server error"}}', RetryableError),
        (529, '{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}', RetryableError),
        (502, "<html><h1>Bad\nGateway</h1></html>", RetryableError),
        (503, "", RetryableError),
        (418, '["strange"]', ProviderError),
    ],
)
async def test_refusal_becomes_an_error_of_ours(
    make: Make, stream: bytes, status: int, body: str, expected: type[ProviderError]
) -> None:
    error = await failure(make, Answer([body.encode()], status=status, headers=JSON | {"request-id": "req_1"}))

    assert type(error) is expected
    assert (error.status, error.request_id, error.provider) == (status, "req_1", "vendor")
    assert "\n" not in str(error)
    assert "vendor" in str(error) or expected is ContextOverflowError
    assert error.__cause__ is not None


@BOTH
async def test_pause_of_the_server_is_kept(make: Make, stream: bytes) -> None:
    body = [b'{"error": {"message": "slow"}}']
    date = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
    pauses = []
    for headers in ({"retry-after": "7"}, {"retry-after-ms": "250", "retry-after": "1"}, {"retry-after": date}, {}):
        error = await failure(make, Answer(body, status=429, headers=JSON | headers))
        assert isinstance(error, RateLimitError)
        pauses.append(error.retry_after_s)

    assert pauses[:2] == [7, 0.25]
    assert pauses[2] is not None
    assert 60 < pauses[2] <= 100
    assert pauses[3] is None


@BOTH
async def test_error_messages_never_show_the_key(make: Make, stream: bytes) -> None:
    said = f'{{"error": {{"message": "wrong key {KEY} or sk-ant-api03-abcdefghijklmnop"}}}}'.encode()
    errors = [
        await failure(make, Answer([said], status=401, headers=JSON)),
        await failure(make, Answer([said], headers=JSON)),
        await failure(make, Answer([b"data: " + said + b"\n\n"])),
        await failure(make, Answer([f"<html>{KEY}</html>".encode()], headers={"content-type": "text/html"})),
    ]

    for error in errors:
        assert "[redacted]" in str(error)
        assert KEY not in str(error)
        assert "abcdefghijklmnop" not in str(error)


@BOTH
async def test_server_that_stops_sending_is_given_up(make: Make, stream: bytes) -> None:
    started = time.monotonic()

    in_mid_stream = await failure(make, Answer([stream[:40], Stall()]), idle_timeout_s=1)  # its beginning must come
    before_it = await failure(make, Answer(is_silent=True), idle_timeout_s=0.5)

    assert type(in_mid_stream) is StreamError
    assert "sent nothing for 1 second" in str(in_mid_stream)
    assert type(before_it) is RetryableError
    assert "did not answer within 0.5 seconds" in str(before_it)
    assert time.monotonic() - started < 30  # not the minutes of the SDK's own time-out


@BOTH
async def test_incomplete_refusal_can_be_retried(make: Make, stream: bytes) -> None:
    stalled = await failure(make, Answer([b"{", Stall()], status=500), idle_timeout_s=0.1)
    cut = await failure(make, Answer([b"{"], status=500, is_cut=True))

    assert [type(error) for error in (stalled, cut)] == [RetryableError, RetryableError]


@BOTH
async def test_missing_local_server_is_reported_at_once(make: Make, stream: bytes) -> None:
    async with serving() as gone:
        pass
    provider = make(api_key=KEY, base_url=gone.url, name="vendor")

    with pytest.raises(ProviderError, match=r"could not connect to vendor.*is the server running"):
        await ask(provider)
    await provider.aclose()


@BOTH
@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "not a url"])
async def test_unusable_address_is_not_retried(make: Make, stream: bytes, url: str) -> None:
    provider = make(api_key=KEY, base_url=url)

    with pytest.raises(ProviderError) as caught:
        await ask(provider)
    await provider.aclose()
    assert type(caught.value) is ProviderError


@BOTH
@pytest.mark.parametrize("key", ["sk-1\nsk-2-more", " sk-padded-key", "ключ-как-ключ"])
async def test_key_unfit_for_a_header_is_refused_without_showing_it(make: Make, stream: bytes, key: str) -> None:
    provider = make(api_key=key, base_url="http://127.0.0.1:1")

    with pytest.raises(AuthenticationError, match="copy it again") as caught:
        await ask(provider)
    await provider.aclose()
    assert key not in str(caught.value)


@BOTH
async def test_header_that_cannot_be_sent_is_an_error_of_ours(make: Make, stream: bytes) -> None:
    provider = make(api_key=KEY, base_url="http://127.0.0.1:1", headers={"x-team": "für uns"})

    with pytest.raises(ProviderError):  # an SDK may find a way to send it; then nobody is there to hear it
        await ask(provider)
    await provider.aclose()


@BOTH
async def test_redirect_is_not_followed_with_the_key(make: Make, stream: bytes) -> None:
    async with serving(Answer([stream])) as elsewhere:
        error = await failure(make, Answer(status=307, headers={"location": elsewhere.url + "/v1"}))

        assert f"has moved to {elsewhere.url}/v1" in str(error)
        assert type(error) is ProviderError
        assert not elsewhere.requests


@BOTH
@pytest.mark.parametrize(
    ("body", "content_type", "says"),
    [
        (b"<html>Log in</html>", "text/html", "answered with text/html"),
        (b"", "text/plain", "answered with text/plain"),
        (b'{"done": fal', "application/x-ndjson", "neither an event stream nor a JSON object"),
        (b'{"error": {"message": "broken", "type": "api_error"}}', "application/json", "broken"),
        (b'{"other": 1}', "application/json", "check the base URL"),
    ],
)
async def test_answer_that_is_no_event_stream_says_so(
    make: Make, stream: bytes, body: bytes, content_type: str, says: str
) -> None:
    error = await failure(make, Answer([body], headers={"content-type": content_type}))

    assert says in str(error)


@BOTH
async def test_events_under_another_content_type_are_read(make: Make, stream: bytes) -> None:
    async with serving(Answer([stream], headers={"content-type": "text/plain"})) as server:
        provider = make(api_key=KEY, base_url=server.url)
        message = await ask(provider)
        await provider.aclose()

    assert message.text == "ok"


@BOTH
async def test_compressed_stream_is_read(make: Make, stream: bytes) -> None:
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    async with serving(Answer([gzip.compress(stream)], headers=headers)) as server:
        provider = make(api_key=KEY, base_url=server.url)
        message = await ask(provider)
        await provider.aclose()

    assert message.text == "ok"


@BOTH
async def test_connection_serves_the_whole_conversation(make: Make, stream: bytes) -> None:
    async with serving(Answer([stream])) as server:
        provider = make(api_key=KEY, base_url=server.url)
        for _ in range(3):
            await ask(provider)
        await provider.aclose()

    assert (len(server.requests), server.connections) == (3, 1)


@BOTH
async def test_consumer_that_leaves_closes_the_connection(make: Make, stream: bytes) -> None:
    async with serving(Answer([stream[:-60], Stall()])) as server:
        provider = make(api_key=KEY, base_url=server.url)
        async with aclosing(provider.stream(HELLO, OPTIONS)) as events:
            async for _ in events:
                break

        with anyio.fail_after(20):
            await server.left.wait()
        await provider.aclose()


@BOTH
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_cancelled_request_ends_at_once(make: Make, stream: bytes, backend: str) -> None:
    async def main() -> None:
        async with serving(Answer([stream[:-60], Stall()])) as server:
            provider = make(api_key=KEY, base_url=server.url)
            async with anyio.create_task_group() as group:
                group.start_soon(collect, provider)
                await server.asked.wait()
                group.cancel_scope.cancel()
            with anyio.fail_after(20):
                await server.left.wait()
            await provider.aclose()

    anyio.run(main, backend=backend)


async def test_endless_reply_is_bounded() -> None:
    async with serving(Answer([b": ping\n\n" * 100] * 10)) as server:
        open_client = partial(open_openai, api_key=KEY, base_url=server.url, headers={})
        transport = Transport(provider="vendor", open_client=open_client, max_reply_bytes=1000)
        with pytest.raises(ProviderError, match="more than 1,000 bytes") as caught:
            async with aclosing(transport.stream("/chat/completions", b"{}")) as reads:
                async for _ in reads:
                    pass
        await transport.aclose()

    assert not isinstance(caught.value, RetryableError)


@pytest.mark.parametrize("is_encrypted", [False, True])
async def test_chunks_of_one_write_are_read_at_once(is_encrypted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    certificate = Path(__file__).parent / "fixtures" / "loopback.pem"
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    events = tuple(b"data: %d\n\n" % number for number in range(500))
    async with serving(Answer([events]), tls=tls if is_encrypted else None) as server:
        client = partial(open_openai, api_key=KEY, base_url=server.url, headers={})
        transport = Transport(provider="vendor", open_client=client)
        async with aclosing(transport.stream("/", b"{}")) as reads:
            found = [read async for read in reads]
        await transport.aclose()

    assert [data for read in found if isinstance(read, list) for _, data in read] == [event[6:-2] for event in events]
    assert len(found) < 10


@BOTH
async def test_private_certificate_authority_is_trusted_by_variable(
    make: Make, stream: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = Path(__file__).parent / "fixtures" / "loopback.pem"
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    async with serving(Answer([stream]), tls=tls) as server:
        stranger = make(api_key=KEY, base_url=server.url)
        with pytest.raises(ProviderError, match="the certificate of") as caught:
            await ask(stranger)
        await stranger.aclose()
        assert not isinstance(caught.value, RetryableError)
        assert "SSL_CERT_FILE" in str(caught.value)

        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        provider = make(api_key=KEY, base_url=server.url)
        message = await ask(provider)
        await provider.aclose()

    assert message.text == "ok"


@BOTH
async def test_proxy_of_the_usual_variable_is_used(make: Make, stream: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(Answer([stream])) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        provider = make(api_key=KEY, base_url="http://models.invalid/v1")
        message = await ask(provider)
        await provider.aclose()

    assert message.text == "ok"
    assert proxy.requests[0].path.startswith("http://models.invalid/v1/")


@BOTH
@pytest.mark.parametrize(
    ("variable", "value", "complaint"),
    [
        ("HTTPS_PROXY", "ftp://ada:pass@h", "HTTPS_PROXY names an unusable proxy: ftp://h; write it as http"),
        ("HTTPS_PROXY", "http://ada:my/pass@h:1", "HTTPS_PROXY names an unusable proxy: http://h:1; write it"),
        ("http_proxy", "http://[", "http_proxy names an unusable proxy"),
        ("ALL_PROXY", "http://h:99999", "ALL_PROXY names an unusable proxy"),
        ("all_proxy", "http://:80", "all_proxy names an unusable proxy"),
        ("ALL_PROXY", "socks5://h:1", "ALL_PROXY names a SOCKS proxy .socks5://h:1., for which the package socksio"),
        ("SSL_CERT_FILE", "/nowhere", "SSL_CERT_FILE names /nowhere, which cannot be used: No such file"),
        ("SSL_CERT_FILE", "/", "SSL_CERT_FILE names /, which cannot be used: Is a directory"),
        ("SSL_CERT_FILE", __file__, "it holds no certificates"),
    ],
)  # fmt: skip
async def test_wrong_variable_is_named_without_its_password(
    make: Make, stream: bytes, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, complaint: str
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)  # as where it is not installed
    monkeypatch.setenv(variable, value)
    provider = make(api_key=KEY, base_url="https://models.invalid/v1")

    with pytest.raises(ConfigError, match=complaint) as caught:
        await ask(provider)
    await provider.aclose()

    assert "pass@" not in str(caught.value)


@BOTH
async def test_missing_proxy_is_reported_with_its_variable_only(
    make: Make, stream: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(Answer([stream])) as server:
        gone = server.url
    monkeypatch.setenv("ALL_PROXY", gone.replace("//", "//ada:pass@"))
    provider = make(api_key=KEY, base_url="https://models.invalid/v1", name="vendor")

    with pytest.raises(ProviderError) as caught:
        await ask(provider)
    await provider.aclose()

    message = str(caught.value)
    assert f"to vendor at https://models.invalid through the proxy {gone} that ALL_PROXY names" in message
    assert "pass" not in message
    assert not isinstance(caught.value, RetryableError)


@BOTH
@pytest.mark.parametrize(("status", "is_retried"), [(407, False), (503, True)])
async def test_refusing_proxy_is_named(
    make: Make, stream: bytes, monkeypatch: pytest.MonkeyPatch, status: int, is_retried: bool
) -> None:
    async with serving(Answer([], status=status)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        provider = make(api_key=KEY, base_url="https://models.invalid/v1", name="vendor")
        with pytest.raises(ProviderError, match=f"that HTTPS_PROXY names: {status}") as caught:
            await ask(provider)
        await provider.aclose()

    assert isinstance(caught.value, RetryableError) == is_retried


@BOTH
@pytest.mark.parametrize("exempt", ["", "localhost", "127.0.0.0/8", "*"])
async def test_local_server_is_asked_without_a_proxy(
    make: Make, stream: bytes, monkeypatch: pytest.MonkeyPatch, exempt: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", exempt)
    async with serving(Answer([stream])) as server:
        for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
            provider = make(api_key=KEY, base_url=url)
            assert (await ask(provider)).text == "ok"
            await provider.aclose()


@BOTH
async def test_exempt_server_is_asked_without_the_proxy(
    make: Make, stream: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "other.example, .invalid")
    provider = make(api_key=KEY, base_url="http://models.invalid/v1", name="vendor")

    with pytest.raises(RetryableError, match=r"could not connect to vendor at http://models\.invalid: "):
        await ask(provider)
    await provider.aclose()


async def test_compatible_servers_get_the_key_and_a_known_version() -> None:
    async with serving(Answer([ANTHROPIC])) as server:
        provider = AnthropicProvider(api_key=KEY, base_url=server.url, headers={"x-team": "blue"})
        await ask(provider)
        await provider.aclose()

    headers = server.requests[0].headers
    assert (headers["x-api-key"], headers["anthropic-version"], headers["x-team"]) == (KEY, "2023-06-01", "blue")
    assert headers["content-type"] == "application/json"


async def test_openai_account_ids_go_to_openai_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    async with serving(Answer([OPENAI])) as server:
        provider = OpenAICompatibleProvider(api_key="", base_url=server.url)
        await ask(provider)
        await provider.aclose()

    headers = server.requests[0].headers
    assert not {"openai-organization", "openai-project"} & headers.keys()
    assert headers["authorization"] == "Bearer none"


async def test_default_addresses_are_the_vendors_own() -> None:
    anthropic = open_anthropic(api_key=KEY, base_url=None, headers={})
    openai = open_openai(api_key=KEY, base_url=None, headers={})

    assert str(anthropic.client.base_url) == "https://api.anthropic.com"
    assert str(openai.client.base_url) == "https://api.openai.com/v1/"
    assert "x-api-key" not in {name.lower() for name in anthropic.client.default_headers}
    for sdk in (anthropic, openai):
        assert sdk.client.max_retries == 0
        await sdk.client.close()


async def test_providers_import_no_sdk_before_the_first_request() -> None:
    script = (
        "import sys\n"
        "from panpan.models.providers.anthropic import AnthropicProvider\n"
        "from panpan.models.providers.openai_compatible import OpenAICompatibleProvider\n"
        "AnthropicProvider(api_key='k'), OpenAICompatibleProvider(api_key='k')\n"
        "print({'anthropic', 'openai', 'httpx2', 'httpcore2', 'ssl'} & sys.modules.keys())\n"
    )

    process = await anyio.run_process([sys.executable, "-c", script])

    assert process.stdout.decode().strip() == "set()"


async def test_prepared_client_reports_failures_with_the_request() -> None:
    async with serving(Answer([b"data: [DONE]\n\n"])) as server:
        opened: list[int] = []

        def open_client() -> SdkClient:
            opened.append(1)
            return open_openai(api_key=KEY, base_url=server.url, headers={})

        transport = Transport(provider="vendor", open_client=open_client)
        await transport.prepare()
        async with aclosing(transport.stream("/chat/completions", b"{}")) as reads:
            async for _ in reads:
                pass
        await transport.aclose()
    assert opened == [1]

    def refuse() -> SdkClient:
        raise ConfigError("no such proxy")

    broken = Transport(provider="vendor", open_client=refuse)
    await broken.prepare()
    with pytest.raises(ConfigError, match="no such proxy"):
        async with aclosing(broken.stream("/chat/completions", b"{}")) as reads:
            async for _ in reads:
                pass
