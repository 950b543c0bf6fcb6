from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.app import PROVIDER_KINDS
from panpan.capabilities.cassettes.tape import CassetteProvider, read_tape
from panpan.core.conversation import Conversation
from panpan.errors import CassetteError, ConfigError
from panpan.models.factory import create_client, resolve_model
from panpan.models.model_choice import ModelRequirement
from panpan.types.content import TextBlock, ThinkingBlock, ToolResultBlock
from panpan.types.events import BlockFinished, BlockStarted, ReplyStarted, TextDelta
from panpan.types.llm import ModelOptions, ToolDefinition
from panpan.types.messages import AssistantMessage, ToolResultMessage, Usage, UserMessage

OPTIONS = ModelOptions(model="tape", max_output_tokens=100)
TOOLS = [ToolDefinition(name, "", {"type": "object"}) for name in ("Bash", "Read")]

DEMO = '''
version = 1
title = "Find the bug"

[[reply]]
expects.prompt_contains = ["bug", "calc"]
thinking = "Tests first."
text = """I run the tests.
[[reply]] is only text here, and so is {{ this }}.
"""
usage = { input_tokens = 100, output_tokens = 20 }
[[reply.tool_use]]
name = "Bash"
input = { command = "pytest", env = ["ä"] }
[[reply.tool_use]]
name = "Read"
[reply.tool_use.input]
file_path = "calc.py"

[[reply]]
expects.results_contain = ["1 failed", ""]
text = "Fixed."
'''


def tape(folder: Path, text: str) -> Path:
    path = folder / "demo.toml"
    path.write_text(text, encoding="utf-8")
    return path


async def play(provider: CassetteProvider, conversation: Conversation) -> list[Any]:
    async with aclosing(provider.stream(conversation.request(), OPTIONS)) as events:
        received = [event async for event in events]
    conversation.append(received[-1])
    return received


def answer(conversation: Conversation, *texts: str) -> None:
    for use, text in zip(list(conversation.open_tool_uses.values()), texts, strict=False):
        result = ToolResultBlock(tool_use_id=use.id, content=(TextBlock(text=text),))
        conversation.append(ToolResultMessage(result=result))


def conversation_about(prompt: str, tools: Sequence[ToolDefinition] = TOOLS) -> Conversation:
    return Conversation("system", tools, [UserMessage.of(prompt)])


async def test_tape_plays_a_conversation_reply_by_reply(tmp_path: Path) -> None:
    provider = CassetteProvider.from_file(tape(tmp_path, DEMO))
    conversation = conversation_about("there is a bug in calc")

    first = await play(provider, conversation)
    answer(conversation, "== 1 failed ==", "def add")
    second = await play(provider, conversation)

    thinking, text, bash, read = first[-1].content
    assert thinking == ThinkingBlock(thinking="Tests first.")
    assert text.text == "I run the tests.\n[[reply]] is only text here, and so is {{ this }}.\n"
    assert (bash.name, bash.input) == ("Bash", {"command": "pytest", "env": ["ä"]})
    assert (read.name, read.input) == ("Read", {"file_path": "calc.py"})
    assert bash.id != read.id
    assert first[-1].stop_reason == "tool_use"
    assert first[-1].usage == Usage(input_tokens=100, output_tokens=20)
    assert (second[-1].text, second[-1].stop_reason) == ("Fixed.", "end_turn")


async def test_tape_events_come_in_the_order_of_every_provider(tmp_path: Path) -> None:
    provider = CassetteProvider.from_file(tape(tmp_path, 'version = 1\n[[reply]]\ntext = "a\\nb"'))

    events = await play(provider, conversation_about("x"))

    assert [type(event) for event in events] == [
        ReplyStarted,
        BlockStarted,
        TextDelta,
        TextDelta,
        BlockFinished,
        AssistantMessage,
    ]


