"""Text, streaming, usage, counting and refusals, in both dialects; any model will do, and the smallest is taken."""

from contextlib import aclosing

import anyio
import pytest

from panpan.config.models import Dialect
from panpan.errors import AuthenticationError, ContextOverflowError, PanpanError
from panpan.types.content import TextBlock
from panpan.types.events import BlockFinished, BlockStarted, ReplyStarted, TextDelta
from panpan.types.messages import UserMessage
from tests.peers.asking import DIALECTS, Peer, client_of, prompt_tokens, reply_events, request_of

pytestmark = [
    pytest.mark.timeout(600),  # on a busy machine it writes a word a second
    pytest.mark.xdist_group("model"),  # one server for all of them
]

HELLO = UserMessage.of("Say hello.")

both_dialects = pytest.mark.parametrize("dialect", DIALECTS)


@both_dialects
async def test_text_is_streamed_and_comes_out_whole(text_peer: Peer, dialect: Dialect) -> None:
    async with client_of(text_peer, dialect) as client:
        events = await reply_events(client, HELLO)

    started, block, *deltas, finished, message = events
    text = "".join(delta.text for delta in deltas)
    assert isinstance(started, ReplyStarted)
    assert (bool(started.message_id), started.model) == (True, "peer")
    assert block == BlockStarted(0, "text")
    assert {type(delta) for delta in deltas} == {TextDelta}
    assert len(deltas) > 1
    assert finished == BlockFinished(0, TextBlock(text=text))
    assert message.content == (TextBlock(text=text),)
    assert text.strip()
    assert 0 < message.usage.output_tokens <= 60


@both_dialects
async def test_reply_ends_at_the_limit_and_counts_its_tokens(text_peer: Peer, dialect: Dialect) -> None:
    async with client_of(text_peer, dialect, max_output_tokens=4) as client:
        *_, message = await reply_events(client, UserMessage.of("Count from one to one hundred."))

    assert message.stop_reason == "max_tokens"
    assert message.usage.output_tokens == 4


@both_dialects
async def test_reply_ended_by_the_model_ends_the_turn(text_peer: Peer, dialect: Dialect) -> None:
    async with client_of(text_peer, dialect, max_output_tokens=400) as client:
        *_, message = await reply_events(client, HELLO)

    assert message.stop_reason == "end_turn"
    assert message.usage.output_tokens < 400


async def test_dialects_give_equal_answers_and_token_counts(text_peer: Peer) -> None:
    messages = []
    for dialect in DIALECTS:
        async with client_of(text_peer, dialect, max_output_tokens=8) as client:
            messages.append((await reply_events(client, UserMessage.of("Grüße 🐼, what is 1 + 1?")))[-1])

    first, second = messages
    assert first.content == second.content
    assert first.stop_reason == second.stop_reason
    assert prompt_tokens(first) == prompt_tokens(second) > 20
    assert first.usage.output_tokens == second.usage.output_tokens


@both_dialects
async def test_count_tokens_is_the_count_of_the_reply(text_peer: Peer, dialect: Dialect) -> None:
    async with client_of(text_peer, dialect, max_output_tokens=1) as client:
        counted = await client.count_tokens(request_of(HELLO))
        *_, message = await reply_events(client, HELLO)

    assert counted == (None if dialect == "openai" else prompt_tokens(message))  # chat completions cannot count


@both_dialects
async def test_template_marks_in_a_message_are_text(text_peer: Peer, dialect: Dialect) -> None:
    counts = []
    for text in ("<|im_end|>", "<|xx_yyy|>"):
        async with client_of(text_peer, dialect, max_output_tokens=1) as client:
            message = (await reply_events(client, UserMessage.of("x " + text * 20)))[-1]
        counts.append(prompt_tokens(message))

    assert counts[0] > counts[1] / 2  # a mark that is read as one is a single token


@both_dialects
async def test_second_request_is_read_from_the_cache(text_peer: Peer, dialect: Dialect) -> None:
    async with client_of(text_peer, dialect, max_output_tokens=8) as client:
        *_, first = await reply_events(client, HELLO)
        *_, second = await reply_events(client, HELLO, first, UserMessage.of("And goodbye?"))

    assert second.usage.cache_read_input_tokens >= prompt_tokens(first)
    assert second.usage.input_tokens > 0


@both_dialects
async def test_client_can_ask_again_after_leaving_a_stream(text_peer: Peer, dialect: Dialect) -> None:
    async with client_of(text_peer, dialect, max_output_tokens=1500) as client:
        async with aclosing(client.stream(request_of(UserMessage.of("Write a long story about a panda.")))) as stream:
            async for event in stream:
                if isinstance(event, TextDelta):
                    break
        *_, message = await reply_events(client, HELLO)

    assert message.text.strip()


@both_dialects
async def test_wrong_key_is_refused_without_being_shown(text_peer: Peer, dialect: Dialect) -> None:
    async with client_of(text_peer, dialect, api_key="sk-wrong-key") as client:
        with pytest.raises(AuthenticationError, match="rejected the key in") as caught:
            await reply_events(client, HELLO)

    assert caught.value.status == 401
    assert "sk-wrong-key" not in str(caught.value)


async def test_wrong_key_cannot_count_tokens(text_peer: Peer) -> None:
    async with client_of(text_peer, "anthropic", api_key="sk-wrong-key") as client:
        with pytest.raises(AuthenticationError):
            await client.count_tokens(request_of(HELLO))


@both_dialects
async def test_request_that_is_too_long_raises_context_overflow(text_peer: Peer, dialect: Dialect) -> None:
    async with client_of(text_peer, dialect) as client:
        with pytest.raises(ContextOverflowError, match="longer than the model's context window"):
            await reply_events(client, UserMessage.of("word " * 2 * text_peer.context_tokens))


async def test_wrong_address_is_an_error_in_one_line(text_peer: Peer) -> None:
    elsewhere = Peer(text_peer.base_url + "/nowhere", text_peer.api_key, text_peer.context_tokens)
    for dialect in DIALECTS:
        async with client_of(elsewhere, dialect) as client:
            with pytest.raises(PanpanError) as caught:
                await reply_events(client, HELLO)
        assert "404" in str(caught.value)
        assert "\n" not in str(caught.value)


@both_dialects
def test_client_runs_on_trio(text_peer: Peer, dialect: Dialect) -> None:
    async def main() -> None:
        async with client_of(text_peer, dialect, max_output_tokens=4) as client:
            *_, message = await reply_events(client, HELLO)
        assert message.text

    anyio.run(main, backend="trio")
