import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.models.calls_in_text import MAX_CHARS, CallReadingBuilder, can_become_calls, read_calls
from panpan.models.providers.openai_compatible import OpenAICompatibleProvider
from panpan.models.providers.vendor_profiles import GPT, OLLAMA, PROFILES, VendorProfile
from panpan.types.content import TextBlock, ThinkingBlock, ToolUseBlock
from panpan.types.events import BlockFinished, BlockStarted, ReplyStarted, StreamEvent, TextDelta, ToolInputDelta
from panpan.types.llm import ModelOptions, ModelRequest, ToolDefinition
from panpan.types.messages import AssistantMessage, StopReason, UserMessage
from tests.models.loopback import Answer, serving
from tests.models.wire import DONE, chunk, collect

CORPUS = Path(__file__).parent / "corpus"
CALLS: dict[str, dict[str, Any]] = tomllib.loads((CORPUS / "calls.toml").read_text(encoding="utf-8"))
TEXTS: dict[str, dict[str, Any]] = tomllib.loads((CORPUS / "texts.toml").read_text(encoding="utf-8"))
TOOLS = frozenset({"Read", "Write", "MultiEdit", "LS", "Glob", "Grep", "Bash", "get_weather"}) | {
    "filesystem__list_directory"
}
LS = '{"name": "LS", "arguments": {}}'
READ = '{"name": "Read", "arguments": {"file_path": "a.py"}}'

EVERY_CALL = pytest.mark.parametrize("entry", CALLS.values(), ids=CALLS.keys())
EVERY_TEXT = pytest.mark.parametrize("entry", TEXTS.values(), ids=TEXTS.keys())


def told_by(text: str) -> list[tuple[str, Any]]:
    return [(call.name, json.loads(call.arguments)) for call in read_calls(text, TOOLS)]


def builder(taken_ids: frozenset[str] = frozenset()) -> CallReadingBuilder:
    return CallReadingBuilder(model="asked", tool_names=TOOLS, taken_ids=taken_ids)


def events_of(*pieces: str, stop_reason: StopReason | None = "end_turn") -> list[StreamEvent]:
    """Return the events of a reply whose text comes in these pieces, each in a read of its own."""
    reply = builder()
    events: list[StreamEvent] = []
    for piece in pieces:
        reply.add("text", piece)
        events += reply.take()
    reply.finish(stop_reason)
    return events + reply.take()


def message_in(events: list[StreamEvent]) -> AssistantMessage:
    message = events[-1]
    assert isinstance(message, AssistantMessage)
    return message


