"""GPT and every other model behind the chat completions API.

Follows https://platform.openai.com/docs/api-reference/chat-streaming. The rule: a reply is complete after its finish
reason or `[DONE]`; any other end of the stream is an error. Differences in requests are in `vendor_profiles`.
Differences in replies are accepted here from all servers, since one can be behind another's address.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import field
from functools import partial
from typing import Any, Literal, TypeGuard

from panpan.errors import ProviderError, RetryableError, StreamError
from panpan.models.providers.openai_request import OpenAIEncoder
from panpan.models.providers.vendor_profiles import VendorProfile, profile_for
from panpan.models.reply import ArgumentsError, OpenBlock, ReplyBuilder, encode_arguments, read_arguments
from panpan.models.sdk_clients import SdkClient, open_openai
from panpan.models.transport import DEFAULT_IDLE_TIMEOUT_S, Transport, WholeReply, WireRead, drain, next_read
from panpan.models.wire import Prefix, WireHistory, count_in, joined_body, list_in, read_event, text_in
from panpan.models.wire_errors import read_error_body
from panpan.types.dataclass import dataclass
from panpan.types.events import StreamEvent
from panpan.types.llm import ModelOptions, ModelRequest
from panpan.types.messages import StopReason, Usage


@dataclass(slots=True)
class _Call:
    """A call that is not complete yet."""

    wire_id: str
    name: str
    pieces: list[str] = field(default_factory=list)
    block: OpenBlock | None = None
    """Its block, once the call has been emitted; its pieces are then the block's."""

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)

    @property
    def is_whole(self) -> bool:
        """True if the arguments are a JSON object, so that nothing more can come."""
        text = self.arguments
        if not text.rstrip().endswith("}"):
            return False
        try:
            read_arguments(text)
        except ArgumentsError:
            return False
        return True


class CallAssembler:
    """The calls of one reply, assembled from the deltas of a stream.

    By the documentation a call has an index, comes with id and name first, and then in pieces of its arguments. Servers
    leave out each of these, repeat id and name in every delta, make up a new id for each, number every call 0, send
    arguments whole or as an object, or mix the pieces of several calls. So calls are emitted one after the other: a
    later one waits until the arguments of those before are a whole JSON object, or until the reply ends.

    Args:
        builder: Gets the calls, in order.
        provider: Name for messages.
        names: Names of tools by their names on the wire, if the two differ.
    """

    def __init__(self, builder: ReplyBuilder, *, provider: str, names: Mapping[str, str]) -> None:
        self._builder = builder
        self._provider = provider
        self._names = names
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._current = 0  # position of the call that is emitted now; later ones wait

    @property
    def has_calls(self) -> bool:
        """True if any call has come."""
        return bool(self._calls)

    def add(self, delta: dict[str, Any]) -> None:
        """Add one entry of `delta.tool_calls`.

        Raises:
            StreamError: More arguments come for a call that was whole and may have started.
        """
        function = delta.get("function")
        if not isinstance(function, dict):
            function = {}
        wire_id, name = text_in(delta.get("id")), text_in(function.get("name"))
        call = self._find(delta.get("index"), wire_id, name)
        if call is None:
            call = self._begin(delta.get("index"), wire_id, name)
        elif name and name != call.name and not call.pieces:
            call.name += name  # a name in pieces
            if call.block is not None:
                call.block.rename(self._names.get(call.name, call.name))
        self._add_arguments(call, _arguments(function.get("arguments")))

    def finish(self) -> None:
        """Emit all the calls that still wait; nothing more comes."""
        while self._current < len(self._calls):
            self._tell(self._calls[self._current])
            self._builder.close_block()
            self._current += 1

    def _find(self, index: object, wire_id: str, name: str) -> _Call | None:
        """Return the call that a delta continues; None if it begins a new one."""
        if _is_number(index):
            call = self._by_index.get(index)
            if call is None:
                return None
        elif not self._calls:
            return None
        else:
            known = (call for call in self._calls if wire_id and call.wire_id == wire_id)
            call = next(known, self._calls[-1])
        return None if _begins_another(call, wire_id, name) else call

    def _begin(self, index: object, wire_id: str, name: str) -> _Call:
        call = _Call(wire_id, name)
        self._calls.append(call)
        if _is_number(index):
            self._by_index[index] = call
        self._advance()
        return call

    def _advance(self) -> None:
        """Emit the next calls, as long as those before them are whole."""
        while self._current < len(self._calls):
            call = self._calls[self._current]
            self._tell(call)
            if self._current == len(self._calls) - 1 or not call.is_whole:
                return
            self._builder.close_block()
            self._current += 1

    def _tell(self, call: _Call) -> None:
        if call.block is None:
            name = self._names.get(call.name, call.name)
            call.block = self._builder.open_block("tool_use", tool_use_id=call.wire_id, tool_name=name)
            call.block.parts.extend(call.pieces)
            call.pieces = call.block.parts

    def _add_arguments(self, call: _Call, piece: str) -> None:
        if not piece:
            return
        is_told_and_over = call.block is not None and call is not self._calls[self._current]
        if is_told_and_over:
            if piece.isspace():
                return
            raise StreamError(
                f"{self._provider} sent more arguments for a call that was complete", provider=self._provider
            )
        call.pieces.append(piece)
        if len(self._calls) > self._current + 1 and call.block is not None and piece.rstrip().endswith("}"):
            self._advance()


