"""Hooks of the user in the real program: what they are told, what answers do, and that a no is a no everywhere."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import DEVNULL
from threading import Event, Thread
from typing import Any

import pytest

from tests.e2e.conftest import Done, Panpan, wait_until
from tests.e2e.test_compaction import answering, long_answers
from tests.model_server import Hold, HttpError, Reply, Text, ToolCall, call, calls, say, serving
from tests.model_server.recording import RecordedRequest

SECRET = "swordfish"
LOOK = {"command": "cat secret.txt; touch made"}


def write_hooks(panpan: Panpan, **events: Any) -> None:
    """Write the user's hooks: for each event the hooks of one group, or whole groups."""
    groups = {name: found if "hooks" in found[0] else [{"hooks": found}] for name, found in events.items()}
    panpan.home.mkdir(exist_ok=True)
    (panpan.home / "hooks.json").write_text(json.dumps({"hooks": groups}))


def says(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return a hook that answers in JSON."""
    return {"type": "command", "command": f"printf %s '{json.dumps(answer)}'"}


def special(event: str, **fields: Any) -> dict[str, Any]:
    return says({"hookSpecificOutput": {"hookEventName": event, **fields}})


def write_skill(panpan: Panpan, name: str, *, body: str) -> None:
    folder = panpan.home / "skills" / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Looks\n---\n{body}\n")


def told_to(panpan: Panpan, name: str = "told") -> dict[str, Any]:
    """Return a hook that keeps what it is told."""
    folder = panpan.workspace.parent
    return {"command": f"cat > {folder}/.{name}.$$ && mv {folder}/.{name}.$$ {folder}/{name}.$$"}  # whole at once


def all_told(panpan: Panpan, name: str = "told") -> list[dict[str, Any]]:
    files = sorted(panpan.workspace.parent.glob(f"{name}.*"), key=lambda file: file.stat().st_mtime_ns)
    return [json.loads(file.read_text()) for file in files]


def run(
    panpan: Panpan, *replies: Reply, args: tuple[str, ...] = ("-y", "-p", "go")
) -> tuple[Done, list[RecordedRequest]]:
    with serving(list(replies)) as server:
        panpan.use(server)
        return panpan.run(*args), server.requests


def results(request: RecordedRequest) -> str:
    return json.dumps(request.messages[-1])


NO: Mapping[str, Mapping[str, Any]] = {
    "deny": {"command": "echo it may not >&2; exit 2"},
    "crash": {"command": "/nowhere/guard", "args": ["now"], "guard": True},
    "signal": {"command": "kill -KILL $$", "onFailure": "block"},
    "time-out": {"command": "sleep 60", "timeout": 0.2, "guard": True},
    "garbage": {"command": "echo '{oops'", "onFailure": "block"},
}


def at_level(level: int, **more: Any) -> Callable[[RecordedRequest], Reply]:
    """Answer so that an agent at some level of subagents makes the call: 0 is the main one.

    The main one waits for the result of one in the background, which would end with the session.
    """
    was_refused = Event()

    def answer(request: RecordedRequest) -> Reply:
        if "was not run" in results(request):
            was_refused.set()
        elif "in the background" in results(request):
            return Reply((Text("Done."),), faults=(Hold(0, was_refused),))
        first = json.dumps(request.messages[0])
        own = next((number for number in (2, 1) if f"at level {number}" in first), 0)
        if any(message["role"] == "assistant" for message in request.messages) and "go on" not in results(request):
            return say("Done.")
        if "use the skill" in first:
            return call("Skill", {"skill": "look"})
        if own == level:
            return call("Bash", LOOK)
        task = {"description": "look", "prompt": f"look at level {own + 1}", "subagent_type": "general-purpose"}
        return calls(ToolCall("Task", {**task, **more}))

    return answer


@pytest.mark.parametrize("kind", NO)
@pytest.mark.parametrize(
    "where", ["main", "piped", "plan", "subagent", "nested", "background", "resumed", "skill", "typed skill"]
)
def test_no_of_a_hook_holds_everywhere(panpan: Panpan, where: str, kind: str) -> None:
    (panpan.workspace / "secret.txt").write_text(f"{SECRET}\n")
    level = {"subagent": 1, "nested": 2, "background": 1}.get(where, 0)
    more = {"run_in_background": True} if where == "background" else {}
    panpan.home.mkdir()
    (panpan.home / "settings.toml").write_text("[agents]\nmax_depth = 2\n")
    with serving(at_level(level, **more)) as server:
        panpan.use(server)
        if where == "resumed":
            panpan.run("-y", "-p", "go", "--allowedTools", "Read", "--max-turns", "1")
            (panpan.workspace / "made").unlink(missing_ok=True)
        before = len(server.requests)
        write_hooks(panpan, PreToolUse=[{"matcher": "Bash", "hooks": [NO[kind]]}])
        if where == "piped":
            panpan.run("-y", stdin="go")
        elif where == "plan":
            panpan.run("--permission-mode", "plan", "-p", "go")
        elif where in ("skill", "typed skill"):
            write_skill(panpan, "look", body=f"Look: !`{LOOK['command']}`")
            panpan.run("-y", "-p", "use the skill" if where == "skill" else "/look")
        elif where == "resumed":
            panpan.run("-y", "-c", "-p", "go on")
        else:
            panpan.run("-y", "-p", "go")
        requests = server.requests[before:]

    refused = [one for one in requests if "was not run" in results(one)]
    assert refused
    assert all("the hook of" in results(one) for one in refused)
    assert where == "resumed" or SECRET not in json.dumps([one.messages for one in requests])
    assert not (panpan.workspace / "made").exists()


def test_failure_of_a_hook_that_is_no_guard_is_told(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[{"command": "echo broken >&2; exit 1"}])

    done, requests = run(panpan, call("Bash", {"command": "echo hi"}), say("Done."))

    assert "hi" in results(requests[1])
    assert "hooks.json:1 failed: it ended with 1: broken; the work goes on without it" in done.stderr


def test_hook_is_told_of_its_call_and_sees_no_key(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[told_to(panpan), {"command": f"env > {panpan.workspace.parent}/env"}])

    run(panpan, call("Write", {"file_path": "a.txt", "content": "one\n"}), say("Done."))

    (told,) = all_told(panpan)
    assert told["hook_event_name"] == "PreToolUse"
    assert (told["tool_name"], told["tool_input"]) == ("Write", {"file_path": "a.txt", "content": "one\n"})
    assert told["cwd"] == str(panpan.workspace)
    assert told["permission_mode"] == "default"
    assert Path(told["transcript_path"]) == panpan.session_files()[0]
    env = (panpan.workspace.parent / "env").read_text()
    assert f"CLAUDE_PROJECT_DIR={panpan.workspace}\n" in env
    assert "ANTHROPIC_API_KEY" not in env


def test_allowing_hook_answers_the_question(panpan: Panpan) -> None:
    write = call("Write", {"file_path": "a.txt", "content": "one\n"})
    write_hooks(panpan, PreToolUse=[special("PreToolUse", permissionDecision="allow")])

    done, _ = run(panpan, write, say("Done."), args=("--permission-mode", "default", "-p", "go"))

    assert (panpan.workspace / "a.txt").read_text() == "one\n", done.stderr


def test_allowing_hook_opens_no_protected_file(panpan: Panpan) -> None:
    write = call("Write", {"file_path": ".envrc", "content": "one\n"})
    write_hooks(panpan, PreToolUse=[special("PreToolUse", permissionDecision="allow")])

    run(panpan, write, say("Done."))

    assert not (panpan.workspace / ".envrc").exists()


def test_asking_hook_stops_what_nobody_can_answer(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[special("PreToolUse", permissionDecision="ask", permissionDecisionReason="hm")])

    run(panpan, call("Bash", {"command": "touch made"}), say("Done."), args=("--permission-mode", "auto", "-p", "go"))

    assert not (panpan.workspace / "made").exists()


def test_changed_arguments_are_what_runs_and_what_rules_see(panpan: Panpan) -> None:
    answer = {"permissionDecision": "allow", "updatedInput": {"command": "echo instead"}}
    write_hooks(panpan, PreToolUse=[special("PreToolUse", **answer)])

    _, requests = run(panpan, call("Bash", {"command": "touch made"}), say("Done."))

    assert not (panpan.workspace / "made").exists()
    result = results(requests[1])
    assert "instead" in result
    assert "a hook gave the call other arguments" in result
    (written,) = [one for one in panpan.records() if one["type"] == "assistant"][:1]
    assert written["message"]["content"][0]["input"] == {"command": "touch made"}, "the log keeps what the model wrote"

    denied, requests = run(
        panpan,
        call("Bash", {"command": "true"}),
        say("Done."),
        args=("-y", "--disallowedTools", "Bash(echo *)", "-p", "go"),
    )
    assert "was not run" in results(requests[1]), denied.stderr


def test_changed_arguments_are_checked(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[special("PreToolUse", updatedInput={"file": "made"})])

    _, requests = run(panpan, call("Write", {"file_path": "made", "content": ""}), say("Done."))

    assert "a hook gave it other arguments" in results(requests[1])
    assert not (panpan.workspace / "made").exists()


def test_refused_message_is_neither_sent_nor_recorded(panpan: Panpan) -> None:
    write_hooks(panpan, UserPromptSubmit=[{"command": f"grep -q {SECRET} && {{ echo no secrets >&2; exit 2; }} || :"}])

    done, requests = run(panpan, say("Done."), args=("-p", f"it is {SECRET}"))

    assert (done.code, done.stdout, requests) == (1, "", [])
    assert "your message was not sent: no secrets (the hook of " in done.stderr
    assert SECRET not in "".join(path.read_text() for path in panpan.session_files())


def test_words_of_hooks_reach_the_model_behind_the_message(panpan: Panpan) -> None:
    write_hooks(
        panpan,
        SessionStart=[
            {"matcher": "startup", "hooks": [{"command": "echo it is new"}]},
            {"matcher": "resume", "hooks": [{"command": "echo it goes on"}]},
        ],
        UserPromptSubmit=[special("UserPromptSubmit", additionalContext="be brief")],
    )

    _, (first,) = run(panpan, say("Done."))
    _, (second,) = run(panpan, say("Done."), args=("-c", "-p", "more"))

    assert "it is new" in results(first)
    assert "be brief" in results(first)
    assert "it goes on" not in json.dumps(first.messages)
    assert "it goes on" in results(second)


def test_stop_hook_sends_the_model_back_but_not_for_ever(panpan: Panpan) -> None:
    write_hooks(panpan, Stop=[told_to(panpan), says({"decision": "block", "reason": "run the tests"})])

    done, requests = run(panpan, *[say(f"Done {number}.") for number in range(20)])

    assert done.code == 0
    assert len(requests) == 9
    assert "run the tests" in results(requests[1])
    assert [one["stop_hook_active"] for one in all_told(panpan)] == [False, *[True] * 7]


def test_hook_that_says_stop_ends_the_turn(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[says({"continue": False, "stopReason": "it is late"})])

    done, requests = run(panpan, call("Bash", {"command": "touch made"}), say("Done."))

    assert done.code == 1
    assert "a hook ended the turn: it is late" in done.stderr
    assert len(requests) == 1
    assert not (panpan.workspace / "made").exists()


def test_hooks_after_a_tool_tell_the_model(panpan: Panpan) -> None:
    write_hooks(
        panpan,
        PostToolUse=[special("PostToolUse", additionalContext="it was linted")],
        PostToolUseFailure=[says({"decision": "block", "reason": "try the other way"})],
    )

    _, requests = run(panpan, call("Bash", {"command": "echo hi"}), call("Bash", {"command": "exit 3"}), say("Done."))

    assert "it was linted" in results(requests[1])
    assert "try the other way" in results(requests[2])
    assert "it was linted" not in results(requests[2])


def test_condition_of_a_hook_is_a_rule(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[{"command": "exit 2", "if": "Bash(git push *)"}])

    _, requests = run(
        panpan, call("Bash", {"command": "echo hi"}), call("Bash", {"command": "true && git push origin"}), say("Done.")
    )

    assert "hi" in results(requests[1])
    assert "was not run" in results(requests[2])


def test_hook_nobody_waits_for_runs_beside_the_turn(panpan: Panpan) -> None:
    write_hooks(
        panpan,
        PreToolUse=[{"command": f"touch {panpan.workspace}/begun; sleep 60", "async": True}],
        SessionEnd=[told_to(panpan)],
    )

    done, requests = run(
        panpan, call("Bash", {"command": "until test -e begun; do sleep 0.01; done; echo seen"}), say("Done.")
    )

    assert done.code == 0
    assert "seen" in results(requests[1])
    assert [one["reason"] for one in all_told(panpan)] == ["other"]


def test_hooks_of_a_project_wait_for_trust(panpan: Panpan) -> None:
    folder = panpan.workspace / ".claude"
    folder.mkdir()
    (folder / "settings.json").write_text(
        json.dumps({"hooks": {"SessionStart": [{"hooks": [{"command": "touch ran"}]}]}})
    )

    run(panpan, say("Done."))
    assert not (panpan.workspace / "ran").exists()

    run(panpan, say("Done."), args=("--trust", "-p", "go"))
    assert (panpan.workspace / "ran").exists()


def test_settings_of_claude_code_are_read(panpan: Panpan) -> None:
    folder = panpan.home.parent / ".claude"
    folder.mkdir()
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "exit 2"}]}]}
    (folder / "settings.json").write_text(json.dumps({"model": "opus", "hooks": hooks}))

    _, requests = run(panpan, call("Bash", {"command": "touch made"}), say("Done."))

    assert "was not run" in results(requests[1])
    assert not (panpan.workspace / "made").exists()


def test_run_of_a_hook_is_a_record(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[NO["deny"]])

    run(panpan, call("Bash", {"command": "touch made"}), say("Done."))

    (record,) = [one for one in panpan.records() if one.get("subtype") == "hook_ran"]
    assert (record["event"], record["verdict"]) == ("PreToolUse", "deny")
    assert record["hook"] == NO["deny"]["command"]


def test_hooks_command_lists_explains_and_tries(panpan: Panpan) -> None:
    guard = {"command": "grep -q rm && exit 2 || exit 0", "guard": True}
    write_hooks(panpan, PreToolUse=[{"matcher": "Bash", "hooks": [guard]}], Setup=[guard])
    (panpan.workspace / "call.json").write_text('{"tool_name": "Bash", "tool_input": {"command": "rm x"}}')

    listed, as_json = panpan.run("hooks", "list"), panpan.run("hooks", "list", "--json")
    explained, other = panpan.run("hooks", "explain", "PreToolUse", "Bash"), panpan.run("hooks", "explain", "Stop")
    tried = panpan.run("hooks", "test", "PreToolUse", "--input", "call.json")
    harmless = panpan.run("hooks", "test", "PreToolUse", "--input", "-", stdin='{"tool_name": "Bash"}')
    broken = panpan.run("hooks", "test", "PreToolUse", "--input", "-", stdin="[]")
    unknown = panpan.run("hooks", "explain", "Setup")

    assert listed.stdout.startswith("PreToolUse Bash: grep -q rm && exit 2 || exit 0 (")
    assert "hooks of Setup never run" in listed.stderr
    assert json.loads(as_json.stdout)["hooks"][0]["guard"] is True
    assert "the answer is no: it is a guard" in explained.stdout
    assert "no hook runs at Stop" in other.stdout
    assert (tried.code, harmless.code) == (2, 0)
    assert '"verdict": "deny"' in tried.stdout
    assert (broken.code, unknown.code) == (2, 2)
    assert "write one, such as" in broken.stderr
    assert "never run in panpan; these run: PreToolUse, " in unknown.stderr
    assert panpan.session_files() == []


def test_slash_command_shows_the_hooks(panpan: Panpan) -> None:
    write_hooks(panpan, Stop=[{"command": "make test"}])

    done, requests = run(panpan, args=("-p", "/hooks"))

    assert " ".join(done.stdout.split()).startswith("Stop: make test (")
    assert requests == []


def test_hook_for_edits_sees_each_file_of_a_patch(panpan: Panpan) -> None:
    for name in ("a.txt", "b.txt"):
        (panpan.workspace / name).write_text("one\n")
    changes = "".join(f"*** Update File: {name}\n@@\n-one\n+two\n" for name in ("a.txt", "b.txt"))
    patch = f"*** Begin Patch\n{changes}*** End Patch\n"
    refuses = {"command": """grep -q '"file_path": "[^"]*/b.txt"' && exit 2 || exit 0"""}
    write_hooks(panpan, PreToolUse=[{"matcher": "Edit|Write", "hooks": [told_to(panpan), refuses]}])
    _, requests = run(
        panpan,
        calls(ToolCall("Read", {"file_path": "a.txt"}), ToolCall("Read", {"file_path": "b.txt"})),
        call("Patch", {"patch": patch}),
        say("Done."),
    )

    assert "was not run" in results(requests[2]), results(requests[2])
    assert sorted(Path(one["tool_input"]["file_path"]).name for one in all_told(panpan)) == ["a.txt", "b.txt"]
    assert (panpan.workspace / "a.txt").read_text() == "one\n"


def test_answer_cannot_drive_the_terminal(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[{"command": "printf '\\033[31mred\\033[0m\\007' >&2; exit 2"}])

    done, requests = run(panpan, call("Bash", {"command": "true"}), say("Done."))

    assert "red" in results(requests[1])
    assert "\\u001b" not in results(requests[1])
    assert "\x1b" not in done.stdout + done.stderr


def test_played_cassette_runs_no_hook(panpan: Panpan) -> None:
    write_hooks(
        panpan,
        PreToolUse=[told_to(panpan), NO["deny"]],
        UserPromptSubmit=[{"command": "echo be brief"}],
        Stop=[told_to(panpan)],
        SessionEnd=[told_to(panpan)],
    )
    cassette = str(panpan.workspace.parent / "cassette.jsonl")

    run(panpan, call("Bash", {"command": "touch made"}), say("Done."), args=("-y", "--record", cassette, "-p", "go"))
    recorded = len(all_told(panpan))
    played = panpan.run("replay", cassette)

    assert recorded == 3
    assert played.code == 0, played.stderr
    assert len(all_told(panpan)) == recorded


# ways round a no


CHANGES = special("PreToolUse", updatedInput={"command": "touch made"})


@pytest.mark.parametrize(
    "hooks",
    [
        [{"command": "grep -q made && exit 2 || exit 0"}, CHANGES],
        [{"command": "exit 2", "if": "Bash(touch *)"}, CHANGES],
        [{**NO["signal"], "command": 'echo \'{"systemMessage": "hm"}\'; kill -KILL $$'}],
        [{"guard": True, "command": 'printf \'\\357\\273\\277{"decision": "block"}\''}],
        [{"guard": True, "command": 'echo checking; echo \'{"decision": "block"}\''}],
        [says({"permissionDecision": "deny"})],
        [{"command": "exit 1"}, {"command": "exit 1", "guard": True}],
        [{"command": "exit 2", "async": True}, {"command": "exit 2"}],
    ],
    ids=["changed", "changed-if", "json-then-crash", "bom", "mixed", "top-level", "plain-then-guard", "async-copy"],
)
def test_no_is_not_lost(panpan: Panpan, hooks: list[dict[str, Any]]) -> None:
    first = {"command": "true"} if CHANGES in hooks else {"command": "touch made"}
    write_hooks(panpan, PreToolUse=hooks)

    _, requests = run(panpan, call("Bash", first), say("Done."))

    assert "was not run" in results(requests[1])
    assert not (panpan.workspace / "made").exists()


def test_matcher_may_have_blanks(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[{"matcher": "Bash | Write", "hooks": [{"command": "exit 2"}]}])

    _, requests = run(panpan, call("Bash", {"command": "touch made"}), say("Done."))

    assert "was not run" in results(requests[1])


def test_model_does_not_choose_where_a_hook_runs(panpan: Panpan) -> None:
    (panpan.workspace / "guard.sh").write_text("exit 2\n")
    (panpan.workspace / "below").mkdir()
    (panpan.workspace / "below" / "guard.sh").write_text("exit 0\n")
    write_hooks(panpan, PreToolUse=[{"command": "sh guard.sh", "if": "Bash(touch *)"}])

    _, requests = run(
        panpan, call("Bash", {"command": "cd below"}), call("Bash", {"command": "touch made"}), say("Done.")
    )

    assert "was not run" in results(requests[2])


@pytest.mark.parametrize(
    "hook",
    [
        special("PermissionRequest", decision={"behavior": "allow", "updatedInput": {"file_path": "safe"}}),
        special("PermissionRequest", decision={"behavior": "allow"})
        | {"command": 'echo \'{"decision": "approve"}\'; exit 1'},
    ],
    ids=["other-arguments", "failed"],
)
def test_yes_of_a_failed_answer_does_not_count(panpan: Panpan, hook: dict[str, Any]) -> None:
    write_hooks(panpan, PermissionRequest=[hook])

    run(panpan, call("Write", {"file_path": "made", "content": ""}), say("Done."), args=("-p", "go"))

    assert not (panpan.workspace / "made").exists()


def test_yes_for_one_file_is_none_for_a_patch_of_two(panpan: Panpan) -> None:
    files = "".join(f"*** Add File: {name}\n+one\n" for name in ("good", "made"))
    yes = special("PreToolUse", permissionDecision="allow")["command"]
    write_hooks(panpan, PreToolUse=[{"matcher": "Edit", "hooks": [{"command": f"grep -q '/good\"' && {yes} || :"}]}])

    patch = call("Patch", {"patch": f"*** Begin Patch\n{files}*** End Patch\n"})
    run(panpan, patch, say("Done."), args=("-p", "go"))

    assert not (panpan.workspace / "made").exists()


def test_end_of_the_turn_counts_in_a_permission_request(panpan: Panpan) -> None:
    write_hooks(panpan, PermissionRequest=[says({"continue": False, "stopReason": "late"})])

    done, requests = run(panpan, call("Write", {"file_path": "made", "content": ""}), say("Done."), args=("-p", "go"))

    assert "a hook ended the turn: late" in done.stderr
    assert len(requests) == 1


def test_stop_hook_leaves_the_last_round_alone(panpan: Panpan) -> None:
    write_hooks(panpan, Stop=[{"command": "exit 2"}])

    done, requests = run(panpan, say("Done."), args=("--max-turns", "1", "-p", "go"))

    assert (done.code, len(requests)) == (0, 1)


def test_hooks_that_wait_for_trust_are_named(panpan: Panpan) -> None:
    (panpan.workspace / ".claude").mkdir()
    (panpan.workspace / ".claude" / "settings.json").write_text('{"hooks": {}}')

    done, _ = run(panpan, say("Done."))

    assert "hooks of .claude/settings.json do not run until you trust the project: panpan trust" in done.stderr


def test_changed_call_is_the_one_in_doubt_after_a_crash(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[special("PreToolUse", updatedInput={"command": "touch made; sleep 60"})])
    with serving([call("Bash", {"command": "true"}), say("Done.")]) as server:
        panpan.use(server)
        process = panpan.start("-y", "-p", "go", stdin=DEVNULL)
        wait_until((panpan.workspace / "made").exists)
        process.kill()
        process.wait()
        again = panpan.run("-c", "-p", "go on")

    assert again.code == 6
    assert "touch made; sleep 60" in again.stderr


def test_hook_of_a_subagent_is_told_which(panpan: Panpan) -> None:
    write_hooks(panpan, SubagentStop=[told_to(panpan)])
    with serving(at_level(1)) as server:
        panpan.use(server)
        panpan.run("-y", "-p", "go")

    (told,) = all_told(panpan)
    assert told["agent_type"] == "general-purpose"
    assert told["agent_id"] != told["session_id"]
    assert told["last_assistant_message"] == "Done."


def test_hook_tells_a_subagent_something_when_it_begins(panpan: Panpan) -> None:
    told = special("SubagentStart", additionalContext="Mind the tests.")
    write_hooks(panpan, SubagentStart=[told, told_to(panpan)])
    with serving(at_level(1)) as server:
        panpan.use(server)
        panpan.run("-y", "-p", "go")
        requests = server.requests

    (at_start,) = all_told(panpan)
    assert at_start["agent_type"] == "general-purpose"
    has_heard = ["Mind the tests." in json.dumps(request.messages) for request in requests]
    of_subagent = ["at level 1" in json.dumps(request.messages[0]) for request in requests]
    assert has_heard == of_subagent
    assert any(of_subagent)


@pytest.mark.parametrize("event", ["SubagentStart", "SubagentStop"])
def test_matcher_means_the_kind_of_a_subagent(panpan: Panpan, event: str) -> None:
    write_hooks(panpan, **{event: [{"matcher": "general-purpose", "hooks": [told_to(panpan, "meant")]}]})
    with serving(at_level(1)) as server:
        panpan.use(server)
        panpan.run("-y", "-p", "go")
    write_hooks(panpan, **{event: [{"matcher": "explore", "hooks": [told_to(panpan, "other")]}]})
    with serving(at_level(1)) as server:
        panpan.use(server)
        panpan.run("-y", "-p", "go")

    assert [one["hook_event_name"] for one in all_told(panpan, "meant")] == [event]
    assert all_told(panpan, "other") == []


def test_batch_of_calls_is_told_once_and_may_say_something(panpan: Panpan) -> None:
    write_hooks(panpan, PostToolBatch=[told_to(panpan), special("PostToolBatch", additionalContext="Mind the batch.")])
    both = calls(ToolCall("Bash", {"command": "echo a"}), ToolCall("Bash", {"command": "echo b"}))

    _, requests = run(panpan, both, say("Done."))

    (told,) = all_told(panpan)
    assert [one["tool_input"]["command"] for one in told["tool_calls"]] == ["echo a", "echo b"]
    assert results(requests[1]).count("Mind the batch.") == 1


def test_hook_may_end_the_turn_after_a_batch(panpan: Panpan) -> None:
    write_hooks(panpan, PostToolBatch=[says({"continue": False, "stopReason": "enough"})])

    done, requests = run(panpan, call("Bash", {"command": "echo a"}), say("Done."))

    assert len(requests) == 1
    assert "a hook ended the turn: enough" in done.stderr


def compact(panpan: Panpan) -> tuple[Done, list[RecordedRequest]]:
    """Talk, compact, and talk once more."""
    with serving(answering(*long_answers()[:3], say("Short."))) as server:
        panpan.use(server)
        for number, prompt in enumerate(["part 1", "part 2", "part 3"]):
            panpan.run(*(["-c"] if number else []), "-p", prompt)
        done = panpan.run("-c", "-p", "/compact heed the colour")
        panpan.run("-c", "-p", "and now")
        return done, server.requests


def test_hook_keeps_a_conversation_from_being_compacted(panpan: Panpan) -> None:
    no = {"command": "echo not now >&2; exit 2"}
    write_hooks(panpan, PreCompact=[{"matcher": "manual", "hooks": [no, told_to(panpan)]}])

    done, requests = compact(panpan)

    assert done.code != 0
    assert "the conversation is not compacted: not now" in done.stderr
    assert "word1 " in json.dumps(requests[-1].messages)
    (told,) = all_told(panpan)
    assert (told["trigger"], told["custom_instructions"]) == ("manual", "heed the colour")


def test_compaction_is_told_with_its_summary_and_begins_anew(panpan: Panpan) -> None:
    again = {"matcher": "compact", "hooks": [says({"hookSpecificOutput": {"additionalContext": "Remember the key."}})]}
    write_hooks(
        panpan,
        PostCompact=[told_to(panpan)],
        SessionStart=[again],
        PreCompact=[{"matcher": "auto", "hooks": [{"command": "exit 2"}]}],
    )

    _, requests = compact(panpan)

    (told,) = all_told(panpan)
    assert "SUMMARY-MARK" in told["compact_summary"]
    assert "word1 " not in json.dumps(requests[-1].messages)


def test_change_of_the_working_directory_is_told(panpan: Panpan) -> None:
    (panpan.workspace / "sub").mkdir()
    write_hooks(panpan, CwdChanged=[told_to(panpan)])

    run(panpan, call("Bash", {"command": "cd sub"}), call("Bash", {"command": "pwd"}), say("Done."))

    (told,) = all_told(panpan)
    assert (told["old_cwd"], told["new_cwd"]) == (str(panpan.workspace), str(panpan.workspace / "sub"))


def test_long_words_of_a_hook_are_kept_in_a_file(panpan: Panpan) -> None:
    long = {"command": "head -c 30000 /dev/zero | tr '\\0' x; echo END"}
    write_hooks(panpan, UserPromptSubmit=[long])

    _, requests = run(panpan, say("Done."))

    text = json.dumps(requests[0].messages)
    assert "END" in text
    assert "xxxx" in text
    assert text.count("x") < 12_000
    (kept,) = (file for file in panpan.home.glob("**/hook*") if file.name != "hooks.json")
    assert kept.stat().st_size == 30_003


@contextmanager
def hook_server(status: int = 200, body: str = "") -> Iterator[tuple[str, list[tuple[Mapping[str, str], Any]]]]:
    """Answer each POST in the same way; give the address, and what was sent."""
    asked: list[tuple[Mapping[str, str], Any]] = []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            asked.append((dict(self.headers), json.loads(data)))
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/hook", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def test_server_may_say_no_and_is_told_what_it_may_know(panpan: Panpan) -> None:
    no = json.dumps({"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "not here"}})
    panpan.env |= {"MY_TOKEN": "sesame", "MY_OTHER": "hidden"}
    with hook_server(body=no) as (url, asked):
        headers = {"Authorization": "Bearer $MY_TOKEN", "X-Other": "${MY_OTHER}."}
        hook = {"type": "http", "url": url, "headers": headers, "allowedEnvVars": ["MY_TOKEN"]}
        write_hooks(panpan, PreToolUse=[{"matcher": "Bash", "hooks": [hook]}])

        _, requests = run(panpan, call("Bash", {"command": "touch made"}), say("Done."))

    assert "was not run: not here" in results(requests[1])
    assert not (panpan.workspace / "made").exists()
    ((sent, told),) = asked
    assert (sent["authorization"], sent["x-other"]) == ("Bearer sesame", ".")
    assert (told["hook_event_name"], told["tool_input"]) == ("PreToolUse", {"command": "touch made"})


@pytest.mark.parametrize("is_guard", [False, True])
@pytest.mark.parametrize("kind", ["500", "redirect", "garbage", "gone"])
def test_server_that_fails_is_told_and_a_guard_says_no(panpan: Panpan, kind: str, is_guard: bool) -> None:
    status = {"500": 500, "redirect": 302}.get(kind, 200)
    with hook_server(status, "{oops" if kind == "garbage" else "") as (url, _):
        pass_on = url if kind != "gone" else "http://127.0.0.1:1/hook"
        write_hooks(panpan, PreToolUse=[{"type": "http", "url": pass_on, "guard": is_guard}])

        done, _ = run(panpan, call("Bash", {"command": "touch made"}), say("Done."))

    assert (panpan.workspace / "made").exists() is not is_guard
    assert is_guard or "failed: " in done.stderr


def test_hooks_may_stand_in_settings_and_on_the_command_line(panpan: Panpan) -> None:
    panpan.home.mkdir(exist_ok=True)
    (panpan.home / "settings.toml").write_text(
        '[[hooks.PreToolUse]]\nmatcher = "Bash"\nhooks = [{command = "echo by the file >&2; exit 2"}]\n'
    )
    given = {"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [{"command": "echo by the flag >&2; exit 2"}]}]}}

    _, requests = run(
        panpan,
        call("Bash", {"command": "touch made"}),
        call("Read", {"file_path": "secret.txt"}),
        say("Done."),
        args=("-y", "-p", "go", "--settings", json.dumps(given)),
    )
    listed = panpan.run("hooks", "list")

    assert "by the file" in results(requests[1])
    assert f"{panpan.home}/settings.toml:1" in results(requests[1])
    assert "by the flag" in results(requests[2])
    assert f"({panpan.home}/settings.toml:1)" in listed.stdout


def test_settings_of_a_project_bring_no_hooks(panpan: Panpan) -> None:
    (panpan.workspace / ".panpan").mkdir()
    hook = '[[hooks.PreToolUse]]\nhooks = [{command = "echo theirs >&2; exit 2"}]\n'
    (panpan.workspace / ".panpan" / "settings.toml").write_text(hook)

    done, _ = run(panpan, call("Bash", {"command": "touch made"}), say("Done."), args=("-y", "-p", "go", "--trust"))

    assert "hooks is ignored" in done.stderr
    assert (panpan.workspace / "made").exists()


def test_event_of_settings_that_does_not_exist_is_told(panpan: Panpan) -> None:
    done, _ = run(panpan, say("Done."), args=("-p", "go", "--settings", '{"hooks": {"Never": []}}'))

    assert "hooks of Never never run: there is no such event" in done.stderr


def test_cassette_plays_what_hooks_did_without_running_them(panpan: Panpan) -> None:
    ran = panpan.workspace.parent / "ran"
    noted = f"echo x >> {ran}; "
    write_hooks(
        panpan,
        SessionStart=[{"command": f"{noted}echo from the start"}],
        UserPromptSubmit=[{"command": f"{noted}echo from the prompt"}],
        PreToolUse=[{"matcher": "Read", "hooks": [{"command": f"{noted}echo no reading >&2; exit 2"}]}],
        PostToolUse=[{"command": f'{noted}echo \'{{"decision": "block", "reason": "look again"}}\''}],
        Stop=[{"command": f"{noted}[ -e {ran}.once ] || {{ touch {ran}.once; echo go on >&2; exit 2; }}"}],
    )
    replies = (call("Bash", {"command": "echo hi"}), call("Read", {"file_path": "x"}), say("Half."), say("Done."))
    _, requests = run(panpan, *replies, args=("-y", "-p", "go", "--record", "tape"))
    told = json.dumps(requests[-1].messages)
    before = ran.read_text()

    done = panpan.run("replay", "tape", "--json")

    assert all(text in told for text in ("from the start", "from the prompt", "no reading", "look again", "go on"))
    assert (json.loads(done.stdout)["same"], json.loads(done.stdout)["requests"]) == (True, 4)
    assert ran.read_text() == before


@pytest.mark.parametrize("typed", ["/look at this", "/review the docs"])
def test_hook_refuses_a_skill_that_the_user_calls(panpan: Panpan, typed: str) -> None:
    write_skill(panpan, "look", body="Look.")
    name = typed[1:].partition(" ")[0]
    hook = {"matcher": name, "hooks": [{"command": "echo not that one >&2; exit 2"}]}
    write_hooks(panpan, UserPromptExpansion=[hook, {"hooks": [told_to(panpan)]}])

    done, requests = run(panpan, args=("-p", typed))

    assert requests == []
    assert "not that one" in done.stderr
    assert all_told(panpan)[0]["command_name"] == name


def test_hook_hears_of_a_turn_that_failed(panpan: Panpan) -> None:
    write_hooks(panpan, StopFailure=[told_to(panpan)])

    done, _ = run(panpan, HttpError(400, "no such thing"), args=("-p", "go"))

    assert done.code != 0
    assert "no such thing" in all_told(panpan)[0]["error"]


def test_commands_and_hooks_get_the_variables_of_the_settings(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[{"command": f"echo $MINE $ANTHROPIC_TEST > {panpan.workspace.parent}/told"}])
    (panpan.home / "settings.toml").write_text('[environment.variables]\nMINE = "it is mine"\nANTHROPIC_TEST = "no"\n')

    _, requests = run(panpan, call("Bash", {"command": "echo $MINE $ANTHROPIC_TEST"}), say("Done."))

    assert "it is mine" in results(requests[1])
    assert "it is mine no" not in results(requests[1])
    assert (panpan.workspace.parent / "told").read_text() == "it is mine\n"


def test_hook_hears_of_a_refused_call(panpan: Panpan) -> None:
    write_hooks(panpan, PermissionDenied=[{"matcher": "Bash", "hooks": [told_to(panpan)]}])
    args = ("-p", "go", "--disallowedTools", "Bash(touch *)")

    run(panpan, call("Bash", {"command": "touch made"}), say("Done."), args=args)

    (told,) = all_told(panpan)
    assert (told["tool_name"], told["tool_input"]) == ("Bash", {"command": "touch made"})
    assert "Bash(touch *)" in told["reason"]


def test_hook_hears_of_files_of_rules(panpan: Panpan) -> None:
    (panpan.workspace / "AGENTS.md").write_text("Be brief.")
    (panpan.workspace / "sub").mkdir()
    (panpan.workspace / "sub" / "AGENTS.md").write_text("Be kind.")
    (panpan.workspace / "sub" / "a.txt").write_text("x")
    write_hooks(panpan, InstructionsLoaded=[told_to(panpan)])

    run(panpan, call("Read", {"file_path": "sub/a.txt"}), say("Done."))

    told = [(Path(one["file_path"]).relative_to(panpan.workspace), one["load_reason"]) for one in all_told(panpan)]
    assert told == [(Path("AGENTS.md"), "session_start"), (Path("sub/AGENTS.md"), "nested_traversal")]


def test_user_is_told_of_a_hook_that_takes_long(panpan: Panpan) -> None:
    write_hooks(panpan, SessionStart=[{"command": "sleep 4"}])

    done, _ = run(panpan, say("Done."))

    assert "waiting for a hook of SessionStart" in done.stderr
    assert "for 60 s at most" in done.stderr


def test_events_outside_of_hooks_are_told(panpan: Panpan) -> None:
    panpan.home.mkdir(exist_ok=True)
    (panpan.home / "hooks.json").write_text('{"PreToolUse": []}')

    done, _ = run(panpan, say("Done."))

    assert 'hooks.json:1: its events stand outside of "hooks"; none of its hooks runs' in done.stderr


def test_matcher_without_a_subject_means_all(panpan: Panpan) -> None:
    write_hooks(panpan, Stop=[{"matcher": "x", "hooks": [told_to(panpan)]}])

    run(panpan, say("Done."))

    assert len(all_told(panpan)) == 1


def todos(*statuses: str) -> ToolCall:
    listed = [{"content": f"part {number}", "status": status} for number, status in enumerate(statuses)]
    return call("TodoWrite", {"todos": listed})


@pytest.mark.parametrize(
    "no", [{"command": "echo no tests ran >&2; exit 2"}, says({"decision": "block", "reason": "no tests ran"})]
)
def test_hook_keeps_a_todo_from_being_completed(panpan: Panpan, no: Mapping[str, Any]) -> None:
    write_hooks(panpan, TaskCompleted=[told_to(panpan), no], TaskCreated=[told_to(panpan, "created")])

    _, requests = run(
        panpan, todos("pending"), todos("completed", "pending"), todos("pending", "pending"), say("Done.")
    )

    assert "part 0: a hook refuses it: no tests ran" in results(requests[2])
    assert "the list is as it was" in results(requests[2])
    assert "The list is kept" in results(requests[3])
    completed, created = all_told(panpan), all_told(panpan, "created")
    assert [one["task_subject"] for one in completed] == ["part 0"]
    assert completed[0]["task_id"]
    assert [one["task_subject"] for one in created] == ["part 0", "part 1"]


def test_failing_guard_refuses_a_todo(panpan: Panpan) -> None:
    write_hooks(panpan, TaskCreated=[{"command": "/nowhere/guard", "args": ["now"], "guard": True}])

    _, requests = run(panpan, todos("pending"), say("Done."))

    assert "the list is as it was" in results(requests[1])