async def test_tape_text_appears_at_its_pace(tmp_path: Path) -> None:
    path = tape(tmp_path, 'version = 1\nchars_per_second = 60\n[[reply]]\npause_s = 1.5\ntext = "abcdefg"')
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    loaded, lines = read_tape(path)
    events = await play(CassetteProvider(loaded, lines=lines, sleep=sleep), conversation_about("x"))

    assert [event.text for event in events if isinstance(event, TextDelta)] == ["ab", "cd", "ef", "g"]
    assert pauses[0] == 1.5
    assert sum(pauses[1:]) == pytest.approx(7 / 60)


async def refused(provider: CassetteProvider, conversation: Conversation) -> str:
    with pytest.raises(CassetteError) as caught:
        await play(provider, conversation)
    assert caught.value.provider == "cassette"
    return str(caught.value).partition("demo.toml")[2]


async def test_tape_that_is_over_says_so(tmp_path: Path) -> None:
    provider = CassetteProvider.from_file(tape(tmp_path, 'version = 1\n[[reply]]\ntext = "a"'))
    conversation = conversation_about("x")
    await play(provider, conversation)
    conversation.append(UserMessage.of("more"))

    assert await refused(provider, conversation) == " is over: it has 1 reply, and one more was asked for"


async def test_other_prompt_is_refused(tmp_path: Path) -> None:
    provider = CassetteProvider.from_file(tape(tmp_path, DEMO))

    complaint = await refused(provider, conversation_about("there is a bug in \x1b[31mparser"))

    assert (
        complaint == ":5: reply 1 expects the prompt to contain 'calc', but it is 'there is a bug in \\x1b[31mparser'"
    )


async def test_other_result_is_refused(tmp_path: Path) -> None:
    provider = CassetteProvider.from_file(tape(tmp_path, DEMO))
    conversation = conversation_about("a bug in calc")
    await play(provider, conversation)
    answer(conversation, "x" * 500, "def add")

    complaint = await refused(provider, conversation)

    assert complaint.startswith(":20: reply 2 expects tool result 1 to contain '1 failed', but it is 'xxx")
    assert len(complaint) < 400


async def test_missing_tool_is_refused(tmp_path: Path) -> None:
    provider = CassetteProvider.from_file(tape(tmp_path, DEMO))

    complaint = await refused(provider, conversation_about("a bug in calc", TOOLS[1:]))

    assert complaint == ":5: reply 1 needs the tool Bash, which is not offered (Read)"


async def test_expected_tool_must_be_offered(tmp_path: Path) -> None:
    text = 'version = 1\n[[reply]]\ntext = "a"\nexpects.tools = ["Edit"]'

    complaint = await refused(CassetteProvider.from_file(tape(tmp_path, text)), conversation_about("x"))

    assert complaint == ":2: reply 1 needs the tool Edit, which is not offered (Bash, Read)"


async def test_wrong_number_of_results_is_refused(tmp_path: Path) -> None:
    three = DEMO.replace('["1 failed", ""]', '["1 failed", "", ""]')
    provider = CassetteProvider.from_file(tape(tmp_path, three))
    conversation = conversation_about("a bug in calc")
    await play(provider, conversation)
    answer(conversation, "1 failed", "x")

    assert await refused(provider, conversation) == ":20: reply 2 expects 3 tool results, and 2 came"


async def test_results_of_other_calls_are_refused(tmp_path: Path) -> None:
    provider = CassetteProvider.from_file(tape(tmp_path, DEMO))
    conversation = conversation_about("a bug in calc")
    await play(provider, conversation)
    answer(conversation, "1 failed", "x")
    renamed = [
        message.model_copy(update={"result": message.result.model_copy(update={"tool_use_id": "other"})})
        if isinstance(message, ToolResultMessage)
        else message
        for message in conversation.messages
    ]
    conversation.messages[:] = renamed

    assert "expects results for the 2 calls before it" in await refused(provider, conversation)


async def test_refused_request_may_come_again_corrected(tmp_path: Path) -> None:
    provider = CassetteProvider.from_file(tape(tmp_path, DEMO))
    await refused(provider, conversation_about("nothing"))

    assert len(await play(provider, conversation_about("a bug in calc"))) > 1


