from pathlib import Path

import anyio
import pytest

from panpan.capabilities.files.read import ReadTool
from panpan.capabilities.project_context.nested_memory import NestedMemory
from panpan.core.conversation import Conversation
from panpan.core.hooks import Round, ToolCall
from panpan.core.tool import SeenFiles, ToolContext
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.types.events import Output
from panpan.types.messages import SystemReminder, UserMessage
from tests.capabilities.project_context.project_folder import ProjectFolder


class Reader:
    """Reads files as the loop would, and keeps the conversation."""

    def __init__(self, project: ProjectFolder, conversation: Conversation | None = None) -> None:
        self.project = project
        self.warnings: list[str] = []
        self.hook = NestedMemory(
            project.root, project.root, project.home, project.home / ".panpan", self.warnings.append
        )
        self.conversation = conversation or Conversation(messages=[UserMessage.of("go")])

    async def read(self, *paths: str, is_error: bool = False) -> list[SystemReminder]:
        context = ToolContext(
            "1", PathResolver(self.project.root), SeenFiles(), OutputStore(self.project.home / "outputs")
        )
        for path in paths:
            arguments = {"file_path": path}
            call = await ToolCall.of(
                "1", ReadTool(), ReadTool.input_model.model_validate(arguments), arguments, context
            )
            await self.hook.after_tool(call, Output("text", is_error=is_error))
        additions = list(await self.hook.before_request(Round(2, 10, self.conversation)))
        for addition in additions:
            self.conversation.append(addition)
        return [addition for addition in additions if isinstance(addition, SystemReminder)]


@pytest.fixture
def project(tmp_path: Path) -> ProjectFolder:
    project = ProjectFolder(tmp_path)
    project.write("CLAUDE.md", "root rule")
    project.write("a/CLAUDE.md", "a rule\n@more.md")
    project.write("a/more.md", "imported rule")
    project.write("a/b/AGENTS.md", "b rule")
    project.write("a/b/x.py", "1")
    project.write("a/y.py", "1")
    project.write("z.py", "1")
    return project


async def test_deeper_rules_come_with_the_first_file_read_there(project: ProjectFolder) -> None:
    reader = Reader(project)

    reminders = await reader.read("a/b/x.py")

    assert [reminder.cause for reminder in reminders] == [
        f"memory:{project.root}/a/CLAUDE.md",
        f"memory:{project.root}/a/more.md",
        f"memory:{project.root}/a/b/AGENTS.md",
    ]
    assert "a rule" in reminders[0].text
    assert "root rule" not in "".join(reminder.text for reminder in reminders)


async def test_rules_file_comes_once_in_a_session(project: ProjectFolder) -> None:
    reader = Reader(project)
    first = await reader.read("a/y.py", "a/y.py")

    assert len(first) == 2
    assert len(await reader.read("a/b/x.py", "a/y.py")) == 1
    assert await reader.read("a/b/x.py") == []


async def test_resumed_session_is_not_told_again(project: ProjectFolder) -> None:
    before = Reader(project)
    await before.read("a/b/x.py")

    assert await Reader(project, before.conversation).read("a/b/x.py") == []


async def test_rules_do_not_come_for_top_outside_or_unread_files(project: ProjectFolder) -> None:
    outside = project.write("~/elsewhere/CLAUDE.md", "outside rule").parent / "x.py"
    outside.write_text("1")
    reader = Reader(project)

    assert await reader.read("z.py", str(outside), "a/missing.py") == []
    assert await reader.read("a/b/x.py", is_error=True) == []


async def test_rules_for_certain_files_come_with_the_first_of_them(project: ProjectFolder) -> None:
    project.write(".claude/rules/python.md", "---\npaths: '**/*.py'\n---\npython rule\n@kind.md")
    project.write(".claude/rules/top.md", "---\npaths: '*.txt'\n---\ntop rule")
    project.write(".claude/rules/kind.md", "---\npaths: '*.none'\n---\n")
    project.write("a/b/note.txt", "1")
    project.write("top.txt", "1")
    reader = Reader(project)

    assert [one.cause.rpartition("/")[2] for one in await reader.read("a/b/note.txt")] == [
        "CLAUDE.md", "more.md", "AGENTS.md",
    ]  # fmt: skip
    assert [one.cause.rpartition("/")[2] for one in await reader.read("z.py")] == ["python.md"]
    assert [one.cause.rpartition("/")[2] for one in await reader.read("top.txt")] == ["top.md"]
    assert await reader.read("z.py") == []


async def test_rules_with_broken_patterns_are_left_out_with_a_warning(project: ProjectFolder) -> None:
    project.write(".claude/rules/a.md", "---\npaths: ['src/[z-a].py']\n---\nbroken rule")
    project.write(".claude/rules/b.md", "---\npaths: '*.py'\n---\ngood rule")
    project.write("a/.claude/rules/c.md", "---\npaths: '[z-a]'\n---\ndeeper broken rule")
    reader = Reader(project)

    found = await reader.read("z.py", "a/y.py")

    assert [one.cause.rpartition("/")[2] for one in found] == ["b.md", "CLAUDE.md", "more.md"]
    assert [warning.partition(" do not count")[0] for warning in reader.warnings] == [
        f"the rules of {project.root}/.claude/rules/a.md",
        f"the rules of {project.root}/a/.claude/rules/c.md",
    ]


async def test_imports_of_deeper_files_stay_inside_the_project(project: ProjectFolder) -> None:
    project.write("~/secret.md", "a secret")
    project.write("c/CLAUDE.md", "c rule @~/secret.md")
    project.write("c/x.py", "1")
    reader = Reader(project)

    [reminder] = await reader.read("c/x.py")

    assert "a secret" not in reminder.text
    assert "outside the project" in reader.warnings[0]


async def test_rules_of_the_project_context_are_not_repeated(project: ProjectFolder) -> None:
    project.write("CLAUDE.md", "root rule @a/CLAUDE.md")
    context = await project.context()
    reader = Reader(project)
    await reader.hook.note_loaded(context.loaded)

    assert await reader.read("a/y.py") == []


def test_parallel_reads_tell_each_rules_file_once_on_trio(project: ProjectFolder) -> None:
    async def main() -> list[SystemReminder]:
        reader = Reader(project)
        async with anyio.create_task_group() as task_group:
            for _ in range(8):
                task_group.start_soon(reader.read, "a/b/x.py")
        return [message for message in reader.conversation.messages if isinstance(message, SystemReminder)]

    assert len(anyio.run(main, backend="trio")) == 3
