"""Subagents of a session: side by side, within the rights of their parent, resumed, nested, moved and stopped."""

import json
import os
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.api import open_session
from panpan.capabilities.background.background_tasks import BackgroundTasks
from panpan.capabilities.snapshots.rounds import Snapshots
from panpan.capabilities.subagents.host import SubagentHost
from panpan.capabilities.todos.todos import Todos
from panpan.session.log.agent_log import PastSubagents
from panpan.session.session import Session
from panpan.types.content import SummaryDisplay
from panpan.types.events import Event, PermissionDecided, SubagentEvent, TurnEnded
from panpan.types.messages import AssistantMessage, SystemReminder, ToolResultMessage
from panpan.types.permission import PermissionAnswer, PermissionQuestion
from tests.fakes.askers import yes
from tests.model_server import ModelServer, Reply, ToolCall, call, calls, say, serving
from tests.model_server.recording import RecordedRequest
from tests.model_server.script import Hold, HttpError, Step
from tests.system.backends import until

Child = Callable[[RecordedRequest], Step]


def is_subagents(request: RecordedRequest) -> bool:
    return "You are a subagent" in json.dumps(request.body["system"])


def replies_so_far(request: RecordedRequest) -> int:
    return sum(message["role"] == "assistant" for message in request.messages)


def prompt_of(request: RecordedRequest) -> str:
    """Return the newest prompt of the subagent."""
    texts = [block["text"] for message in request.messages for block in message["content"] if block["type"] == "text"]
    return next(text for text in reversed(texts) if not text.startswith("<system-reminder>"))


def task(prompt: str, kind: str = "explore", **more: Any) -> ToolCall:
    return ToolCall("Task", {"description": prompt[:40], "prompt": prompt, "subagent_type": kind, **more})


def bash(command: str) -> Reply:
    return call("Bash", {"command": command})


@dataclass
class Place:
    """A workspace, a home, and a model that answers the session from a list and its subagents by a function."""

    root: Path
    server: ModelServer | None = None
    warnings: list[str] = field(default_factory=list)

    @contextmanager
    def answering(self, *parent: Reply, child: Child = lambda _: say("done")) -> Iterator["Place"]:
        replies = iter(parent)

        def answer(request: RecordedRequest) -> Step:
            return child(request) if is_subagents(request) else next(replies)

        with serving(answer) as self.server:
            yield self

    def open(self, overrides: Mapping[str, object] = {}, **wishes: Any) -> AbstractAsyncContextManager[Session]:
        assert self.server is not None
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "PANPAN_HOME": str(self.root / "home"),
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef",
            "ANTHROPIC_BASE_URL": self.server.url,
            "PANPAN_SESSIONS_TITLE": "first-words",
        }
        settings = {"sandbox.mode": "off", "snapshots.enabled": False, **overrides}
        return open_session(self.workspace, overrides=settings, env=env, warn=self.warnings.append, **wishes)

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def of_subagents(self) -> list[RecordedRequest]:
        assert self.server is not None
        return [request for request in self.server.requests if is_subagents(request)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "workspace").mkdir()
    return Place(tmp_path)


async def turn(session: Session, prompt: str = "go") -> list[Event]:
    async with aclosing(session.submit(prompt)) as events:
        return [event async for event in events]


def results(events: list[Event]) -> list[ToolResultMessage]:
    return [event for event in events if isinstance(event, ToolResultMessage)]


def inner(events: list[Event], kind: type[Any]) -> list[Any]:
    return [event.event for event in events if isinstance(event, SubagentEvent) and isinstance(event.event, kind)]


def id_of(result: ToolResultMessage) -> str:
    return result.text.rpartition("id ")[2][:8]


@pytest.mark.parametrize("kinds", [["explore"] * 4, ["general-purpose"] * 4, ["explore", "general-purpose"] * 2])
async def test_subagents_of_one_message_run_at_the_same_time(place: Place, kinds: list[str]) -> None:
    all_have_asked = threading.Event()

    def child(request: RecordedRequest) -> Step:
        if len(place.of_subagents) == 4:
            all_have_asked.set()  # nobody is answered before
        return replace(say(f"saw {prompt_of(request)}"), faults=(Hold(0, all_have_asked),))

    parent = calls(*(task(f"part {number}", kind) for number, kind in enumerate(kinds))), say("all done")
    with place.answering(*parent, child=child):
        async with place.open() as session:
            events = await turn(session)

    assert [result.text.partition("\n")[0] for result in results(events)] == [f"saw part {n}" for n in range(4)]
    ids = [block.id for event in events if isinstance(event, AssistantMessage) for block in event.tool_uses]
    asked = {event.parent_tool_use_id for event in events if isinstance(event, SubagentEvent)}
    assert asked == set(ids)