def shown(events: list[StreamEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def outcome(message: AssistantMessage) -> list[Any]:
    """Return what a reply came to, without its time."""
    blocks = [(use.name, use.input) if isinstance(use, ToolUseBlock) else use for use in message.content]
    return [message.stop_reason, *blocks]


def check_text(events: list[StreamEvent], text: str) -> None:
    """Check that a reply is this text and nothing else, byte for byte."""
    message = message_in(events)
    assert message.content == (TextBlock(text=text),)
    assert shown(events) == text
    assert not any(isinstance(event, ToolInputDelta) for event in events)


# The corpus


@EVERY_CALL
def test_calls_in_text_are_read(entry: dict[str, Any]) -> None:
    assert told_by(entry["text"]) == [tuple(call) for call in entry["calls"]]


@EVERY_CALL
def test_calls_in_text_are_held_until_complete(entry: dict[str, Any]) -> None:
    text = entry["text"]
    assert all(can_become_calls(text[:end], TOOLS) for end in range(len(text) + 1))

    events = events_of(*text)

    message = message_in(events)
    assert [(use.name, use.input, use.input_error) for use in message.tool_uses] == [(*c, None) for c in entry["calls"]]
    assert (message.text, message.stop_reason, shown(events)) == ("", "tool_use", "")


@EVERY_CALL
def test_call_cut_anywhere_is_not_made(entry: dict[str, Any]) -> None:
    text = entry["text"]
    for end in range(len(text)):
        # one of several is whole when the next has not begun; whoever cuts there is found out by the finish reason
        assert len(told_by(text[:end])) < len(entry["calls"]) or not text[end:].strip()


@EVERY_TEXT
def test_text_without_a_call_stays_text(entry: dict[str, Any]) -> None:
    text = entry["text"]

    assert told_by(text) == []
    check_text(events_of(text), text)
    check_text(events_of(*text), text)


@pytest.mark.parametrize("name", [name for name in TEXTS if name.startswith("other_tools")])
def test_calls_name_only_offered_tools(name: str) -> None:
    text = TEXTS[name]["text"]
    names = {"repository_structure", "read", "functions.Read", "Rea", "Read ", "deploy"}

    assert read_calls(text, TOOLS) == ()
    assert read_calls(text, TOOLS | names) != ()
    assert read_calls(text, frozenset()) == ()


def test_corpus_names_its_sources() -> None:
    seen = [entry["seen"] for entry in (*CALLS.values(), *TEXTS.values()) if "seen" in entry]

    assert len(seen) >= 30
    assert all(url.startswith("https://") for url in seen)


# The rule, on texts that nobody thought of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda values: st.lists(values, max_size=3) | st.dictionaries(st.text(max_size=5), values, max_size=3),
    max_leaves=3,
)
BLANKS = st.text(" \t\r\n", max_size=3)
PAIRS = st.tuples(st.sampled_from(sorted(TOOLS)), st.dictionaries(st.text(max_size=8), VALUES, max_size=3))

WRAPPERS = [
    ("", ""),
    ("```json\n", "```"),
    ("``` \r\n", "```"),
    ("<tool_call>", "</tool_call>"),
    ("<tools>", "</tools>"),
]


@st.composite
def written_calls(draw: st.DrawFn) -> tuple[str, list[tuple[str, Any]]]:
    """Return a text that is calls, and the calls."""
    text, calls = "", []
    for _ in range(draw(st.integers(1, 3))):
        opening, closing = draw(st.sampled_from(WRAPPERS))
        text += draw(BLANKS) + opening
        for pair in draw(st.lists(PAIRS, min_size=1, max_size=2 if opening else 1)):
            name, arguments = pair
            items = [("name", name), ("arguments", arguments)]
            document = dict(draw(st.permutations(items)))
            layout = {"indent": draw(st.sampled_from([None, 0, 2])), "ensure_ascii": draw(st.booleans())}
            text += draw(BLANKS) + json.dumps(document, **layout) + draw(BLANKS)
            calls.append(pair)
        text += closing + draw(BLANKS)
    return text, calls


@given(written_calls(), st.integers(0, 6))
def test_calls_in_any_layout_are_read_and_held(written: tuple[str, list[tuple[str, Any]]], first_end: int) -> None:
    text, calls = written

    assert told_by(text) == calls
    assert all(can_become_calls(text[:end], TOOLS) for end in range(first_end, len(text), 7))


@given(written_calls(), st.text(min_size=1, max_size=20).filter(lambda text: text.strip(" \t\r\n")), st.booleans())
def test_word_beside_calls_makes_them_text(
    written: tuple[str, list[tuple[str, Any]]], words: str, is_before: bool
) -> None:
    text = words + written[0] if is_before else written[0] + words

    assert read_calls(text, TOOLS) == ()
    check_text(events_of(text), text)


FRAGMENTS = st.sampled_from(("```json\n", "```", "<tool_call>", "</tool_call>", "<tools>", LS, READ)) | st.sampled_from(
    ('{"name": "', "LS", '", ', '"arguments": {', '"a": 1', "NaN", "1e999", *'}{[,\\"x \n\x00é🎈\ud83c')
)
CORPUS_TEXTS = st.sampled_from([entry["text"] for entry in (*CALLS.values(), *TEXTS.values())])


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """Return a text of the corpus with pieces put in and taken out, or one of fragments alone."""
    text = draw(CORPUS_TEXTS | st.just(""))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.just(start) | st.integers(start, min(len(text), start + 5)))
        text = text[:start] + draw(FRAGMENTS | st.just("")) + text[end:]
    return text


