"""Subagents of the real program: what they are sent, what they may do, and what comes back."""

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from tests.e2e.conftest import Panpan, wait_until
from tests.model_server import Reply, Tokens, ToolCall, call, calls, say, serving
from tests.model_server.recording import RecordedRequest
from tests.model_server.script import Hold, Step


def is_subagents(request: RecordedRequest) -> bool:
    return "You are a subagent" in json.dumps(request.body)


def by_agent(parent: list[Reply], child: Callable[[RecordedRequest], Step]) -> Callable[[RecordedRequest], Step]:
    """Answer the session's model from a list, and its subagents by what they ask."""
    replies = iter(parent)

    def answer(request: RecordedRequest) -> Step:
        return child(request) if is_subagents(request) else next(replies)

    return answer


def rounds_of(request: RecordedRequest) -> int:
    """Return the number of replies in the conversation so far."""
    return sum(message["role"] == "assistant" for message in request.messages)


def task(prompt: str = "look around", **more: Any) -> ToolCall:
    return ToolCall("Task", {"description": "a look", "prompt": prompt, "subagent_type": "explore"} | more)


def test_subagent_does_its_task_and_reports(panpan: Panpan) -> None:
    (panpan.workspace / "notes.txt").write_text("the password is swordfish\n")

    def child(request: RecordedRequest) -> Step:
        return call("Read", {"file_path": "notes.txt"}) if rounds_of(request) == 0 else say("It is swordfish.")

    with serving(by_agent([calls(task("what is in the notes?")), say("All said.")], child)) as server:
        panpan.use(server)
        done = panpan.run("-p", "ask somebody", "-f", "stream-json")

    assert done.code == 0
    first = next(request for request in server.requests if is_subagents(request))
    assert [message["role"] for message in first.messages] == ["user"]
    assert "what is in the notes?" in json.dumps(first.messages)
    assert "It is swordfish." in json.dumps(server.requests[-1].messages)
    inside = [line for line in done.lines if line.get("parent_tool_use_id")]
    assert [line["type"] for line in inside if line["type"] != "system"] == ["assistant", "user", "assistant"]
    assert done.result["result"] == "All said."
    assert done.result["num_turns"] == 2


def test_killed_subagent_goes_on_where_it_was(panpan: Panpan) -> None:
    (panpan.workspace / "notes.txt").write_text("the password is swordfish\n")
    never = Event()

    def child(request: RecordedRequest) -> Step:
        if rounds_of(request) == 0:
            return call("Read", {"file_path": "notes.txt"})
        return replace(say("never"), faults=(Hold(0, never),))

    with serving(by_agent([calls(task("what is in the notes?"))], child)) as server:
        panpan.use(server)
        process = panpan.start("-p", "ask somebody", stdin=subprocess.DEVNULL)
        wait_until(lambda: len([request for request in server.requests if is_subagents(request)]) == 2)
        process.kill()
        process.wait()
        never.set()

    def resumes(request: RecordedRequest) -> Step:
        agent_id = re.findall(r"id ([0-9a-f]{8});", json.dumps(request.messages))[0]
        return calls(task("go on", resume=agent_id)) if rounds_of(request) == 1 else say("It is done.")

    def answer(request: RecordedRequest) -> Step:
        return say("It is swordfish.") if is_subagents(request) else resumes(request)

    with serving(answer) as server:
        panpan.use(server)
        done = panpan.run("-c", "-p", "and?")

    assert (done.code, done.stdout) == (0, "It is done.\n")
    (resumed,) = [request for request in server.requests if is_subagents(request)]
    told = json.dumps(resumed.messages)
    assert "the password is swordfish" in told
    assert "what is in the notes?" in told
    assert "while the subagent worked on this" in json.dumps(server.requests[0].messages)


def test_run_names_worktrees_with_unmerged_changes_at_its_end(panpan: Panpan) -> None:
    (panpan.workspace / "a.txt").write_text("one\n")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run(["git", *identity, *arguments], cwd=panpan.workspace, check=True)

    def child(request: RecordedRequest) -> Step:
        return say("Done.") if rounds_of(request) else call("Write", {"file_path": "b.txt", "content": "two\n"})

    isolated = task("write", subagent_type="general-purpose", isolation="worktree")
    with serving(by_agent([calls(isolated), say("Later.")], child)) as server:
        panpan.use(server)
        done = panpan.run("-p", "ask somebody", "-v", "--permission-mode", "acceptEdits")

    assert (done.code, done.stdout) == (0, "Later.\n")
    assert "b.txt +1 \N{MINUS SIGN}0 in its worktree, not merged" in done.stderr
    assert "1 worktree holds changes that are not merged, of this session " in done.stderr.splitlines()[-1]


def test_agents_option_defines_subagents(panpan: Panpan) -> None:
    agents = {"poet": {"description": "writes verse", "prompt": "You write verse.", "tools": ["Read"]}}
    with serving(
        by_agent([calls(task("a verse", subagent_type="poet")), say("Fine.")], lambda _: say("Roses."))
    ) as server:
        panpan.use(server)
        done = panpan.run("-p", "a poem", "--agents", json.dumps(agents))

    assert done.code == 0
    (request,) = [request for request in server.requests if is_subagents(request)]
    assert "You write verse." in json.dumps(request.body["system"])
    assert [tool["name"] for tool in request.body["tools"]] == ["Read"]