async def test_commands_of_subagents_take_turns(place: Place) -> None:
    """Each command looks twice whether another one is at work, which is a fault in a workspace without turns."""
    both_have_asked = threading.Event()
    line = "test ! -e busy || echo met >> log; touch busy; sleep 0.05; test -e busy || echo met >> log; rm -f busy"

    def child(request: RecordedRequest) -> Step:
        if len(place.of_subagents) == 4:
            both_have_asked.set()
        step = say("done") if replies_so_far(request) else bash(f"{line}; echo {prompt_of(request)} >> log")
        return replace(step, faults=(Hold(0, both_have_asked),))

    parent = calls(*(task(f"part{number}", "general-purpose") for number in range(4))), say("all done")
    with place.answering(*parent, child=child):
        async with place.open(ask=yes()) as session:
            await turn(session)

    assert sorted((place.workspace / "log").read_text().split()) == [f"part{number}" for number in range(4)]


async def test_edits_of_subagents_lose_no_update(place: Place) -> None:
    """Five write three lines each into one file; one that is refused, since another was quicker, reads it again."""
    shared = place.workspace / "shared.txt"
    shared.write_text("begin\n")

    def child(request: RecordedRequest) -> Step:
        blocks = [block for message in request.body["messages"] for block in message["content"]]
        edits = {block["id"] for block in blocks if block["type"] == "tool_use" and block["name"] == "Edit"}
        results = [block for block in blocks if block["type"] == "tool_result"]
        done = [one for one in results if one["tool_use_id"] in edits and not one.get("is_error")]
        if len(done) == 3:
            return say("done")
        if not results or results[-1]["tool_use_id"] in edits:
            return call("Read", {"file_path": "shared.txt"})
        line = f"{prompt_of(request)}-{len(done)}"
        return call("Edit", {"file_path": "shared.txt", "old_string": "begin", "new_string": f"begin\n{line}"})

    names = [f"writer{number}" for number in range(5)]
    with place.answering(calls(*(task(name, "general-purpose") for name in names)), say("all done"), child=child):
        async with place.open({"permission.mode": "acceptEdits"}) as session:
            await turn(session)

    assert sorted(shared.read_text().split()) == sorted(["begin", *(f"{name}-{n}" for name in names for n in range(3))])


async def test_subagents_requests_grow_at_the_end_without_the_parents(place: Place) -> None:
    (place.workspace / "notes.txt").write_text("swordfish\n")

    def child(request: RecordedRequest) -> Step:
        return say("found") if replies_so_far(request) == 2 else call("Read", {"file_path": "notes.txt"})

    with place.answering(calls(task("look")), say("done"), child=child):
        async with place.open() as session:
            await turn(session, "a secret of the parent")

    first, second, third = (request.body for request in place.of_subagents)
    assert first["system"] == second["system"] == third["system"]
    assert first["tools"] == second["tools"] == third["tools"]
    assert "a secret of the parent" not in json.dumps(third)
    texts = [json.dumps(without_marks(body["messages"])) for body in (first, second, third)]
    assert texts[1].startswith(texts[0][:-1])
    assert texts[2].startswith(texts[1][:-1])


def without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_marks(part) for name, part in value.items() if name != "cache_control"}
    return [without_marks(part) for part in value] if isinstance(value, list) else value


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
async def test_looking_subagent_changes_nothing_in_any_mode(place: Place, mode: str) -> None:
    def child(request: RecordedRequest) -> Step:
        return say("could not") if replies_so_far(request) else bash("touch made.txt")

    with place.answering(calls(task("touch a file")), say("done"), child=child):
        async with place.open({"permission.mode": mode}, ask=yes()) as session:
            events = await turn(session)

    (decided,) = inner(events, PermissionDecided)
    assert not decided.is_allowed
    assert not (place.workspace / "made.txt").exists()