@st.composite
def split(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> list[str]:
    """Return a text in pieces, some of them empty."""
    text = draw(texts)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@given(split(spoiled()))
def test_pieces_never_change_a_reply_or_lose_text(pieces: list[str]) -> None:
    text = "".join(pieces)
    calls = told_by(text)

    events = events_of(*pieces)

    assert outcome(message_in(events)) == outcome(message_in(events_of(text)))
    if calls:
        assert outcome(message_in(events)) == ["tool_use", *calls]
    elif text:
        check_text(events, text)


@given(split(spoiled()))
def test_shown_text_is_always_a_prefix_of_the_whole(pieces: list[str]) -> None:
    reply = builder()
    told, text = "", ""
    for piece in pieces:
        reply.add("text", piece)
        text += piece
        told += shown(reply.take())
        assert text.startswith(told)
        assert not told or told == text  # once it is let go, nothing is held any more


@given(spoiled())
def test_text_given_up_never_becomes_a_call(text: str) -> None:
    is_given_up = not all(can_become_calls(text[:end], TOOLS) for end in range(len(text) + 1))

    assert not is_given_up or read_calls(text, TOOLS) == ()


@pytest.mark.parametrize("opening", ['{"a":', "[", '{"name": "LS", "arguments": {"a":' + "["])
def test_endless_nesting_is_text(opening: str) -> None:
    text = '{"name": "LS", "arguments": {"a": ' + opening * 30_000

    assert read_calls(text, TOOLS) == ()
    assert not can_become_calls(text, TOOLS)


def test_number_of_a_thousand_digits_does_no_harm() -> None:
    text = f'{{"name": "LS", "arguments": {{"n": {"9" * 6000}}}}}'

    check_text(events_of(text), text)


def test_text_over_the_limit_is_released_at_once() -> None:
    # given a call that is too long by one character
    beginning = '{"name": "Write", "arguments": {"content": "'
    text = beginning + "x" * (MAX_CHARS - len(beginning) - 2) + '"}}'
    assert len(text) == MAX_CHARS + 1

    # then
    check_text(events_of(text), text)
    assert len(read_calls(text.replace("xx", "x", 1), TOOLS)) == 1
    reply = builder()
    reply.add("text", text[:-2])
    reply.add("text", text[-2:] + "x" * MAX_CHARS)
    assert shown(reply.take()) == text + "x" * MAX_CHARS


# What is shown, and when


def test_prose_is_shown_as_it_comes() -> None:
    events = events_of("  ", "I ", "look", ".")

    assert events[:-2] == [
        ReplyStarted("", "asked"),
        BlockStarted(0, "text"),
        TextDelta(0, "  I "),
        TextDelta(0, "look"),
        TextDelta(0, "."),
    ]


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("```python\nx = 1\n```", "```"),
        ('```json\n{"version": 1, "b": 2}\n```', '```json\n{"version": '),
        (READ + "\n\nreads the file", READ + "\n\n"),
        ('{"name": "panpan", "arguments": {}}', '{"name": "'),
        ('<tool_call>\n<function=Read>', "<tool_call>\n"),
        ('{"name": "LS", "arguments": {"n": NaN, "m": "and more"}}', '{"name": "LS", "arguments": {"n": Na'),
        ('{"name": "Read", "arguments": "{}"}', '{"name": "Read", "arguments": '),
    ],
)  # fmt: skip
def test_text_is_released_once_it_cannot_be_a_call(text: str, held: str) -> None:
    reply = builder()
    for end, character in enumerate(text, 1):
        reply.add("text", character)
        if shown(reply.take()):
            # within an eighth of what was held already, so that a long text is not read again for each character
            assert len(held) < end <= len(held) + 1 + len(held) // 8
            return
    raise AssertionError("it was never shown")


def test_call_in_text_has_the_events_of_a_native_one() -> None:
    events = events_of("```json\n", READ, "\n```\n", LS)

    read = ToolUseBlock(id="call", name="Read", input={"file_path": "a.py"})
    ls = ToolUseBlock(id="call-2", name="LS", input={})
    assert events[1:-1] == [
        BlockStarted(0, "tool_use", "call", "Read"),
        ToolInputDelta(0, '{"file_path": "a.py"}'),
        BlockFinished(0, read),
        BlockStarted(1, "tool_use", "call-2", "LS"),
        ToolInputDelta(1, "{}"),
        BlockFinished(1, ls),
    ]
    assert message_in(events).content == (read, ls)


def test_ids_are_new_in_the_conversation() -> None:
    reply = builder(frozenset({"call", "call-2"}))
    reply.add("text", LS + LS)
    reply.finish("end_turn")

    assert [use.id for use in message_in(reply.take()).tool_uses] == ["call-3", "call-4"]


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal", "unknown"])
def test_reply_that_did_not_end_by_itself_is_text(reason: StopReason) -> None:
    events = events_of(LS, stop_reason=reason)

    check_text(events, LS)
    assert message_in(events).stop_reason == reason


def test_reply_without_a_stop_reason_may_be_a_call() -> None:
    assert outcome(message_in(events_of(LS, stop_reason=None))) == ["tool_use", ("LS", {})]


def test_thinking_before_a_call_is_kept_and_ends_at_the_text() -> None:
    reply = builder()
    reply.add("thinking", "I look.")
    reply.add("text", LS)
    assert BlockFinished(0, ThinkingBlock(thinking="I look.")) in reply.take()

    reply.finish("end_turn")
    assert outcome(message_in(reply.take())) == ["tool_use", ThinkingBlock(thinking="I look."), ("LS", {})]


def test_thinking_behind_a_call_makes_it_text() -> None:
    reply = builder()
    reply.add("text", LS)
    reply.add("thinking", "Or not?")
    reply.add("text", LS)
    reply.finish("end_turn")

    message = message_in(reply.take())
    assert message.content == (TextBlock(text=LS), ThinkingBlock(thinking="Or not?"), TextBlock(text=LS))


def test_native_call_makes_the_text_before_it_text() -> None:
    reply = builder()
    reply.add("text", LS)
    reply.open_block("tool_use", tool_use_id="c1", tool_name="Read").parts.append('{"file_path": "a.py"}')
    reply.close_block()
    reply.finish("tool_use")

    content = message_in(reply.take()).content
    assert content == (TextBlock(text=LS), ToolUseBlock(id="c1", name="Read", input={"file_path": "a.py"}))


