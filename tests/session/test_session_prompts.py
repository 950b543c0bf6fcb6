"""A session attaches what its prompt mentions, and runs slash commands, whoever hands the prompt over."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import pytest

from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource
from panpan.session.command import CommandResult
from panpan.session.session import Session
from panpan.types.attachments import attached_names
from panpan.types.content import TextBlock
from panpan.types.events import CommandRan, Event, TurnEnded
from panpan.types.messages import UserMessage
from tests.fakes.scripted_llm import ScriptedLLM, say
from tests.fakes.session import session_in


class FakeCommands:
    """Takes each text with a slash for a command, and answers it with `result`."""

    names: Sequence[str] = ("cost",)

    def __init__(self, *, text: str = "", prompts: Sequence[str] = ()) -> None:
        self.result = CommandResult(text, prompts)

    def line_in(self, text: str) -> str | None:
        return text if text.startswith("/") else None

    async def run(self, line: str, session: Session) -> CommandResult:
        return self.result


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "w"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.txt").write_text(f"this is {name}\n")
    return folder


def message(*texts: str) -> UserMessage:
    return UserMessage(content=tuple(TextBlock(text=text) for text in texts))


async def events_of(session: Session, prompt: str | UserMessage) -> list[Event]:
    async with aclosing(session.submit(prompt)) as events:
        return [event async for event in events]


async def asked(session: Session, llm: ScriptedLLM, prompt: str | UserMessage) -> list[UserMessage]:
    """Return the messages of the user when the model is asked for its answer to `prompt`."""
    async with session:
        await events_of(session, prompt)
    return [one for one in llm.histories[-1] if isinstance(one, UserMessage)]


@pytest.mark.parametrize("prompt", ["read @a.txt", message("read @a.txt")])
async def test_submit_attaches_what_the_words_mention(root: Path, prompt: str | UserMessage) -> None:
    llm = ScriptedLLM(say("done"))

    (said,) = await asked(session_in(root, llm), llm, prompt)

    assert attached_names(said) == ["a.txt"]
    assert "this is a" in said.text


@pytest.mark.parametrize("data", ["@b.txt", "/cost", "see @b.txt\n/cost\n@a.txt"])
async def test_submit_looks_for_nothing_in_data(root: Path, data: str) -> None:
    llm = ScriptedLLM(say("done"))

    (said,) = await asked(session_in(root, llm, commands=FakeCommands()), llm, message("review @a.txt", data))

    assert attached_names(said) == ["a.txt"]
    assert [block.text for block in said.content[:2] if isinstance(block, TextBlock)] == ["review @a.txt", data]


async def test_submit_leaves_out_what_a_rule_denies_and_says_so(root: Path) -> None:
    llm, warnings = ScriptedLLM(say("done")), list[str]()
    gate = PermissionGate([RuleSource("settings", may_allow=True, allow=[], ask=[], deny=["Read(a.txt)"])])

    (said,) = await asked(session_in(root, llm, gate=gate, warn=warnings.append), llm, "@a.txt and @b.txt")

    assert attached_names(said) == ["b.txt"]
    assert len(warnings) == 1
    assert "Read(a.txt)" in warnings[0]


async def test_send_attaches_nothing_more(root: Path) -> None:
    llm = ScriptedLLM(say("done"))
    session = session_in(root, llm)
    async with session, aclosing(session.send(UserMessage.of("@a.txt"))) as events:
        async for _ in events:
            pass

    assert [one.content for one in llm.histories[-1] if isinstance(one, UserMessage)] == [
        UserMessage.of("@a.txt").content
    ]


async def test_steer_attaches_and_refuses_slash_commands(root: Path) -> None:
    session = session_in(root, ScriptedLLM(), commands=FakeCommands())
    async with session:
        took = [await session.steer(prompt) for prompt in ("also @b.txt", "/cost")]
        waiting = session.steering.waiting

    assert took == [True, False]
    assert [attached_names(one) for one in waiting] == [["b.txt"]]


async def test_slash_command_shows_its_text_and_asks_no_model(root: Path) -> None:
    llm = ScriptedLLM()
    session = session_in(root, llm, commands=FakeCommands(text="it cost nothing"))
    async with session:
        events = await events_of(session, "/cost")

    assert events[0] == CommandRan("/cost", "it cost nothing")
    assert isinstance(events[-1], TurnEnded)
    assert len(events) == 2
    assert (llm.histories, list(session.conversation.messages)) == ([], [])


async def test_prompt_of_a_slash_command_gets_the_data_of_its_message(root: Path) -> None:
    llm = ScriptedLLM(say("looks good"))
    session = session_in(root, llm, commands=FakeCommands(prompts=["Review this."]))

    (said,) = await asked(session, llm, message("/review", "@a.txt diff"))

    assert said.text == "Review this.\n@a.txt diff"


async def test_data_that_a_slash_command_does_not_use_is_told(root: Path) -> None:
    warnings = list[str]()
    session = session_in(root, ScriptedLLM(), commands=FakeCommands(text="shown"), warn=warnings.append)
    async with session:
        await events_of(session, message("/cost", "data"))

    assert warnings == ["/cost asks no model and ignores the data that came with it"]