async def test_parents_plan_mode_binds_a_subagent_to_its_end(place: Place) -> None:
    session: Session

    def child(request: RecordedRequest) -> Step:
        if replies_so_far(request) == 0:
            return bash("touch first.txt")
        if replies_so_far(request) == 1:
            session.set_permission_mode("bypassPermissions")
            return bash("touch second.txt")
        return say("could not")

    with place.answering(calls(task("touch files", "general-purpose")), say("done"), child=child):
        async with place.open({"permission.mode": "plan"}, ask=yes()) as session:
            events = await turn(session)

    assert [decided.is_allowed for decided in inner(events, PermissionDecided)] == [False, False]
    assert "Plan mode is on" in json.dumps(place.of_subagents[0].body)


async def test_later_plan_mode_binds_running_subagents(place: Place) -> None:
    session: Session

    def child(request: RecordedRequest) -> Step:
        if replies_so_far(request) == 0:
            return bash("touch first.txt")
        session.set_permission_mode("plan")
        return bash("touch second.txt") if replies_so_far(request) == 1 else say("could not")

    with place.answering(calls(task("touch files", "general-purpose")), say("done"), child=child):
        async with place.open(ask=yes()) as session:
            events = await turn(session)

    assert [decided.is_allowed for decided in inner(events, PermissionDecided)] == [True, False]


async def test_question_names_its_subagent_and_others_go_on(place: Place) -> None:
    asked: list[PermissionQuestion] = []
    other_is_done = threading.Event()

    async def ask(question: PermissionQuestion) -> PermissionAnswer:
        asked.append(question)
        await anyio.to_thread.run_sync(other_is_done.wait, 20)
        return PermissionAnswer(is_allowed=False)

    def child(request: RecordedRequest) -> Step:
        if prompt_of(request) == "quick":
            if replies_so_far(request):
                other_is_done.set()
                return say("quick is done")
            return call("LS", {})
        return say("it was not allowed") if replies_so_far(request) else call("Read", {"file_path": "/etc/passwd"})

    with place.answering(calls(task("slow"), task("quick")), say("done"), child=child):
        async with place.open(ask=ask) as session:
            events = await turn(session)

    assert other_is_done.is_set()
    assert [question.agent for question in asked] == ["explore: slow"]
    assert [result.text.partition("\n")[0] for result in results(events)] == ["it was not allowed", "quick is done"]


async def test_finished_subagent_is_resumed_by_id_with_its_memory(place: Place) -> None:
    def child(request: RecordedRequest) -> Step:
        return say(f"reply {replies_so_far(request)} to {prompt_of(request)}")

    with place.answering(calls(task("look")), say("first turn"), child=child):
        async with place.open() as session:
            first = await turn(session)
            session_id = session.info.id
    agent_id = id_of(results(first)[0])
    begun = place.of_subagents[0].body

    with place.answering(calls(task("and then?", resume=agent_id)), say("second turn"), child=child):
        async with place.open(resume=session_id) as session:
            second = await turn(session)

    assert results(second)[0].text.startswith("reply 1 to and then?")
    (request,) = place.of_subagents
    assert request.body["system"] == begun["system"]
    assert request.body["tools"] == begun["tools"]
    assert without_marks(request.body["messages"])[0] == without_marks(begun["messages"])[0]


async def test_fork_resumes_its_own_subagents_and_pays_once(place: Place) -> None:
    async def last_and_spent(name: str) -> tuple[str, int]:
        with place.answering(calls(task(name, resume=agent_id)), say("ok")):
            async with place.open(resume=origin, fork=name == "fork") as session:
                before = session.budget.spent.calls
                (result,) = results(await turn(session))
                texts = [block["text"] for message in place.of_subagents[0].messages for block in message["content"]]
                told = [text for text in texts if not text.startswith("<system-reminder>")]
        assert not result.is_error
        return " ".join(told), before

    with place.answering(calls(task("first")), say("ok")):
        async with place.open() as session:
            agent_id = id_of(results(await turn(session))[0])
            origin = session.info.id

    fork, spent = await last_and_spent("fork")
    again, spent_in_origin = await last_and_spent("again")

    assert (fork, again) == ("first done fork", "first done again")
    assert spent == spent_in_origin == 3


async def test_todos_of_the_session_are_hidden_from_subagents(place: Place) -> None:
    mine = {"todos": [{"content": "mine", "status": "in_progress", "activeForm": "doing mine"}]}
    its = {"todos": [{"content": "its", "status": "pending", "activeForm": "doing its"}]}

    def child(request: RecordedRequest) -> Step:
        return say("done") if replies_so_far(request) else call("TodoWrite", its)

    kinds = {"lister": {"description": "d", "prompt": "p", "tools": ["Read", "TodoWrite", "TaskOutput"]}}
    parent = call("TodoWrite", mine), calls(task("look", "lister")), say("ok")
    with place.answering(*parent, child=child):
        async with place.open(agents=kinds) as session:
            events = await turn(session)
            listed = [todo.content for todo in await session[Todos].current()]
    (refused,) = [one for one in inner(events, ToolResultMessage) if one.is_error]

    assert listed == ["mine"]
    assert "TodoWrite" in refused.text
    assert "Read" in refused.text
    assert tools_of(place.of_subagents[0]) == {"Read"}


