"""Claude, through the Messages API (https://platform.claude.com/docs/en/build-with-claude/streaming).

The rule: a reply is complete after `message_stop`, or if only that is missing: it has a stop reason, and each of its
blocks has ended. Any other end of the stream is an error. Unknown kinds of events and blocks are ignored, since the API
adds new ones.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from typing import Any, get_args

from panpan.errors import ProviderError, StreamError
from panpan.models.providers import anthropic_request as wire
from panpan.models.reply import OpenBlock, ReplyBuilder, encode_arguments
from panpan.models.sdk_clients import SdkClient, open_anthropic
from panpan.models.transport import DEFAULT_IDLE_TIMEOUT_S, Transport, WholeReply, WireRead, drain
from panpan.models.wire import Prefix, WireHistory, count_in, list_in, read_event, text_in
from panpan.models.wire_errors import read_error_body
from panpan.types.events import StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest
from panpan.types.messages import StopReason, Usage

_PIECES = {
    "text_delta": ("text", "text"),
    "input_json_delta": ("tool_use", "partial_json"),
    "thinking_delta": ("thinking", "thinking"),
}
"""Kind of block and field of the piece, by the kind of delta."""

_CANNOT_COUNT = (404, 405, 501)
"""Statuses of servers that copied the API without the request that counts tokens."""

_STOP_REASONS: frozenset[str] = frozenset(get_args(StopReason)) - {"interrupted"}


class AnthropicProvider:
    """One account at one server that speaks the Messages API.

    Args:
        api_key: The key; empty for a server that asks for none.
        base_url: Address of the server; None for Anthropic's.
        name: Name for messages and logs.
        idle_timeout_s: Longest wait for the next bytes of a reply, in seconds; None for two minutes.
        headers: Headers of every request besides the usual ones.
        open_client: Opens the SDK's client in place of `open_anthropic`.
    """

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None = None,
        name: str = "anthropic",
        idle_timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
        open_client: Callable[[], SdkClient] | None = None,
    ) -> None:
        self.name = name
        self._transport = Transport(
            provider=name,
            open_client=open_client
            or partial(open_anthropic, api_key=api_key, base_url=base_url, headers=dict(headers or {})),
            secrets=(api_key, *(headers or {}).values()),
            idle_timeout_s=idle_timeout_s or DEFAULT_IDLE_TIMEOUT_S,
        )
        self._prefix = Prefix(
            encode_head=wire.encode_head,
            new_history=lambda model: WireHistory(partial(wire.encode_reply, model=model), wire.encode_user_side),
        )

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        body = self._body(request, options, is_stream=True)
        reply = AnthropicReply(ReplyBuilder(model=options.model, taken_ids=request.tool_use_ids), self._transport)
        async with aclosing(self._transport.stream("/v1/messages", body)) as reads:
            try:
                async for read in reads:
                    reply.read(read)
                    if reply.is_whole:
                        break
                    for event in reply.builder.take():
                        yield event
            except StreamError:
                if not reply.lacks_only_its_end:  # what arrived is paid for, and a retry would cost as much again
                    raise
            if reply.is_whole:
                await drain(reads)
            elif reply.lacks_only_its_end:
                reply.finish()
            else:
                raise StreamError(f"{self.name} ended the stream in the middle of the reply", provider=self.name)
            for event in reply.builder.take():
                yield event

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        body = self._body(request, options, is_stream=False)
        try:
            document = await self._transport.request("/v1/messages/count_tokens", body)
        except ProviderError as exc:
            if exc.status in _CANNOT_COUNT:
                return None
            raise
        tokens = document.get("input_tokens")
        return tokens if isinstance(tokens, int) else None

    async def prepare(self) -> None:
        await self._transport.prepare()

    async def aclose(self) -> None:
        await self._transport.aclose()

    def _body(self, request: ModelRequest, options: ModelOptions, *, is_stream: bool) -> bytes:
        head, groups = self._prefix.of(request, options, is_stream=is_stream)
        if not groups:
            raise ProviderError("there is no message to send", provider=self.name)
        return wire.join_body(head, groups)


class AnthropicReply:
    """Reader of the events of one reply into a `ReplyBuilder`."""

    def __init__(self, builder: ReplyBuilder, transport: Transport) -> None:
        self.builder = builder
        self.is_whole = False
        self._transport = transport
        self._open: OpenBlock | None = None
        self._open_index: object = None
        self._given: object = None
        self._stop_reason: StopReason | None = None

    @property
    def lacks_only_its_end(self) -> bool:
        """True if it has a stop reason, and all its blocks have ended."""
        return self._stop_reason is not None and self._open is None and self._open_index is None

    def read(self, read: WireRead) -> None:
        """Read the events of one network read, or the document that came in their place.

        Raises:
            ProviderError: The server reports an error, or sends something other than a JSON object.
        """
        if isinstance(read, WholeReply):
            self._document(read.document)
            return
        for _, data in read:
            if not data:
                continue
            document = read_event(data, provider=self._transport.provider)
            kind = document.get("type")
            if kind == "content_block_delta":
                self._delta(document)
            else:
                self._other(kind, document)
            if self.is_whole:
                return

    def _document(self, document: dict[str, Any]) -> None:
        """Read a reply that came whole, as from a proxy that does not stream."""
        if document.get("type") != "message":
            raise ProviderError(
                f"{self._transport.provider} sent a document that is not a message; check the base URL",
                provider=self._transport.provider,
            )
        self._message_start({"message": document})
        for index, block in enumerate(list_in(document.get("content"))):
            self._block_start({"index": index, "content_block": block})
            self._block_stop()
        self._message_delta({"delta": document, "usage": document.get("usage")})
        self.finish()

    def _delta(self, document: dict[str, Any]) -> None:
        block = self._open
        delta = document.get("delta")
        if block is None or not isinstance(delta, dict):
            return  # a delta of an unknown kind of block
        if document.get("index") != self._open_index:
            provider = self._transport.provider
            raise StreamError(f"{provider} sent a piece of a closed block", provider=provider)
        kind = text_in(delta.get("type"))
        if kind == "signature_delta":
            block.sign(text_in(delta.get("signature")))
        elif kind in _PIECES:  # otherwise citations, and future kinds
            block_kind, field = _PIECES[kind]
            piece = delta.get(field)
            if block.kind == block_kind and isinstance(piece, str):
                block.parts.append(piece)

    def _other(self, kind: object, document: dict[str, Any]) -> None:
        match kind:
            case "content_block_start":
                self._block_start(document)
            case "content_block_stop":
                self._block_stop()
            case "message_start":
                self._message_start(document)
            case "message_delta":
                self._message_delta(document)
            case "message_stop":
                self.finish()
            case "error":
                self._stop_reason = None
                raise self._transport.error(read_error_body(document), is_mid_stream=True)
            case _ if kind is None and "error" in document:
                self._stop_reason = None
                raise self._transport.error(read_error_body(document), is_mid_stream=True)
            case _:
                pass  # ping, and future kinds

    def _message_start(self, document: dict[str, Any]) -> None:
        message = document.get("message")
        if not isinstance(message, dict):
            return
        self._add_usage(message.get("usage"))
        self.builder.start(message_id=text_in(message.get("id")), model=text_in(message.get("model")))

    def _block_start(self, document: dict[str, Any]) -> None:
        self._block_stop()
        self._open_index = document.get("index")
        block = document.get("content_block")
        if not isinstance(block, dict):
            return
        match block.get("type"):
            case "text":
                self._begin(self.builder.open_block("text"), block.get("text"))
            case "thinking":
                opened = self._begin(self.builder.open_block("thinking"), block.get("thinking"))
                opened.sign(text_in(block.get("signature")))
            case "redacted_thinking":
                self._begin(self.builder.open_block("redacted_thinking"), block.get("data"))
            case "tool_use":
                tool_use_id, name = text_in(block.get("id")), text_in(block.get("name"))
                opened = self.builder.open_block("tool_use", tool_use_id=tool_use_id, tool_name=name)
                self._given = block.get("input") or None  # mostly {}, then deltas; some servers send all of it here
                self._begin(opened, None)
            case _:
                pass  # an unknown kind; its deltas are ignored, too

    def _begin(self, block: OpenBlock, piece: object) -> OpenBlock:
        if isinstance(piece, str) and piece:
            block.parts.append(piece)
        self._open = block
        return block

    def _block_stop(self) -> None:
        if self._open is not None and self._given is not None and not self._open.text:
            self._open.parts.append(encode_arguments(self._given))
        self._open = self._open_index = self._given = None
        self.builder.close_block()

    def _message_delta(self, document: dict[str, Any]) -> None:
        self._add_usage(document.get("usage"))
        delta = document.get("delta")
        reason = delta.get("stop_reason") if isinstance(delta, dict) else None
        if isinstance(reason, str):
            self._stop_reason = reason if reason in _STOP_REASONS else "unknown"  # type: ignore[assignment]

    def _add_usage(self, usage: object) -> None:
        """Add the counts, which only grow; a count that is null or missing stays the same."""
        if not isinstance(usage, dict):
            return
        counts = self.builder.usage.model_dump()
        for name, count in counts.items():
            counts[name] = max(count, count_in(usage.get(name)))
        self.builder.count(Usage(**counts))

    def finish(self) -> None:
        """End the reply."""
        self._block_stop()
        self.builder.finish(self._stop_reason)
        self.is_whole = True