def _begins_another(call: _Call, wire_id: str, name: str) -> bool:
    """Return True if a delta that seems to be of `call` begins another call."""
    if not name:
        return False  # only a new id: some servers make one up for every delta
    if wire_id and call.wire_id and wire_id != call.wire_id:
        return True
    if wire_id and wire_id == call.wire_id:
        return False
    return call.is_whole  # no ids to compare


def _is_number(index: object) -> TypeGuard[int]:
    return isinstance(index, int) and not isinstance(index, bool)


def _arguments(value: object) -> str:
    """Return a piece of arguments as text; some servers send the object itself."""
    if isinstance(value, str):
        return value
    return "" if value is None else encode_arguments(value)


_STOP_REASONS: Mapping[str, StopReason] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "content_filter": "refusal",
    "sensitive": "refusal",  # GLM
    "model_context_window_exceeded": "model_context_window_exceeded",  # GLM
}
_FAILURES = frozenset({"insufficient_system_resource", "network_error", "error", "abort"})
"""Finish reasons of replies that broke off: DeepSeek, GLM, gateways, vLLM."""


class OpenAICompatibleProvider:
    """One account at one server that speaks chat completions.

    Args:
        api_key: The key; empty for a server that asks for none.
        base_url: Address of the server, with its `/v1`; None for OpenAI's.
        name: Name for messages and logs; None for that of the profile.
        profile: Differences of the server; None to find them by its address or name.
        idle_timeout_s: Longest wait for the next bytes of a reply, in seconds; None for that of the profile.
        headers: Headers of every request besides the usual ones.
        open_client: Opens the SDK's client in place of `open_openai`.
    """

    def __init__(
        self,
        *,
        api_key: str,
        base_url: str | None = None,
        name: str | None = None,
        profile: VendorProfile | None = None,
        idle_timeout_s: float | None = None,
        headers: Mapping[str, str] | None = None,
        open_client: Callable[[], SdkClient] | None = None,
    ) -> None:
        profile = profile or profile_for(base_url, name)
        self.name = name or profile.name
        self._profile = profile
        self._transport = Transport(
            provider=self.name,
            open_client=open_client
            or partial(open_openai, api_key=api_key, base_url=base_url, headers=dict(headers or {})),
            secrets=(api_key, *(headers or {}).values()),
            idle_timeout_s=idle_timeout_s or profile.idle_timeout_s or DEFAULT_IDLE_TIMEOUT_S,
        )
        self._encoder = encoder = OpenAIEncoder(profile)
        self._prefix = Prefix(
            encode_head=encoder.encode_head,
            new_history=lambda model: WireHistory(partial(encoder.encode_reply, model=model), encoder.encode_user_side),
        )

    async def stream(self, request: ModelRequest, options: ModelOptions) -> AsyncGenerator[StreamEvent, None]:
        head, groups = self._prefix.of(request, options, is_stream=True)
        if not groups:
            raise ProviderError("there is no message to send", provider=self.name)
        names = self._encoder.names_of(request.tools)
        reply = OpenAIReply(self._builder(request, options.model), self._transport, names)
        body = joined_body(head, [group.data for group in groups])
        async with aclosing(self._transport.stream("/chat/completions", body)) as reads:
            while (read := await next_read(reads, has_ended=reply.has_ended)) is not None:
                reply.read(read)
                if reply.is_over:
                    break
                for event in reply.builder.take():
                    yield event
            reply.finish()
            await drain(reads)
            for event in reply.builder.take():
                yield event

    async def count_tokens(self, request: ModelRequest, options: ModelOptions) -> int | None:
        return None  # this dialect has no such request

    async def prepare(self) -> None:
        await self._transport.prepare()

    async def aclose(self) -> None:
        await self._transport.aclose()

    def _builder(self, request: ModelRequest, model: str) -> ReplyBuilder:
        """Return the builder of the reply; for some models it also reads calls that they write as text."""
        if not request.tools or not self._profile.reads_calls_in_text(model):
            return ReplyBuilder(model=model, taken_ids=request.tool_use_ids)
        from panpan.models.calls_in_text import CallReadingBuilder

        names = frozenset(tool.name for tool in request.tools)
        return CallReadingBuilder(model=model, tool_names=names, taken_ids=request.tool_use_ids)