def test_empty_reply_stays_empty() -> None:
    assert outcome(message_in(events_of())) == ["end_turn"]


# Which models


@pytest.mark.parametrize(
    "model",
    [
        "qwen2.5-coder:1.5b",
        "qwen2.5-coder-16k:latest",
        "hf.co/bartowski/Qwen2.5-Coder-1.5B-Instruct-GGUF:Q4_K_M",
        "Qwen/Qwen2.5-Coder-32B-Instruct-AWQ",
        "qwen/qwen-2.5-coder-32b-instruct",
        "mlx-community--Qwen2.5-Coder-7B-Instruct-4bit",
        "qwen2.5-7B-coder",
        "qwen2_5-coder",
    ],
)
def test_known_models_are_read_at_servers_that_do_not_parse_them(model: str) -> None:
    reading = {name for name, profile in PROFILES.items() if profile.reads_calls_in_text(model)}

    assert reading == {"generic", "ollama", "llama.cpp", "vllm", "lmstudio"}


@pytest.mark.parametrize(
    "model", ["qwen2.5:7b", "qwen3-coder:30b", "qwen3:8b", "deepseek-coder", "gpt-4o", "coder", ""]
)
def test_other_models_are_read_nowhere(model: str) -> None:
    assert not any(profile.reads_calls_in_text(model) for profile in PROFILES.values())


# Through the provider

OFFERED = tuple(ToolDefinition(name, "A tool.", {"type": "object"}) for name in ("LS", "Read"))
CODER = "qwen2.5-coder:1.5b"
AS_JSON = {"content-type": "application/json"}


def said(*pieces: str, reason: str = "stop") -> Answer:
    deltas = [{"role": "assistant", "content": None}, *({"content": piece} for piece in pieces)]
    return Answer([*(chunk(delta) for delta in deltas), chunk(finish_reason=reason), DONE])


async def asked(
    answer: Answer,
    *,
    model: str = CODER,
    profile: VendorProfile = OLLAMA,
    tools: tuple[ToolDefinition, ...] = OFFERED,
) -> list[StreamEvent]:
    async with serving(answer) as server:
        provider = OpenAICompatibleProvider(api_key="", base_url=f"{server.url}/v1", profile=profile)
        try:
            request = ModelRequest("", tools, [UserMessage.of("go")])
            return await collect(provider, request, ModelOptions(model, 1000))
        finally:
            await provider.aclose()


async def test_provider_reads_a_call_of_a_known_model() -> None:
    message = message_in(await asked(said("```json\n", READ[:20], READ[20:], "\n```")))

    assert outcome(message) == ["tool_use", ("Read", {"file_path": "a.py"})]


@pytest.mark.parametrize(
    "different",
    [{"model": "qwen3:8b"}, {"profile": GPT}, {"tools": ()}, {"tools": OFFERED[:1]}],
    ids=["another model", "a server that reads them itself", "no tools", "without this tool"],
)
async def test_same_answer_elsewhere_stays_text(different: dict[str, Any]) -> None:
    events = await asked(said(READ[:20], READ[20:]), **different)

    check_text(events, READ)
    assert message_in(events).stop_reason == "end_turn"


@pytest.mark.parametrize(("reason", "stop_reason"), [("length", "max_tokens"), ("content_filter", "refusal")])
async def test_provider_makes_no_call_of_a_cut_reply(reason: str, stop_reason: str) -> None:
    events = await asked(said(READ, reason=reason))

    check_text(events, READ)
    assert message_in(events).stop_reason == stop_reason


async def test_native_call_beside_text_is_the_only_one() -> None:
    native = {"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "LS", "arguments": "{}"}}]}
    answer = [chunk({"content": READ}), chunk(native), chunk({"content": LS}), chunk(finish_reason="tool_calls"), DONE]

    message = message_in(await asked(Answer(answer)))

    ls = ToolUseBlock(id="c1", name="LS", input={})
    assert message.content == (TextBlock(text=READ), ls, TextBlock(text=LS))


async def test_words_of_a_refusal_are_no_call() -> None:
    message = message_in(await asked(Answer([chunk({"refusal": LS}), chunk(finish_reason="stop"), DONE])))

    assert outcome(message) == ["refusal", TextBlock(text=LS)]


async def test_reply_in_one_document_is_read_too() -> None:
    document = {"id": "1", "choices": [{"index": 0, "message": {"content": LS}, "finish_reason": "stop"}]}

    message = message_in(await asked(Answer([json.dumps(document).encode()], headers=AS_JSON)))

    assert outcome(message) == ["tool_use", ("LS", {})]
