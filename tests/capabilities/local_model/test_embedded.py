"""The embedded model's provider in front of a scripted server: what is sent besides the conversation, and when."""

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace

import anyio
import pytest

from panpan.app import PROVIDER_KINDS
from panpan.capabilities.local_model.embedded import EmbeddedProvider
from panpan.capabilities.local_model.server import EmbeddedProfile, ServedModel, embedded_profile
from panpan.errors import ConfigError, ProviderError
from panpan.models.factory import GenerationOptions, model_options, resolve_model
from panpan.models.model_choice import ModelRequirement
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.events import BlockFinished, ReplyStarted, StreamEvent, Waiting
from panpan.types.llm import ModelOptions, ModelRequest, Sampling
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from tests.model_server import ModelServer, call, say, serving

KEY = "key-of-this-run"
OPTIONS = ModelOptions("local", 1_500, temperature=0.0)
PROFILE = embedded_profile()


@dataclass
class Servers:
    """Opens the scripted server, and knows how often."""

    server: ModelServer
    started: int = 0
    ended: int = 0
    is_dead: bool = False
    failure: Exception | None = None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ServedModel]:
        if self.failure is not None:
            raise self.failure
        self.started += 1
        self.is_dead = False
        try:
            yield ServedModel(self.server.openai_url, KEY, lambda: self.is_dead)
        finally:
            self.ended += 1

    def provider(self, profile: EmbeddedProfile = PROFILE) -> EmbeddedProvider:
        return EmbeddedProvider(self.open, profile)


@dataclass
class Talk:
    """A conversation."""

    messages: list[Message] = field(default_factory=list)

    def request(self, words: str) -> ModelRequest:
        self.messages.append(UserMessage.of(words))
        tools = tuple((PROFILE.model.tools or {}).values())
        return ModelRequest(PROFILE.model.system_prompt or "", tools, list(self.messages))


async def events_of(provider: EmbeddedProvider, request: ModelRequest) -> list[StreamEvent]:
    async with aclosing(provider.stream(request, OPTIONS)) as events:
        return [event async for event in events]


def waits(events: list[StreamEvent]) -> list[str]:
    return [event.reason for event in events if isinstance(event, Waiting)]


def sent(server: ModelServer, number: int) -> list[str]:
    """Return the users' texts of a request, including those of the examples."""
    return [message["content"] for message in server.requests[number].messages if message["role"] == "user"]


EXAMPLE_PROMPTS = [message.text for message in PROFILE.examples if isinstance(message, UserMessage)]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_server_runs_from_the_first_request_to_the_end(backend: str) -> None:
    async def main() -> None:
        with serving([say("One."), say("Two.")], api_key=KEY) as server:
            servers = Servers(server)
            provider = servers.provider()
            talk = Talk()
            assert servers.started == 0

            first = await events_of(provider, talk.request("one"))
            talk.messages.append(first[-1])
            second = await events_of(provider, talk.request("two"))
            assert (servers.started, servers.ended) == (1, 0)
            await provider.aclose()

        assert (servers.started, servers.ended) == (1, 1)
        assert waits(first) == ["starting the small local model; the very first start takes half a minute more"]
        assert waits(second) == []
        assert [events[-1].text for events in (first, second)] == ["One.", "Two."]

    anyio.run(main, backend=backend)


async def test_examples_stand_before_the_conversation() -> None:
    with serving([say("Hello.")], api_key=KEY) as server:
        provider = Servers(server).provider()
        request = Talk().request("hi")
        before = list(request.messages)
        await events_of(provider, request)
        await provider.aclose()

    assert sent(server, 0) == [*EXAMPLE_PROMPTS, "hi"]
    assert list(request.messages) == before, "the conversation itself has none of them"
    assert server.requests[0].body["temperature"] == 0
    assert server.refusals == []


async def test_request_begins_like_the_one_before() -> None:
    with serving([say("One."), say("Two.")], api_key=KEY) as server:
        provider, talk = Servers(server).provider(), Talk()
        talk.messages.append((await events_of(provider, talk.request("one")))[-1])
        await events_of(provider, talk.request("two"))
        await provider.aclose()

    first, second = (request.messages for request in server.requests)
    assert second[: len(first)] == first
    assert len(second) == len(first) + 2