def test_session_begun_as_an_agent_is_resumed_as_it(panpan: Panpan) -> None:
    def given(mode: str) -> str:
        clerk = {
            "description": "files",
            "prompt": "You file papers.",
            "tools": ["Read", "Write"],
            "permissionMode": mode,
        }
        return json.dumps({"clerk": {**clerk, "model": "claude-haiku-4-5"}})

    write = call("Write", {"file_path": "a.txt", "content": "x"})
    with serving([write, say("done"), say("again"), write, say("not")]) as server:
        panpan.use(server)
        stricter = panpan.run("-p", "go", "-y", "--agents", given("plan"), "--agent", "clerk")
        assert not (panpan.workspace / "a.txt").exists()
        resumed = panpan.run("-p", "more", "-c")
        looser = panpan.run("-p", "go", "--agents", given("bypassPermissions"), "--agent", "clerk")
        refused = panpan.run("-p", "more", "-c", "--agent", "clerk")
        unknown = panpan.run("-p", "go", "--agent", "nobody")

    assert [run.code for run in (stricter, resumed, looser)] == [5, 0, 5]
    first, second, third = server.requests[0].body, server.requests[2].body, server.requests[3].body
    assert "You file papers." in json.dumps(first["system"])
    assert [tool["name"] for tool in first["tools"]] == ["Read", "Write"]
    assert (first["model"], third["model"]) == ("claude-haiku-4-5", "claude-haiku-4-5")
    assert [second["system"][0]["text"], second["tools"]] == [first["system"][0]["text"], first["tools"]]
    assert not (panpan.workspace / "a.txt").exists()  # what the definition allows, its user does not
    assert "--agent goes with a new session" in refused.stderr
    assert "there is no agent 'nobody'; there are code-reviewer" in unknown.stderr


def test_limits_of_a_definition_end_its_subagent_alone(panpan: Panpan) -> None:
    kinds = {"tiny": {"description": "does little", "prompt": "Be brief.", "maxTokens": 50}}
    replies = [calls(task(subagent_type="tiny")), say("It could not be paid.")]
    with serving(by_agent(replies, lambda _: say("never asked"))) as server:
        panpan.use(server)
        done = panpan.run("-p", "ask somebody", "-f", "json", "--agents", json.dumps(kinds))

    assert done.code == 0
    assert not any(map(is_subagents, server.requests))
    result = server.requests[-1].messages[-1]["content"][0]
    assert "of a budget of 50 tokens of the subagent tiny: a look are spent" in json.dumps(result)


def test_costs_of_subagents_count_for_the_session_and_its_resume(panpan: Panpan) -> None:
    spent = Tokens(input=40_000, output=100)
    replies = [calls(task(), tokens=spent), say("Done.", tokens=spent)]
    with serving(by_agent(replies, lambda _: say("Seen.", tokens=spent))) as server:
        panpan.use(server)
        done = panpan.run("-p", "ask somebody", "-f", "json")
        again = panpan.run("-c", "-p", "and now?", "-f", "json", "--max-tokens", "121000")

    assert (done.result["usage"]["input_tokens"], done.result["usage"]["output_tokens"]) == (120_000, 300)
    assert (again.code, again.result["subtype"]) == (4, "error_max_budget_usd")
    assert "120,300 tokens of a budget of 121,000 tokens are spent; raise --max-tokens" in again.stderr


def test_hooks_of_a_kind_of_subagent_run_in_it_alone(panpan: Panpan) -> None:
    (panpan.home / "agents").mkdir(parents=True)
    (panpan.home / "agents" / "careful.md").write_text(
        "---\nname: careful\ndescription: Careful\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n"
        "        - command: echo not here >&2; exit 2\n---\nBe careful."
    )
    touch = call("Bash", {"command": "touch made"})
    task = call("Task", {"subagent_type": "careful", "description": "d", "prompt": "p"})

    with serving([task, touch, say("Refused."), touch, say("Done.")]) as server:
        panpan.use(server)
        panpan.run("-y", "-p", "go")

    assert "not here" in json.dumps(server.requests[2].messages)
    assert "not here" not in json.dumps(server.requests[4].messages)
    assert (panpan.workspace / "made").exists()


@pytest.mark.parametrize("is_trusted", [True, False])
def test_hooks_of_agents_of_a_project_need_trust(panpan: Panpan, is_trusted: bool) -> None:
    (panpan.workspace / ".panpan" / "agents").mkdir(parents=True)
    (panpan.workspace / ".panpan" / "agents" / "careful.md").write_text(
        "---\nname: careful\ndescription: Careful\nhooks:\n  PreToolUse:\n    - hooks:\n"
        "        - command: echo not here >&2; exit 2\n---\nBe careful."
    )
    task = call("Task", {"subagent_type": "careful", "description": "d", "prompt": "p"})

    with serving([task, call("Bash", {"command": "touch made"}), say("Done."), say("Done.")]) as server:
        panpan.use(server)
        panpan.run("-y", "-p", "go", *(["--trust"] if is_trusted else []))

    assert ("not here" in json.dumps(server.requests[2].messages)) is is_trusted