async def test_subagent_samples_as_its_definition_says(place: Place) -> None:
    kinds = {"wild": {"description": "d", "prompt": "p", "temperature": 0, "top_p": 0.25, "top_k": 7}}
    with place.answering(calls(task("look", "wild"), task("look", "explore")), say("ok")):
        async with place.open({"top_p": 0.5}, agents=kinds) as session:
            await turn(session)

    sampled = [{key: one.body.get(key) for key in ("temperature", "top_p", "top_k")} for one in place.of_subagents]
    assert sorted(sampled, key=str) == [
        {"temperature": 0.0, "top_p": 0.25, "top_k": 7},
        {"temperature": None, "top_p": 0.5, "top_k": None},
    ]


async def test_resumed_session_forgets_the_agent_option(place: Place) -> None:
    with place.answering(say("one"), say("two"), say("three")):
        async with place.open(agent="explore") as session:
            await turn(session)
        async with place.open() as other:
            await turn(other)
        async with place.open(agent="explore", resume=other.info.id) as session:
            await turn(session)
        assert place.server is not None
        as_agent, plain, resumed = map(tools_of, place.server.requests)

    assert as_agent < plain
    assert resumed == plain


async def test_description_is_shown_harmlessly_everywhere(place: Place) -> None:
    asked: list[PermissionQuestion] = []

    async def ask(question: PermissionQuestion) -> PermissionAnswer:
        asked.append(question)
        return PermissionAnswer(is_allowed=True)

    def child(request: RecordedRequest) -> Step:
        return say("done") if replies_so_far(request) else bash("touch a")

    hostile = ToolCall(
        "Task",
        {
            "description": "\x1b[31mred\u202e \r\n" + "w" * 60,
            "prompt": "p",
            "subagent_type": "general-purpose",
            "run_in_background": True,
        },
    )
    with place.answering(calls(hostile), say("ok"), child=child):
        async with place.open({"permission.mode": "default"}, ask=ask, is_interactive=True) as session:
            await turn(session)
            (info,) = session[BackgroundTasks].tasks
            await until(lambda: not session[SubagentHost].running)
            (record,) = session[PastSubagents].records()

    assert {info.title, asked[0].agent, record.label} == {f"general-purpose: red<U+202E> {'w' * 60}"}


async def test_unknown_id_is_an_error_with_advice(place: Place) -> None:
    with place.answering(calls(task("go on", resume="../../etc")), say("done")):
        async with place.open() as session:
            events = await turn(session)

    (result,) = results(events)
    assert result.is_error
    assert "no subagent with the id '../../etc'" in result.text
    assert place.of_subagents == []


async def test_unknown_kind_error_names_the_kinds(place: Place) -> None:
    with place.answering(calls(task("look", "explorer")), say("done")):
        async with place.open() as session:
            events = await turn(session)

    assert results(events)[0].is_error
    assert "explore" in results(events)[0].text
    assert "general-purpose" in results(events)[0].text


def tools_of(request: RecordedRequest) -> set[str]:
    return {tool["name"] for tool in request.body["tools"]}