async def test_resumed_conversation_may_begin_a_new_tape(tmp_path: Path) -> None:
    conversation = conversation_about("a bug in calc")
    await play(CassetteProvider.from_file(tape(tmp_path, DEMO)), conversation)
    answer(conversation, "1 failed", "x")

    again = CassetteProvider.from_file(tape(tmp_path, DEMO))
    await play(again, conversation)

    ids = [
        use.id
        for message in conversation.messages
        if isinstance(message, AssistantMessage)
        for use in message.tool_uses
    ]
    assert len(set(ids)) == len(ids) == 4


async def test_incomplete_arguments_never_run(tmp_path: Path) -> None:
    text = (
        'version = 1\n[[reply]]\nstop_reason = "max_tokens"\n[[reply.tool_use]]\nname = "Bash"\narguments = "{\\"comm"'
    )

    *_, message = await play(CassetteProvider.from_file(tape(tmp_path, text)), conversation_about("x"))

    assert message.stop_reason == "max_tokens"
    assert message.tool_uses[0].input_error is not None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", ": version: field required"),
        ("version = 2", " has format version 2 and this panpan plays 1; update panpan"),
        ("version = 1", ": reply: field required"),
        ("version = 1\nreply = []", ": reply: tuple should have at least 1 item"),
        ('version = 1\ntitel = "x"\n[[reply]]', ": there is no key titel"),
        ('version = 1\n[[reply]]\ntext = "a"\n\n[[reply]]\ntxt = "b"', ":5: there is no key reply 2.txt"),
        ("version = 1\n[[reply]]\ntext = 3", ":2: reply 1.text: input should be a valid string"),
        ("version = 1\n[[reply]]\n[[reply.tool_use]]\ninput = {}", ":2: reply 1.tool_use.1.name: field required"),
        ("version = 1\n[[reply]]\npause_s = 3600", ":2: reply 1.pause_s: input should be less than or equal to 60"),
        ("version = 1\n[[reply]]\nexpects.result = []", ":2: there is no key reply 1.expects.result"),
        (
            'version = 1\n[[reply]]\n[[reply.tool_use]]\nname = "LS"\ninput = { day = 2026-01-01 }',
            ":2: reply 1.tool_use.1.input: holds a value that JSON does not have, such as a date",
        ),
        ("version = 1\n[[reply]\n", ":2 is not valid TOML"),
        ('version = 1\n[[reply]]\ntext = """abc', ":3 is not valid TOML"),
        (f"version = 1\nx = {'[' * 9_000}", " is nested too deeply"),
    ],
)
def test_damaged_file_error_names_the_place(tmp_path: Path, text: str, complaint: str) -> None:
    path = tape(tmp_path, text)

    with pytest.raises(ConfigError) as caught:
        read_tape(path)

    assert str(caught.value).startswith(f"cassette {path}{complaint}")
    assert "\n" not in str(caught.value)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b"version = 1\n# \xe4")
    for path, complaint in (
        (tmp_path / "none.toml", "none.toml"),
        (tmp_path, str(tmp_path)),
        (tmp_path / "latin.toml", "UTF-8"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            CassetteProvider.from_file(path)


def test_documented_example_is_a_tape(tmp_path: Path) -> None:
    import textwrap

    from panpan.capabilities.cassettes import tape as module

    example = (module.__doc__ or "").partition("\n\n")[2].partition("Two rules.")[0]

    loaded, lines = read_tape(tape(tmp_path, textwrap.dedent(example)))

    assert len(loaded.reply) == len(lines) == 2


def test_factory_plays_a_tape_on_both_event_loops(tmp_path: Path) -> None:
    path = tape(tmp_path, DEMO)

    async def main() -> None:
        client = create_client(resolve_model([ModelRequirement(model=f"cassette:{path}")], {}, kinds=PROVIDER_KINDS))
        async with aclosing(client.stream(conversation_about("a bug in calc").request())) as events:
            *_, message = [event async for event in events]
        assert isinstance(message, AssistantMessage)
        assert (len(message.tool_uses), message.cost_usd) == (2, 0)
        assert await client.count_tokens(conversation_about("x").request()) is None
        await client.aclose()

    for backend in ("asyncio", "trio"):
        anyio.run(main, backend=backend)