async def test_second_conversation_waits_for_the_first() -> None:
    with serving([say("First."), say("Second.")], api_key=KEY) as server:
        servers = Servers(server)
        provider = servers.provider()
        first = provider.stream(Talk().request("first"), OPTIONS)
        while not isinstance(await anext(first), ReplyStarted):
            pass

        second = provider.stream(Talk().request("second"), OPTIONS)
        wait = await anext(second)
        assert isinstance(wait, Waiting)
        assert wait.reason == "the small local model is answering somebody else"
        with pytest.raises(TimeoutError):
            with anyio.fail_after(0.05):
                await anext(second)
        assert len(server.requests) == 1

        async with aclosing(first), aclosing(provider.stream(Talk().request("second"), OPTIONS)) as third:
            assert isinstance(await anext(third), Waiting)
            await first.aclose()
            rest = [event async for event in third]
        await provider.aclose()

    assert rest[-1].text == "Second."
    assert servers.started == 1


async def test_conversations_keep_their_omissions_apart() -> None:
    long = "x y " * 8_000
    with serving(lambda _: say("Yes."), api_key=KEY) as server:
        provider, full, short = Servers(server).provider(), Talk(), Talk()
        full.messages += [UserMessage.of(long), AssistantMessage(content=(TextBlock(text="ok"),))]
        short.messages += [UserMessage.of("brief"), AssistantMessage(content=(TextBlock(text="ok"),))]
        for talk in (full, short, full):
            talk.messages.append((await events_of(provider, talk.request("go on")))[-1])
        await provider.aclose()

    said = [sent(server, number)[len(EXAMPLE_PROMPTS) :] for number in range(3)]
    assert said == [["go on"], ["brief", "go on"], ["go on", "go on"]]


async def test_ended_server_is_restarted_with_a_note() -> None:
    with serving([say("One."), say("Two.")], api_key=KEY) as server:
        servers = Servers(server)
        provider, talk = servers.provider(), Talk()
        await events_of(provider, talk.request("one"))
        servers.is_dead = True
        again = await events_of(provider, Talk().request("two"))
        await provider.aclose()

    assert (servers.started, servers.ended) == (2, 2)
    assert waits(again) == ["starting the small local model; the very first start takes half a minute more"]
    assert again[-1].text == "Two."


async def test_failed_start_is_retried_with_the_next_request() -> None:
    with serving([say("One.")], api_key=KEY) as server:
        servers = Servers(server, failure=ConfigError("no memory"))
        provider = servers.provider()
        with pytest.raises(ConfigError, match="no memory"):
            await events_of(provider, Talk().request("one"))
        servers.failure = None
        events = await events_of(provider, Talk().request("one"))
        await provider.aclose()

    assert events[-1].text == "One."


async def test_failed_request_lets_the_next_one_through() -> None:
    with serving([say("One.")], api_key="another key") as server:
        provider = Servers(server).provider()
        for _ in range(2):
            with pytest.raises(ProviderError, match="local"):
                with anyio.fail_after(30):
                    await events_of(provider, Talk().request("one"))
        await provider.aclose()

    assert len(server.requests) == 2


async def test_profile_without_examples_sends_only_the_conversation() -> None:
    with serving([say("Hello.")], api_key=KEY) as server:
        provider = Servers(server).provider(replace(PROFILE, examples=()))
        await events_of(provider, Talk().request("hi"))
        await provider.aclose()

    assert sent(server, 0) == ["hi"]


async def test_edit_of_an_unread_file_comes_as_its_reading() -> None:
    edit = {"file_path": "a.txt", "old_string": "red", "new_string": "blue"}
    with serving([call("Edit", edit), call("Edit", edit)], api_key=KEY) as server:
        provider, talk = Servers(server).provider(), Talk()
        talk.messages.append((await events_of(provider, talk.request("say blue, not red, in a.txt")))[-1])
        (read,) = talk.messages[-1].tool_uses
        talk.messages.append(answered(read, "     1\tred", is_error=False))
        (again,) = (await events_of(provider, talk.request("go on")))[-1].tool_uses
        await provider.aclose()

    assert (read.name, read.input) == ("Read", {"file_path": "a.txt"})
    assert (again.name, again.input) == ("Edit", edit)


