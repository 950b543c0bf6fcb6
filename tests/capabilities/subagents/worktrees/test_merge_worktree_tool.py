"""MergeWorktree through gate and executor, on worktrees of a real repository."""

from contextlib import aclosing

import pytest

from panpan.capabilities.subagents.worktrees.merge_worktree import MergeWorktreeTool
from panpan.core.tool import SeenFiles, ToolContext
from panpan.core.tool_executor import ToolExecutor
from panpan.permissions.gate import PermissionGate
from panpan.permissions.rules.rules import RuleSource
from panpan.system.files.output_store import OutputStore
from panpan.system.files.paths import PathResolver
from panpan.types.content import DiffDisplay, ToolUseBlock
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import PermissionAnswer
from tests.capabilities.subagents.worktrees.copied_project import AGENT, CopiedProject


class Session:
    """Calls the tool as the loop does; notes what was asked, and does something before the answer."""

    def __init__(self, project, *, mode="default", deny=(), says=True):
        self.asked = []
        self.meanwhile = lambda: None
        self._says = says
        tool = MergeWorktreeTool(lambda: project.merges)
        paths = PathResolver(project.folder, protected_roots=(project.home,))
        context = ToolContext("", paths, SeenFiles(), OutputStore(project.home / "outputs"))
        gate = PermissionGate([RuleSource("test", deny=deny)], mode=mode)
        self._executor = ToolExecutor({tool.name: tool}, context, [gate], ask=self._ask)

    async def _ask(self, question):
        self.asked.append(question)
        self.meanwhile()
        return PermissionAnswer(is_allowed=self._says)

    async def call(self, action, agent_id=AGENT):
        use = ToolUseBlock(id="1", name="MergeWorktree", input={"agent_id": agent_id, "action": action})
        async with self._executor as executor, aclosing(executor.run([use])) as events:
            results = [event async for event in events if isinstance(event, ToolResultMessage)]
        assert len(results) == 1
        return results[0]


@pytest.fixture
async def project(tmp_path):
    """A project with a worktree in which two files were changed."""
    project = CopiedProject(tmp_path, {"a.py": b"one\ntwo\n", "b.py": b"b\n", ".env": b"KEY=1\n"})
    project.worktree = await project.worktrees.make(AGENT)
    project.put("a.py", b"one\n2\n", project.worktree.path)
    project.put("new.py", b"new\n", project.worktree.path)
    await project.worktrees.changes(project.worktree)
    return project


async def test_difference_is_shown_without_a_question(project):
    session = Session(project)

    result = await session.call("diff")

    assert session.asked == []
    assert "-two\n+2\n" in result.text
    assert "+++ b/new.py" in result.text


async def test_merge_asks_with_the_difference_and_does_it(project):
    session = Session(project)

    result = await session.call("merge")

    [question] = session.asked
    assert [(one.path, one.added, one.removed, one.is_new) for one in question.preview.files] == [
        ("a.py", 1, 1, False),
        ("new.py", 1, 0, True),
    ]
    assert "-two\n+2" in question.preview.files[0].diff
    assert not question.is_protected
    assert (project.folder / "a.py").read_bytes() == b"one\n2\n"
    assert "2 files of the project changed" in result.text
    assert "a.py (changed, +1 -1)" in result.text
    assert "the worktree is removed" in result.text
    assert result.display == question.preview
    assert not project.worktree.path.exists()


async def test_merge_after_a_no_changes_nothing(project):
    result = await Session(project, says=False).call("merge")

    assert result.is_error
    assert (project.folder / "a.py").read_bytes() == b"one\ntwo\n"
    assert project.worktree.path.exists()


@pytest.mark.parametrize("deny", ["Edit(a.py)", "MergeWorktree"])
async def test_file_rules_hold_for_a_merge(project, deny):
    session = Session(project, mode="bypassPermissions", deny=(deny,))

    result = await session.call("merge")

    assert result.is_error
    assert session.asked == []
    assert (project.folder / "a.py").read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize(("mode", "is_merged"), [("acceptEdits", True), ("plan", False)])
async def test_mode_decides_about_a_merge_as_about_a_write(project, mode, is_merged):
    session = Session(project, mode=mode)

    result = await session.call("merge")

    assert result.is_error == (not is_merged)
    assert session.asked == []
    assert project.worktree.path.exists() == (not is_merged)


async def test_protected_file_is_asked_about_in_every_mode(project):
    project.put(".env", b"KEY=2\n", project.worktree.path)
    await project.worktrees.changes(project.worktree)
    session = Session(project, mode="bypassPermissions")

    await session.call("merge")

    [question] = session.asked
    assert question.is_protected
    assert ".env" in question.reason


async def test_changes_during_the_question_stop_the_merge(project):
    session = Session(project)
    session.meanwhile = lambda: project.put("a.py", b"zero\none\ntwo\n")

    result = await session.call("merge")

    assert result.is_error
    assert "files changed while the user was asked" in result.text
    assert (project.folder / "a.py").read_bytes() == b"zero\none\ntwo\n"
    assert not (project.folder / "new.py").exists()


async def test_conflicts_are_named_and_the_rest_is_merged(project):
    project.put("a.py", b"one\nTWO\n")

    result = await Session(project).call("merge")

    assert not result.is_error
    assert "a.py: the same lines were changed since" in result.text
    assert "1 file of the project changed" in result.text
    assert "The worktree stays" in result.text
    assert (project.folder / "a.py").read_bytes() == b"one\nTWO\n"
    assert (project.folder / "new.py").read_bytes() == b"new\n"
    assert isinstance(result.display, DiffDisplay)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
async def test_discarding_changes_is_asked_about_in_every_mode(project, mode):
    refused = Session(project, mode=mode, says=False)
    assert (await refused.call("discard")).is_error
    assert len(refused.asked) == 1
    assert project.worktree.path.exists()

    result = await Session(project, mode=mode).call("discard")

    assert not result.is_error
    assert not project.worktree.path.exists()
    assert (project.folder / "a.py").read_bytes() == b"one\ntwo\n"


@pytest.mark.parametrize("action", ["diff", "merge", "discard"])
async def test_id_without_a_worktree_is_a_clear_error(project, action):
    session = Session(project)

    result = await session.call(action, "ffffffff")

    assert result.is_error
    assert "no subagent with the id 'ffffffff' has a worktree" in result.text
    assert session.asked == []


async def test_file_names_cannot_drive_the_terminal(project):
    project.put("\x1b[2Jx", b"x\n", project.worktree.path)
    await project.worktrees.changes(project.worktree)

    result = await Session(project).call("merge")

    assert "\x1b" not in result.text
