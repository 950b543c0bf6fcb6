"""Each example of docs/capabilities.md, as a user would put it into a file of their home."""

import re
from pathlib import Path
from typing import Any

from panpan.types.content import text
from panpan.types.messages import SystemReminder, UserMessage
from tests.fakes.project import Project, Ran

PAGE = (Path(__file__).parents[1] / "docs" / "capabilities.md").read_text(encoding="utf-8")
EXAMPLES = {
    name: code
    for code in re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    for name in re.findall(r'^    name = "(\w+)"$', code, re.MULTILINE)
}
READ = ("Read", {"file_path": "a.txt"})


async def run_example(project: Project, name: str, *calls: Any, settings: str = "", **options: Any) -> Ran:
    """Run a session with an example, as its file in the home, switched on."""
    (project.home / "capabilities").mkdir()
    (project.home / "capabilities" / f"{name}.py").write_text(EXAMPLES[name])
    (project.home / "settings.toml").write_text(settings or f"capabilities.{name} = true\n")
    project.write("a.txt", "one\ntwo\n")
    return await project.run(*calls, **options)


def test_capability_examples_are_all_tried() -> None:
    tried = {"line_count", "call_limit", "call_count", "shout", "greeting", "evening", "watcher", "parrot"}

    assert set(EXAMPLES) == tried


async def test_tool_counts_lines(project: Project) -> None:
    ran = await run_example(project, "line_count", ("count_lines", {"path": "a.txt"}))

    assert (ran.results, project.warnings) == (["2 lines"], [])


async def test_hook_limits_calls(project: Project) -> None:
    ran = await run_example(project, "call_limit", READ, READ, READ)

    assert ["2 calls are enough" in text for text in ran.results] == [False, False, True]


async def test_status_counts_calls(project: Project) -> None:
    ran = await run_example(project, "call_count", READ, READ)

    assert (ran.status, project.warnings) == ([text("2 calls")], [])


async def test_setting_is_used(project: Project) -> None:
    ran = await run_example(project, "greeting", settings='[capabilities.greeting]\ngreeting = "Good morning"\n')

    (said,) = [message.text for message in ran.messages if isinstance(message, UserMessage)]
    assert said == "Good morning! go"


async def test_reminder_is_told_once(project: Project) -> None:
    ran = await run_example(project, "evening", READ)

    assert [one.cause for one in ran.messages if isinstance(one, SystemReminder)].count("late_hour") == 1


async def test_provider_answers(project: Project) -> None:
    ran = await run_example(project, "parrot", prompts=["hello there"], overrides={"model": "parrot:polly"})

    assert (ran.answers, ran.requests, project.warnings) == (["hello there "], [], [])


async def test_task_beside_the_session_ends_with_it(project: Project) -> None:
    await run_example(project, "watcher")

    assert project.warnings == ["the watcher has stopped"]


async def test_slash_command_runs_without_a_terminal(project: Project) -> None:
    ran = await run_example(project, "shout", prompts=["/shout hello"])

    assert (ran.shown, project.warnings) == (["HELLO"], [])