async def test_subagent_starts_no_others_and_asks_nobody(place: Place) -> None:
    with place.answering(calls(task("look", "general-purpose")), say("done")):
        async with place.open(ask=yes()) as session:
            await turn(session)

    tools = tools_of(place.of_subagents[0])
    assert {"Read", "Edit", "Bash"} <= tools
    assert not tools & {"Task", "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "TodoWrite", "ReadHistory"}


async def test_nesting_depth_allows_exactly_one_more_level(place: Place) -> None:
    def child(request: RecordedRequest) -> Step:
        if prompt_of(request) == "outer" and not replies_so_far(request):
            return calls(task("inner"))
        return say(f"{prompt_of(request)} is done")

    with place.answering(calls(task("outer", "general-purpose")), say("done"), child=child):
        async with place.open({"agents.max_depth": 2}, ask=yes()) as session:
            events = await turn(session)

    outer, innermost = place.of_subagents[:2]
    assert "Task" in tools_of(outer)
    assert "Task" not in tools_of(innermost)
    assert results(events)[0].text.startswith("outer is done")
    assert inner(inner(events, SubagentEvent), SubagentEvent) == []
    assert [
        event.event.text for event in inner(events, SubagentEvent) if isinstance(event.event, AssistantMessage)
    ] == ["inner is done"]


async def test_interrupt_ends_all_subagents_and_their_processes(place: Place) -> None:
    parent = [calls(*(task(f"part {number}") for number in range(3)))]
    with place.answering(*parent, child=lambda _: bash("sleep 90")):
        async with place.open() as session, anyio.create_task_group() as tasks:
            tree = session.agent.context.processes

            async def stop() -> None:
                await until(lambda: len([one for one in tree.members() if name_of(one.pid) == "sleep"]) == 3)
                session.interrupt()

            tasks.start_soon(stop)
            events = await turn(session)
            running, agents = tree.members(), set(session[SubagentHost].running)
            ends = [record.end for record in session[PastSubagents].records()]

    assert running == []
    assert ends == ["stopped"] * 3
    assert agents == set()
    assert isinstance(events[-1], TurnEnded)
    assert events[-1].is_interrupted


async def test_subagent_log_says_how_it_ended(place: Place) -> None:
    def child(request: RecordedRequest) -> Step:
        if prompt_of(request) == "bad":
            return HttpError(400, "no such thing")
        return call("LS", {}) if prompt_of(request) == "long" else say("found")

    kinds = {"short": {"description": "d", "prompt": "p", "tools": ["LS"], "maxTurns": 1}}
    parent = calls(task("good"), task("bad"), task("long", "short")), say("done")
    with place.answering(*parent, child=child):
        async with place.open(agents=kinds) as session:
            await turn(session)
            records = session[PastSubagents].records()

    ends = {record.description: record.end for record in records}
    assert ends == {"good": "done", "bad": "failed", "long": "done"}


def name_of(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


async def test_background_subagent_is_announced_once_at_its_end(place: Place) -> None:
    go_on = threading.Event()

    def child(request: RecordedRequest) -> Step:
        return replace(say("it was the seed"), faults=(Hold(0, go_on),))

    parent = calls(task("look", run_in_background=True)), say("meanwhile"), say("heard it"), say("nothing new")
    with place.answering(*parent, child=child):
        async with place.open() as session:
            first = await turn(session)
            (running,) = session[BackgroundTasks].running
            assert running.kind == "subagent"
            assert running.title == "explore: look"
            go_on.set()
            with anyio.fail_after(20):
                await session[BackgroundTasks].drain()
            second, third = await turn(session), await turn(session)

    assert running.id in results(first)[0].text
    assert not any(isinstance(event, SubagentEvent) for event in first)
    told = [event for event in second if isinstance(event, SystemReminder)]
    assert [running.id in one.text and "it was the seed" in one.text for one in told] == [True]
    assert not [event for event in third if isinstance(event, SystemReminder)]
    assert "it was the seed" in running.output.read_text()


async def test_running_subagent_can_be_moved_to_the_background(place: Place) -> None:
    go_on = threading.Event()

    def child(request: RecordedRequest) -> Step:
        if replies_so_far(request):
            return replace(say("it was the seed"), faults=(Hold(0, go_on),))
        return call("LS", {})

    with place.answering(calls(task("look")), say("meanwhile"), say("heard it"), child=child):
        async with place.open() as session:
            events: list[Event] = []
            async with aclosing(session.submit("go")) as turn_events:
                async for event in turn_events:
                    events.append(event)
                    if isinstance(event, SubagentEvent) and isinstance(event.event, ToolResultMessage):
                        assert list(session[BackgroundTasks].move()) == [event.parent_tool_use_id]
            (moved,) = session[BackgroundTasks].tasks
            assert moved.state == "running"
            go_on.set()
            with anyio.fail_after(20):
                await session[BackgroundTasks].drain()
            second = await turn(session)

    assert "works in the background as task" in results(events)[0].text
    assert results(events)[0].display == SummaryDisplay(text=f"works in the background as task {moved.id}")
    assert ["it was the seed" in event.text for event in second if isinstance(event, SystemReminder)] == [True]


async def test_background_subagent_can_be_stopped(place: Place) -> None:
    def child(request: RecordedRequest) -> Step:
        return replace(say("never"), faults=(Hold(0, threading.Event()),))

    with place.answering(calls(task("look", run_in_background=True)), say("meanwhile"), child=child):
        async with place.open() as session:
            await turn(session)
            (running,) = session[BackgroundTasks].running
            stopped = await session[BackgroundTasks].stop(running.id)
            assert set(session[SubagentHost].running) == set()

    assert stopped.state == "stopped"


def in_git(place: Place) -> None:
    (place.workspace / "a.txt").write_text("one\n")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *identity, *arguments], cwd=place.workspace, check=True)


