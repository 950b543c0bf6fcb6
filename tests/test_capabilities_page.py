"""Each example of docs/capabilities.md, as a user would put it into a file of their home."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from panpan.api import open_session
from panpan.types.content import StatusItem, text
from panpan.types.events import CommandRan
from panpan.types.messages import Message, SystemReminder, ToolResultMessage, UserMessage

PAGE = (Path(__file__).parents[1] / "docs" / "capabilities.md").read_text(encoding="utf-8")
EXAMPLES = {
    name: code
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    for name in re.findall(r'^    name = "(\w+)"$', code, re.MULTILINE)
}
READ = 'tool_use = [{ name = "Read", input = { file_path = "a.txt" } }]'


class Place:
    def __init__(self, root: Path) -> None:
        self.root, self.home = root / "project", root / "home"
        self.root.mkdir()
        (self.root / "a.txt").write_text("one\ntwo\n")
        self.warnings: list[str] = []
        self.shown: list[str] = []
        self.status: Sequence[StatusItem] = ()

    async def run(self, name: str, *replies: str, settings: str = "", prompt: str = "go") -> list[Message]:
        folder = self.home / "capabilities"
        folder.mkdir(parents=True)
        (folder / f"{name}.py").write_text(EXAMPLES[name])
        (self.home / "settings.toml").write_text(settings or f"capabilities.{name} = true\n")
        tape = self.root.parent / "tape.toml"
        tape.write_text("version = 1\n" + "".join(f"[[reply]]\n{reply}\n" for reply in (*replies, 'text = "done"')))
        wishes: dict[str, Any] = {"env": {"HOME": str(self.root.parent), "PANPAN_HOME": str(self.home)}}
        async with open_session(
            self.root, overrides={"model": f"cassette:{tape}"}, warn=self.warnings.append, **wishes
        ) as session:
            async for event in session.submit(prompt):
                if isinstance(event, CommandRan):
                    self.shown.append(event.text)
            self.status = session.capabilities.status()
            return list(session.conversation.messages)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def results(messages: list[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolResultMessage)]


def test_capability_examples_are_all_tried() -> None:
    assert set(EXAMPLES) == {"line_count", "call_limit", "call_count", "shout", "greeting", "evening", "watcher"}


async def test_tool_counts_lines(place: Place) -> None:
    call = 'tool_use = [{ name = "count_lines", input = { path = "a.txt" } }]'

    assert results(await place.run("line_count", call)) == ["2 lines"]
    assert place.warnings == []


async def test_hook_limits_calls(place: Place) -> None:
    told = results(await place.run("call_limit", *(READ,) * 3))

    assert ["2 calls are enough" in text for text in told] == [False, False, True]


async def test_status_counts_calls(place: Place) -> None:
    await place.run("call_count", READ, READ)

    assert (place.status, place.warnings) == ([text("2 calls")], [])


async def test_setting_is_used(place: Place) -> None:
    messages = await place.run("greeting", settings='[capabilities.greeting]\ngreeting = "Good morning"\n')

    (said,) = [message.text for message in messages if isinstance(message, UserMessage)]
    assert said == "Good morning! go"


async def test_reminder_is_told_once(place: Place) -> None:
    messages = await place.run("evening", READ)

    assert [one.cause for one in messages if isinstance(one, SystemReminder)].count("late_hour") == 1


async def test_task_beside_the_session_ends_with_it(place: Place) -> None:
    await place.run("watcher")

    assert place.warnings == ["the watcher has stopped"]


async def test_slash_command_runs_without_a_terminal(place: Place) -> None:
    await place.run("shout", prompt="/shout hello")

    assert (place.shown, place.warnings) == (["HELLO"], [])