class OpenAIReply:
    """Reader of the chunks of one reply into a `ReplyBuilder`.

    Args:
        builder: Gets the pieces.
        transport: Source of the chunks, for errors.
        names: Names of tools by their names on the wire, if the two differ.
    """

    def __init__(self, builder: ReplyBuilder, transport: Transport, names: Mapping[str, str] | None = None) -> None:
        self.builder = builder
        self.has_ended = False
        """True if a finish reason or `[DONE]` came; usage may still follow the first."""
        self.is_over = False
        """True if nothing can follow."""
        self._transport = transport
        self._calls = CallAssembler(builder, provider=transport.provider, names=names or {})
        self._late: list[tuple[Literal["text", "thinking"], str]] = []  # text and thinking after the first call
        self._stop_reason: StopReason | None = None
        self._has_refusal = False

    def read(self, read: WireRead) -> None:
        """Read the chunks of one network read, or the document that came in their place.

        Raises:
            ProviderError: The server reports an error, or sends something other than a JSON object.
        """
        if isinstance(read, WholeReply):
            self._document(read.document)
            return
        for name, data in read:
            if data.startswith(b"[DONE]"):
                self.has_ended = self.is_over = True
                return
            if data:
                self._chunk(read_event(data, provider=self._transport.provider), name)

    def finish(self) -> None:
        """End the reply.

        Raises:
            StreamError: It was not whole.
        """
        if not self.has_ended:
            raise StreamError(
                f"{self._transport.provider} ended the stream in the middle of the reply",
                provider=self._transport.provider,
            )
        self._calls.finish()
        for kind, piece in self._late:
            self.builder.add(kind, piece)
        reason = self._stop_reason
        if reason in ("end_turn", "tool_use"):  # some servers say "stop" whatever the model did
            reason = "tool_use" if self._calls.has_calls else "refusal" if self._has_refusal else "end_turn"
        self.builder.finish(reason)

    def _document(self, document: dict[str, Any]) -> None:
        """Read a reply that came whole, as from a proxy that does not stream."""
        if not list_in(document.get("choices")):
            raise ProviderError(
                f"{self._transport.provider} sent a document that is not a chat completion; check the base URL",
                provider=self._transport.provider,
            )
        self._chunk(document)
        self.has_ended = self.is_over = True

    def _chunk(self, chunk: dict[str, Any], name: bytes = b"") -> None:
        if chunk.get("error") or name == b"error":
            raise self._transport.error(read_error_body(chunk), is_mid_stream=True)
        choice = _first(chunk.get("choices"))
        usage = chunk.get("usage")
        if not self.builder.is_started and (choice is not None or usage):
            self.builder.start(message_id=text_in(chunk.get("id")), model=text_in(chunk.get("model")))
        if choice is not None:
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, dict):
                self._delta(delta)
            reason = choice.get("finish_reason")
            if reason:
                self._end(reason)
            usage = usage or choice.get("usage")  # Kimi
        if isinstance(usage, dict):
            self.builder.count(_usage(usage))

    def _delta(self, delta: dict[str, Any]) -> None:
        thinking = delta.get("reasoning_content") or delta.get("reasoning")
        if thinking and isinstance(thinking, str):
            self._add("thinking", thinking)
        content = delta.get("content")
        if content:
            self._add("text", content if isinstance(content, str) else _text_of_parts(content))
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._has_refusal = True
            self._add("text", refusal)
        tool_calls = delta.get("tool_calls")
        if tool_calls:
            for call in list_in(tool_calls):
                if isinstance(call, dict):
                    self._calls.add(call)
        elif isinstance(delta.get("function_call"), dict):  # the older form, for one call
            self._calls.add({"index": 0, "function": delta["function_call"]})

    def _add(self, kind: Literal["text", "thinking"], piece: str) -> None:
        if not piece:
            return
        if self._calls.has_calls:
            self._late.append((kind, piece))
        else:
            self.builder.add(kind, piece)

    def _end(self, reason: object) -> None:
        reason = text_in(reason)
        if reason in _FAILURES:
            provider = self._transport.provider
            raise RetryableError(f"{provider} broke off the reply ({reason})", provider=provider)
        self._stop_reason = _STOP_REASONS.get(reason, "unknown")
        self.has_ended = True


def _usage(usage: dict[str, Any]) -> Usage:
    """Return the counts; chat completions includes cached tokens in those of the prompt, and `Usage` does not."""
    details = usage.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    read = count_in(details.get("cached_tokens")) or count_in(usage.get("prompt_cache_hit_tokens"))  # DeepSeek
    read = read or count_in(usage.get("cached_tokens"))  # Kimi
    encode_arguments = count_in(details.get("cache_write_tokens"))
    return Usage(
        input_tokens=max(0, count_in(usage.get("prompt_tokens")) - read - encode_arguments),
        output_tokens=count_in(usage.get("completion_tokens")),
        cache_read_input_tokens=read,
        cache_creation_input_tokens=encode_arguments,
    )


def _first(choices: object) -> dict[str, Any] | None:
    for choice in list_in(choices):
        if isinstance(choice, dict) and not choice.get("index"):
            return choice
    return None


def _text_of_parts(parts: object) -> str:
    """Return the text of content that comes as a list of parts."""
    return "".join(text_in(part.get("text")) for part in list_in(parts) if isinstance(part, dict))