async def test_worktree_subagents_run_in_parallel_and_stay_apart(place: Place) -> None:
    in_git(place)
    all_have_asked = threading.Event()

    def child(request: RecordedRequest) -> Step:
        if len(place.of_subagents) == 2:
            all_have_asked.set()
        if replies_so_far(request):
            return say("done")
        reply = bash("echo two > a.txt") if prompt_of(request) == "change" else call("LS", {})
        return replace(reply, faults=(Hold(0, all_have_asked),))

    tasks = [task(prompt, "general-purpose", isolation="worktree") for prompt in ("change", "look")]
    with place.answering(calls(*tasks), say("done"), child=child):
        async with place.open({"permission.mode": "bypassPermissions"}) as session:
            changed, looked = results(await turn(session))

    assert (place.workspace / "a.txt").read_text() == "one\n"
    assert "a.txt (modified, +1 \u22121)" in changed.text
    assert "removed" in looked.text
    listed = worktrees_of(place)
    assert len(listed) == 2  # the project, and the one with changes
    folder = Path(listed[1].split()[0])
    assert (folder / "a.txt").read_text() == "two\n"


def worktrees_of(place: Place) -> list[str]:
    done = subprocess.run(["git", "worktree", "list"], cwd=place.workspace, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


async def test_hundred_subagents_lose_no_event(place: Place) -> None:
    def child(request: RecordedRequest) -> Step:
        return say(f"{prompt_of(request)} is done") if replies_so_far(request) == 2 else call("LS", {})

    with place.answering(calls(*(task(f"part {number}") for number in range(100))), say("done"), child=child):
        async with place.open() as session:
            events = await turn(session)

    assert [result.text.partition("\n")[0] for result in results(events)] == [f"part {n} is done" for n in range(100)]
    by_agent = Counter(event.agent_id for event in events if isinstance(event, SubagentEvent))
    assert len(by_agent) == 100
    assert len(set(by_agent.values())) == 1
    assert Counter(type(event) for event in inner(events, object))[AssistantMessage] == 300


async def test_background_subagents_late_change_can_be_undone(place: Place) -> None:
    (place.workspace / "a.txt").write_text("one\n")
    go_on = threading.Event()

    def child(request: RecordedRequest) -> Step:
        if replies_so_far(request) == 0:
            return replace(call("Read", {"file_path": "a.txt"}), faults=(Hold(0, go_on),))
        if replies_so_far(request) == 1:
            return call("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"})
        return say("changed")

    parent = calls(task("change", "general-purpose", run_in_background=True)), say("meanwhile")
    with place.answering(*parent, child=child):
        async with place.open({"snapshots.enabled": True}, ask=yes()) as session:
            await turn(session)
            go_on.set()
            with anyio.fail_after(20):
                await session[BackgroundTasks].drain()
            snapshots = session[Snapshots]
            assert snapshots is not None
            await until(lambda: snapshots.rounds.is_settled)
            changed = (place.workspace / "a.txt").read_text()
            undone = await snapshots.undo.restore(await snapshots.undo.plan_undo())

    assert changed == "two\n"
    assert [file.path for file in undone] == ["a.txt"]
    assert (place.workspace / "a.txt").read_text() == "one\n"


async def test_subagent_is_told_of_files_changed_since_reading(place: Place) -> None:
    file = place.workspace / "a.txt"
    file.write_text("one\n")

    def child(request: RecordedRequest) -> Step:
        if replies_so_far(request) == 0:
            return call("Read", {"file_path": "a.txt"})
        if replies_so_far(request) == 1:
            file.write_text("two\n")
            return call("LS", {})
        return say("done")

    with place.answering(calls(task("look")), say("done"), child=child):
        async with place.open() as session:
            await turn(session)

    assert "a.txt" in "".join(reminders_of(place.of_subagents[2])[-1:])


def reminders_of(request: RecordedRequest) -> list[str]:
    texts = [part.get("text", "") for message in request.messages for part in message["content"]]
    return [text for text in texts if text.startswith("<system-reminder>")]
