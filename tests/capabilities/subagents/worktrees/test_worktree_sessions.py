"""A subagent's worktree from its beginning to the merge, in a session put together as the program does it."""

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, aclosing

import pytest

from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.capabilities.snapshots.rounds import Snapshots
from panpan.session.session import Session
from panpan.types.events import SubagentEvent
from panpan.types.messages import ToolResultMessage
from panpan.types.permission import PermissionAnswer, PermissionQuestion
from tests.capabilities.language_servers.toy import SCRIPT
from tests.capabilities.subagents.test_subagent_sessions import (
    Place,
    bash,
    id_of,
    in_git,
    is_subagents,
    replies_so_far,
    results,
    task,
    turn,
    worktrees_of,
)
from tests.model_server import Reply, call, calls, say, serving
from tests.model_server.recording import RecordedRequest
from tests.system.backends import until

IN_A_WORKTREE = calls(task("change", "general-purpose", isolation="worktree"))


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "workspace").mkdir()
    place = Place(tmp_path)
    in_git(place)
    return place


def answering(*parent: Reply | Callable[[str], Reply], change: str = "echo two > a.txt; echo new > new.txt"):
    """Serve a parent with these replies, some made of the id of the subagent, which makes `change`."""
    replies = iter(parent)

    def answer(request: RecordedRequest) -> Reply:
        if is_subagents(request):
            return say("done") if replies_so_far(request) else bash(change)
        reply = next(replies)
        return reply if isinstance(reply, Reply) else reply(_agent_id(request))

    return serving(answer)


def _agent_id(request: RecordedRequest) -> str:
    return re.findall(r"id ([0-9a-f]{8}); Task with", str(request.messages))[-1]


def merge(agent_id: str) -> Reply:
    return call("MergeWorktree", {"agent_id": agent_id, "action": "merge"})


def allowed(place: Place, asked: list[PermissionQuestion], **settings: object) -> AbstractAsyncContextManager[Session]:
    async def yes(question: PermissionQuestion) -> PermissionAnswer:
        asked.append(question)
        return PermissionAnswer(is_allowed=True)

    overrides: Mapping[str, object] = {"permission.mode": "default", **settings}
    return place.open(overrides, ask=yes, is_interactive=True)


async def test_merge_asks_with_the_difference_and_can_be_undone(repository):
    asked: list[PermissionQuestion] = []
    with answering(IN_A_WORKTREE, merge, say("merged")) as repository.server:
        async with allowed(repository, asked, **{"snapshots.enabled": True}) as session:
            task_result, merge_result = results(await turn(session))
            merged = (repository.workspace / "a.txt").read_text(), (repository.workspace / "new.txt").read_text()
            undo = session[Snapshots].undo
            await undo.restore(await undo.plan_undo())

    assert "MergeWorktree" in task_result.text
    assert [question.tool_name for question in asked] == ["Bash", "MergeWorktree"]
    assert [one.path for one in asked[-1].preview.files] == ["a.txt", "new.txt"]
    assert "2 files of the project changed" in merge_result.text
    assert merged == ("two\n", "new\n")
    assert len(worktrees_of(repository)) == 1
    assert (repository.workspace / "a.txt").read_text() == "one\n"
    assert not (repository.workspace / "new.txt").exists()


async def test_leftover_worktree_is_named_and_merged_by_the_next(repository):
    with answering(IN_A_WORKTREE, say("later")) as repository.server:
        async with allowed(repository, []) as session:
            (left,) = results(await turn(session))
            assert repository.warnings == []
    agent_id = id_of(left)
    waiting = repository.warnings.pop()
    assert f"1 worktree holds changes that are not merged, of this session {agent_id} (" in waiting

    with answering(merge(agent_id), say("merged")) as repository.server:
        async with allowed(repository, []) as session:
            await until(lambda: bool(repository.warnings))
            (result,) = results(await turn(session))

    (warning,) = repository.warnings
    assert f"of earlier sessions {agent_id} (" in warning
    assert not result.is_error
    assert (repository.workspace / "a.txt").read_text() == "two\n"
    assert len(worktrees_of(repository)) == 1


async def test_resumed_session_names_its_own_leftover_worktree(repository):
    with answering(IN_A_WORKTREE, say("later")) as repository.server:
        async with allowed(repository, []) as session:
            (left,) = results(await turn(session))
        repository.warnings.clear()
        async with repository.open(resume=session.info.id):
            await until(lambda: bool(repository.warnings))

    (warning,) = repository.warnings
    assert f"of this session {id_of(left)} (" in warning
    assert "earlier" not in warning


async def test_display_names_the_files_waiting_in_the_worktree(repository):
    change = "echo two > a.txt; for name in b c d e; do echo new > $name.txt; done"
    with answering(IN_A_WORKTREE, say("later"), change=change) as repository.server:
        async with allowed(repository, []) as session:
            (left,) = results(await turn(session))

    assert left.display.text.endswith(
        " s · a.txt +1 −1, b.txt +1 −0, c.txt +1 −0 and 2 more in its worktree, not merged"  # noqa: RUF001
    )


async def test_interrupted_subagents_changes_wait_too(repository):
    with answering(IN_A_WORKTREE, say("later")) as repository.server:
        async with allowed(repository, []) as session:
            async with aclosing(session.submit("go")) as events:
                async for event in events:
                    if isinstance(event, SubagentEvent) and isinstance(event.event, ToolResultMessage):
                        session.interrupt()
    assert "1 worktree holds changes" in repository.warnings[-1]


async def test_merge_tool_is_offered_only_with_git(repository, tmp_path):
    other = Place(tmp_path / "other")
    other.workspace.mkdir(parents=True)
    with answering() as server:
        repository.server = other.server = server
        async with repository.open() as session:
            assert "MergeWorktree" in session.info.tools
        async with other.open() as session:
            assert "MergeWorktree" not in session.info.tools


async def test_parent_learns_what_the_worktree_lacks_or_cannot_merge(repository):
    (repository.workspace / "large.bin").write_bytes(b"x" * 20_000_001)
    made = "mkdir clone && cd clone && git init -q"
    with answering(IN_A_WORKTREE, say("done"), change=made) as repository.server:
        async with allowed(repository, []) as session:
            (result,) = results(await turn(session))

    assert "large.bin (it is larger than 20 MB)" in result.text
    assert "something that is not merged, such as a repository of its own" in result.text


@pytest.mark.parametrize("sandbox", ["off", "on"])
async def test_errors_of_an_edit_in_a_worktree_reach_its_subagent(repository, sandbox):
    (repository.root / "home").mkdir()
    command = json.dumps([sys.executable, "-I", "-S", str(SCRIPT), os.devnull])
    toy = f'[language_servers.servers.toy]\ncommand = {command}\nlanguages = {{".toy" = "toy"}}\n'
    (repository.root / "home" / "settings.toml").write_text(toy)

    def child(request: RecordedRequest) -> Reply:
        edit = call("Write", {"file_path": "b.toy", "content": "ERROR\n"})
        look = call("LSP", {"operation": "diagnostics", "file_path": "b.toy"})
        return (edit, look, say("done"))[replies_so_far(request)]

    with repository.answering(IN_A_WORKTREE, say("seen"), child=child):
        settings = {"permission.mode": "acceptEdits", "sandbox.mode": sandbox}
        async with repository.open(settings, trusts_project=True) as session:
            await turn(session)
            roots = [state.root for state in session[LanguageServers].states if state.name == "toy"]

    told = json.dumps(repository.of_subagents[-1].messages)
    assert told.count("wrong 0: ERROR") >= 2
    assert [root.parent.parent.name for root in roots] == ["worktrees"]