async def test_plain_consequence_of_a_refusal_needs_no_model() -> None:
    use = ToolUseBlock(id="c1", name="Read", input={"file_path": "docs"})
    refusal = answered(use, "docs is a folder, not a file; to see the files in it, call LS")
    reading = AssistantMessage(content=(use,), model="local", stop_reason="tool_use")
    with serving([], api_key=KEY) as server:
        servers = Servers(server)
        provider = servers.provider()
        request = replace(Talk().request("what is in docs?"), messages=[UserMessage.of("hm"), reading, refusal])
        events = await events_of(provider, request)
        await provider.aclose()

    (listing,) = events[-1].tool_uses
    assert (listing.name, listing.input) == ("Bash", {"command": "ls docs"})
    assert servers.started == 0


async def test_claimed_change_is_begun_for_the_model_to_finish() -> None:
    read = ToolUseBlock(id="c1", name="Read", input={"file_path": "a.txt"})
    reading = AssistantMessage(content=(read,), model="local", stop_reason="tool_use")
    words = UserMessage.of("a.txt should say blue")
    edit = {"file_path": "a.txt", "old_string": "red", "new_string": "blue"}
    with serving([say("a.txt now says blue."), call("Edit", edit), say("Done.")], api_key=KEY) as server:
        provider = Servers(server).provider()
        messages = [words, reading, answered(read, "     1\tred", is_error=False)]
        events = await events_of(provider, replace(Talk().request(""), messages=messages))
        await provider.aclose()

    (use,) = events[-1].tool_uses
    assert (events[-1].text, events[-1].stop_reason) == ("a.txt now says blue.", "tool_use")
    assert (use.name, use.input) == ("Edit", edit)
    assert [block.index for block in events if isinstance(block, BlockFinished)] == [0, 1]
    first, second = (request.messages for request in server.requests)
    assert second[:-1] == first
    assert (second[-1]["role"], second[-1]["content"]) == (
        "assistant",
        '```json\n{"name": "Edit", "arguments": {"file_path": "a.txt", "old_string": "',
    )


def answered(use: ToolUseBlock, text: str, *, is_error: bool = True) -> ToolResultMessage:
    block = ToolResultBlock(tool_use_id=use.id, content=(TextBlock(text=text),), is_error=is_error)
    return ToolResultMessage(result=block)


def local(*requirements: ModelRequirement, env: dict[str, str] | None = None):
    own = {"HOME": "/home/me", **(env or {})}
    return resolve_model([*requirements, ModelRequirement("--model", model="local")], own, kinds=PROVIDER_KINDS)


def test_local_model_options_are_its_own() -> None:
    model = local()

    assert (model.kind, model.provider, model.model, model.api_key) == ("local", "local", "local", "")
    assert model.base_url == "/home/me/.cache/panpan/models/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
    assert model.reason == "the small local model, on this machine, since --model chose it"
    assert model.profile == PROFILE.model
    assert model_options(model, GenerationOptions()) == OPTIONS
    assert model_options(model, GenerationOptions(sampling=Sampling(0.7), max_output_tokens=99_999)) == replace(
        OPTIONS, temperature=0.7
    )


@pytest.mark.parametrize(
    "weaker",
    [
        ModelRequirement("settings", provider="anthropic"),
        ModelRequirement("settings", base_url="https://example.org/v1"),
        ModelRequirement("settings", provider="openai", api_key="sk-settings-0123456789"),
    ],
)
def test_local_model_asks_no_other_server_and_sends_no_key(weaker: ModelRequirement) -> None:
    model = local(weaker, env={"ANTHROPIC_API_KEY": "sk-ant-test", "OPENAI_API_KEY": "sk-test"})

    assert (model.kind, model.api_key, dict(model.headers)) == ("local", "", {})
