"""The control protocol of the Agent SDK, line by line, over the pipes of the real program."""

import json
import signal
import subprocess
import sys
from threading import Event
from typing import Any

import pytest

from tests.e2e.conftest import Panpan, wait_until
from tests.e2e.sdk_program import ASKS, STREAM, Program, running
from tests.model_server import Stall, Tokens, ToolCall, call, calls, say, serving
from tests.model_server.script import Hold

DIALECTS = pytest.mark.parametrize("dialect", ["anthropic", "openai"])
INITIALIZE = b'{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}\n'
MESSAGE = "11111111-2222-4333-8444-555555555555"
TOUCH = {"command": "touch made", "description": "Make a file"}


def message(text: str) -> bytes:
    """Return a message of the user as a line."""
    return json.dumps({"type": "user", "message": {"role": "user", "content": text}}).encode() + b"\n"


def tool_texts(request: Any) -> str:
    """Return the results of tools that a request ends with, as JSON."""
    return json.dumps(request.messages[-1])


def test_initialize_is_answered_before_the_session_is_open(panpan: Panpan) -> None:
    with serving([say("hello")]) as server:
        panpan.use(server)
        with running(panpan) as program:
            assert [line["type"] for line in program.seen] == ["control_response"]
            answer = program.seen[0]["response"]["response"]
            program.say("hi")
            assert program.result()["result"] == "hello"
            assert program.end().code == 0

    assert {"commands", "agents", "models", "account", "output_style", "available_output_styles"} <= answer.keys()
    assert answer["hook_on_failure_supported"] is True
    assert {"name", "description", "argumentHint"} == answer["commands"][0].keys()


def test_initialize_needs_nothing_that_is_slow_to_import() -> None:
    heavy = ("pydantic", "panpan.app", "panpan.session.session", "panpan.config.settings")
    code = f"import sys, panpan.cli.sdk_command; print([name for name in {heavy} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert done.stdout == "[]\n", done.stderr


@DIALECTS
def test_call_runs_if_the_program_allows_it(panpan: Panpan, dialect: str) -> None:
    with serving([call("Bash", TOUCH), say("done")]) as server:
        panpan.use(server, dialect=dialect)
        with running(panpan, *ASKS) as program:
            program.say("go")
            asked = program.request("can_use_tool")
            assert not (panpan.workspace / "made").exists()
            program.answer(asked, behavior="allow", updatedInput=TOUCH)
            assert program.result()["subtype"] == "success"
            assert program.end().code == 0

    request = asked["request"]
    assert (request["tool_name"], request["input"]) == ("Bash", TOUCH)
    assert request["permission_suggestions"][0]["rules"] == [{"toolName": "Bash", "ruleContent": "touch made"}]
    assert request["tool_use_id"]
    assert (panpan.workspace / "made").exists()


@DIALECTS
def test_call_does_not_run_if_the_program_denies_it(panpan: Panpan, dialect: str) -> None:
    with serving([call("Bash", TOUCH), say("done")]) as server:
        panpan.use(server, dialect=dialect)
        with running(panpan, *ASKS) as program:
            program.say("go")
            program.answer(program.request("can_use_tool"), behavior="deny", message="rather not")
            result = program.result()
            assert program.end().code == 0

    assert not (panpan.workspace / "made").exists()
    assert "rather not" in tool_texts(server.requests[1])
    assert result["permission_denials"][0]["tool_name"] == "Bash"


def test_denial_may_end_the_turn(panpan: Panpan) -> None:
    with serving([call("Bash", TOUCH), say("next")]) as server:
        panpan.use(server)
        with running(panpan, *ASKS) as program:
            program.say("go")
            program.answer(program.request("can_use_tool"), behavior="deny", message="stop", interrupt=True)
            assert program.result()["terminal_reason"] == "aborted_streaming"
            program.say("another")
            assert program.result()["result"] == "next"
            assert program.end().code == 0


def test_allowed_call_runs_with_other_arguments(panpan: Panpan) -> None:
    with serving([call("Write", {"file_path": "a.txt", "content": "a\n"}), say("done")]) as server:
        panpan.use(server)
        with running(panpan, *ASKS) as program:
            program.say("go")
            given = {"file_path": "b.txt", "content": "b\n"}
            program.answer(program.request("can_use_tool"), behavior="allow", updatedInput=given)
            program.result()
            program.end()

    assert not (panpan.workspace / "a.txt").exists()
    assert (panpan.workspace / "b.txt").read_text() == "b\n"
    assert "made with these arguments instead" in tool_texts(server.requests[1])


def test_other_arguments_open_no_denied_and_no_protected_place(panpan: Panpan) -> None:
    writes = call("Write", {"file_path": "a.txt", "content": "a\n"})
    with serving([writes, writes, say("done")]) as server:
        panpan.use(server)
        with running(panpan, *ASKS, "--disallowedTools", "Edit(secret/**)") as program:
            program.say("go")
            denied = {"file_path": "secret/a.txt", "content": "x\n"}
            program.answer(program.request("can_use_tool"), behavior="allow", updatedInput=denied)
            protected = {"file_path": ".git/config", "content": "x\n"}
            program.answer(program.request("can_use_tool"), behavior="allow", updatedInput=protected)
            asked_again = program.request("can_use_tool")
            program.answer(asked_again, behavior="deny", message="no")
            program.result()
            program.end()

    assert asked_again["request"]["input"] == protected
    assert not (panpan.workspace / "secret").exists()
    assert not (panpan.workspace / ".git").exists()


def test_unusable_arguments_are_told_to_the_model(panpan: Panpan) -> None:
    with serving([call("Bash", TOUCH), say("done")]) as server:
        panpan.use(server)
        with running(panpan, *ASKS) as program:
            program.say("go")
            program.answer(program.request("can_use_tool"), behavior="allow", updatedInput={"comand": "ls"})
            assert program.result()["subtype"] == "success"
            program.end()

    assert "the answer gave it other arguments" in tool_texts(server.requests[1])


def test_question_of_the_model_is_put_to_the_program(panpan: Panpan) -> None:
    options = [{"label": "Red", "description": ""}, {"label": "Blue", "description": "Calm"}]
    asked = {"question": "Which colours?", "header": "Colours", "options": options, "multiSelect": True}
    both = [call("AskUserQuestion", {"questions": [asked]}), call("AskUserQuestion", {"questions": [asked]}), say("ok")]
    with serving(both) as server:
        panpan.use(server)
        with running(panpan, *ASKS) as program:
            program.say("go")
            request = program.request("can_use_tool")
            given = {**request["request"]["input"], "answers": {"Which colours?": "Red, Blue"}}
            program.answer(request, behavior="allow", updatedInput=given)
            program.answer(program.request("can_use_tool"), behavior="deny", message="later")
            program.result()
            program.end()

    assert request["request"]["tool_name"] == "AskUserQuestion"
    assert request["request"]["input"]["questions"] == [asked]
    assert "Which colours? Red, Blue" in tool_texts(server.requests[1])
    assert "did not want to answer" in tool_texts(server.requests[2])


def test_plan_is_put_to_the_program(panpan: Panpan) -> None:
    plan = call(
        "ExitPlanMode", {"plan": "# Do it\n\nWrite the file a.txt with one line, and look at it again at the end.\n"}
    )
    with serving([plan, plan, call("Write", {"file_path": "a.txt", "content": "a\n"}), say("done")]) as server:
        panpan.use(server)
        with running(panpan, *ASKS, "--permission-mode", "plan") as program:
            program.say("go")
            first = program.request("can_use_tool")
            program.answer(first, behavior="deny", message="shorter, please")
            mode = {"type": "setMode", "mode": "acceptEdits", "destination": "session"}
            program.answer(program.request("can_use_tool"), behavior="allow", updatedPermissions=[mode])
            program.result()
            program.end()

    assert first["request"]["tool_name"] == "ExitPlanMode"
    assert "Do it" in first["request"]["input"]["plan"]
    assert "shorter, please" in tool_texts(server.requests[1])
    assert (panpan.workspace / "a.txt").exists()


def test_files_are_brought_back_to_a_message(panpan: Panpan) -> None:
    (panpan.workspace / "a.txt").write_text("before\n")
    write = call("Write", {"file_path": "a.txt", "content": "after\n"})
    with serving([call("Read", {"file_path": "a.txt"}), write, say("done")]) as server:
        panpan.use(server)
        with running(panpan, "--permission-mode", "acceptEdits") as program:
            program.say("go", uuid=MESSAGE)
            program.result()
            assert (panpan.workspace / "a.txt").read_text() == "after\n"
            look = program.call("rewind_files", user_message_id=MESSAGE, dry_run=True)["response"]
            assert (panpan.workspace / "a.txt").read_text() == "after\n"
            done = program.call("rewind_files", user_message_id=MESSAGE)["response"]
            unknown = program.call("rewind_files", user_message_id="nope")["response"]
            program.end()

    assert look == done == {"canRewind": True, "filesChanged": ["a.txt"], "insertions": 1, "deletions": 1}
    assert (panpan.workspace / "a.txt").read_text() == "before\n"
    assert unknown["canRewind"] is False


def test_changes_of_permissions_count_for_the_session(panpan: Panpan) -> None:
    with serving([call("Bash", TOUCH), call("Bash", {**TOUCH, "command": "touch more"}), say("done")]) as server:
        panpan.use(server)
        with running(panpan, *ASKS) as program:
            program.say("go")
            rule = {"toolName": "Bash", "ruleContent": "touch *"}
            rules = {"type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session"}
            program.answer(program.request("can_use_tool"), behavior="allow", updatedPermissions=[rules])
            program.result()
            asked = [line for line in program.seen if line["type"] == "control_request"]
            program.end()

    assert len(asked) == 1
    assert (panpan.workspace / "more").exists()


def test_nobody_is_asked_without_the_option(panpan: Panpan) -> None:
    for options in ((), ("--permission-prompts", "none")):
        with serving([call("Bash", TOUCH), say("done")]) as server:
            panpan.use(server)
            with running(panpan, *options) as program:
                program.say("go")
                assert program.result()["permission_denials"]
                assert program.end().code == 0


@DIALECTS
def test_hook_of_the_program_denies_a_call(panpan: Panpan, dialect: str) -> None:
    hooks = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}
    with serving([calls(ToolCall("LS", {})), call("Bash", TOUCH), say("done")]) as server:
        panpan.use(server, dialect=dialect)
        with running(panpan, "--permission-mode", "bypassPermissions", hooks=hooks) as program:
            program.say("go")
            asked = program.request("hook_callback")["request"]
            output = {
                "hookEventName": "PreToolUse",
                "permissionDecision": "deny",
                "permissionDecisionReason": "not now",
            }
            program.answer(program.seen[-1], hookSpecificOutput=output)
            program.result()
            program.end()

    assert asked["callback_id"] == "hook_0"
    assert asked["input"]["tool_name"] == "Bash"
    assert asked["input"]["hook_event_name"] == "PreToolUse"
    assert asked["tool_use_id"]
    assert "not now" in tool_texts(server.requests[2])
    assert not (panpan.workspace / "made").exists()


def test_hook_that_does_not_answer_denies_and_is_taken_back(panpan: Panpan) -> None:
    hooks = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["slow"], "timeout": 0.2}]}
    with serving([call("Bash", TOUCH), say("done")]) as server:
        panpan.use(server)
        with running(panpan, "--permission-mode", "bypassPermissions", hooks=hooks) as program:
            program.say("go")
            asked = program.request("hook_callback")
            taken_back = program.until(lambda line: line["type"] == "control_cancel_request")
            program.answer(asked)
            assert "which nothing waits for" in program.system("input_error")["error"]
            assert program.result()["subtype"] == "success"
            program.end()

    assert taken_back["request_id"] == asked["request_id"]
    assert "nothing came within 0.2 s" in tool_texts(server.requests[1])
    assert not (panpan.workspace / "made").exists()


@pytest.mark.parametrize(("on_failure", "runs"), [(None, True), ("block", False)])
def test_failing_hook_blocks_only_where_it_is_to(panpan: Panpan, on_failure: str | None, runs: bool) -> None:
    matcher = {"matcher": None, "hookCallbackIds": ["h"], **({"onFailure": on_failure} if on_failure else {})}
    with serving([call("Bash", TOUCH), say("done")]) as server:
        panpan.use(server)
        with running(panpan, "--permission-mode", "bypassPermissions", hooks={"PreToolUse": [matcher]}) as program:
            program.say("go")
            program.fail(program.request("hook_callback"), "boom")
            program.result()
            program.end()

    assert (panpan.workspace / "made").exists() is runs


def test_second_initialize_replaces_the_hooks(panpan: Panpan) -> None:
    def hooks(name: str) -> Any:
        return {"UserPromptSubmit": [{"matcher": None, "hookCallbackIds": [name]}]}

    with serving([say("one"), say("two")]) as server:
        panpan.use(server)
        with running(panpan, hooks=hooks("first")) as program:
            program.say("go")
            program.answer(program.request("hook_callback"))
            program.result()
            program.call("initialize", hooks=hooks("second"))
            program.say("again")
            asked = program.request("hook_callback")
            program.answer(asked, hookSpecificOutput={"hookEventName": "UserPromptSubmit", "additionalContext": "Hm."})
            program.result()
            program.end()

    assert asked["request"]["callback_id"] == "second"
    assert "Hm." in json.dumps(server.requests[1].messages[-1])


def test_hook_events_are_printed_if_wanted(panpan: Panpan) -> None:
    hooks = {"PreToolUse": [{"matcher": None, "hookCallbackIds": ["h"]}]}
    with serving([call("LS", {}), say("done")]) as server:
        panpan.use(server)
        with running(panpan, "--include-hook-events", hooks=hooks) as program:
            program.say("go")
            started = program.system("hook_started")
            asked = program.request("hook_callback")
            assert not [line for line in program.seen if line.get("subtype") == "hook_response"]
            program.answer(asked, hookSpecificOutput={"hookEventName": "PreToolUse", "additionalContext": "Hm."})
            program.result()
            program.end()

    events = [line for line in program.seen if line.get("subtype") in ("hook_started", "hook_response")]
    assert [(one["subtype"], one["hook_event"]) for one in events] == [
        ("hook_started", "PreToolUse"),
        ("hook_response", "PreToolUse"),
    ]
    assert started == events[0]
    assert events[0]["hook_id"] == events[1]["hook_id"]
    assert (events[1]["outcome"], events[1]["output"]) == ("success", "Hm.")


def test_hook_that_is_interrupted_is_told_as_cancelled(panpan: Panpan) -> None:
    hooks = {"PreToolUse": [{"matcher": None, "hookCallbackIds": ["slow", "fails"]}]}
    with serving([call("LS", {})]) as server:
        panpan.use(server)
        with running(panpan, "--include-hook-events", hooks=hooks) as program:
            program.say("go")
            asked = [program.request("hook_callback") for _ in range(2)]
            program.fail(next(one for one in asked if one["request"]["callback_id"] == "fails"), "boom")
            failed = program.system("hook_response")
            program.call("interrupt")
            program.result()
            program.end()
            list(program)

    slow = [line for line in program.seen if line.get("subtype") == "hook_response"][1]
    assert (failed["hook_name"], failed["outcome"]) == ("asks the program (fails)", "error")
    assert "boom" in failed["stderr"]
    assert (slow["hook_name"], slow["outcome"]) == ("asks the program (slow)", "cancelled")


def test_hooks_of_subagents_are_told(panpan: Panpan) -> None:
    hooks = {"PreToolUse": [{"matcher": "LS", "hookCallbackIds": ["h"]}]}
    look = {"description": "look", "prompt": "look", "subagent_type": "explore"}
    with serving([call("Task", look), call("LS", {}), say("found"), say("done")]) as server:
        panpan.use(server)
        with running(panpan, "--include-hook-events", hooks=hooks) as program:
            program.say("go")
            program.system("hook_started")
            program.answer(program.request("hook_callback"))
            assert program.system("hook_response")["outcome"] == "success"
            program.result()
            program.end()


def test_interrupt_ends_the_turn_and_not_the_process(panpan: Panpan) -> None:
    with serving([say("never", faults=(Stall("text"),)), say("next")]) as server:
        panpan.use(server)
        with running(panpan, "--include-partial-messages") as program:
            program.say("go")
            program.until(lambda line: line["type"] == "stream_event")
            assert program.call("interrupt")["subtype"] == "success"
            assert program.result()["terminal_reason"] == "aborted_streaming"
            program.say("again")
            assert program.result()["result"] == "next"
            assert program.end().code == 0


def test_interrupt_without_a_turn_does_nothing(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        with running(panpan) as program:
            assert program.call("interrupt")["subtype"] == "success"
            program.say("go")
            assert program.result()["result"] == "one"
            program.end()


def test_mode_changes_within_the_session(panpan: Panpan) -> None:
    write = call("Write", {"file_path": "a.txt", "content": "a\n"})
    with serving([write, say("one"), write, say("two")]) as server:
        panpan.use(server)
        with running(panpan) as program:
            program.say("go")
            assert program.result()["permission_denials"]
            assert program.call("set_permission_mode", mode="acceptEdits")["response"] == {"mode": "acceptEdits"}
            program.say("again")
            assert not program.result()["permission_denials"]
            assert program.call("set_permission_mode", mode="manual")["response"] == {"mode": "default"}
            refused = program.call("set_permission_mode", mode="bypassPermissions")
            unknown = program.call("set_permission_mode", mode="careless")
            program.end()

    assert (panpan.workspace / "a.txt").exists()
    assert "--allow-dangerously-skip-permissions" in refused["error"]
    assert "careless" in unknown["error"]


def test_program_may_skip_permissions_if_it_was_started_so(panpan: Panpan) -> None:
    with serving([]) as server:
        panpan.use(server)
        with running(panpan, "--allow-dangerously-skip-permissions") as program:
            assert program.call("set_permission_mode", mode="bypassPermissions")["subtype"] == "success"
            program.end()


@DIALECTS
def test_model_changes_for_the_next_turn(panpan: Panpan, dialect: str) -> None:
    first, other = ("claude-sonnet-4-5", "claude-opus-4-5") if dialect == "anthropic" else ("openai/a", "openai/b")
    held = Event()
    with serving([say("one", faults=(Hold("text", held),)), say("two"), say("three")]) as server:
        panpan.use(server, dialect=dialect)
        with running(panpan, "--model", first) as program:
            program.say("go")
            wait_until(lambda: server.requests)
            request = program.ask("set_model", model=other)
            held.set()
            program.result()
            assert program.response_to(request)["subtype"] == "success"
            program.say("again")
            program.result()
            assert program.call("set_model", model=None)["subtype"] == "success"
            program.say("and again")
            program.result()
            assert "nope.toml" in program.call("set_model", model="cassette:nope.toml")["error"]
            program.end()

    used = [request.body["model"] for request in server.requests]
    assert used == [name.rpartition("/")[2] for name in (first, other, first)]


def test_small_requests_are_answered(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        with running(panpan) as program:
            program.say("go")
            program.result()
            usage = program.call("get_context_usage")["response"]
            assert usage["totalTokens"] == sum(part["tokens"] for part in usage["categories"]) > 0
            assert program.call("mcp_status")["response"] == {"mcpServers": []}
            assert program.call("rename_session", title=" A  title ")["response"] == {"title": "A title"}
            assert program.call("get_session_cost")["response"]["total_cost_usd"] > 0
            assert program.call("list_permission_rules")["response"] == {"rules": []}
            assert program.call("set_max_thinking_tokens", max_thinking_tokens=4000)["subtype"] == "success"
            assert "no background task" in program.call("stop_task", task_id="nope")["error"]
            program.end()


REFUSED = [("get_usage", "no subscription"), ("reload_skills", "a session reads them once; end it"),
           ("update_settings", "a program writes no settings files"), ("dance", "'dance'")]  # fmt: skip


@pytest.mark.parametrize(("subtype", "said"), REFUSED)
def test_unknown_request_is_refused_by_its_name(panpan: Panpan, subtype: str, said: str) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        with running(panpan) as program:
            answer = program.call(subtype, path="a.txt")
            program.say("go")
            assert program.result()["subtype"] == "success"
            program.end()

    assert answer["subtype"] == "error"
    assert said in answer["error"]


def test_end_session_ends_the_run(panpan: Panpan) -> None:
    with serving([]) as server:
        panpan.use(server)
        with running(panpan) as program:
            program.ask("end_session")
            assert program.process.wait(20) == 0


@pytest.mark.parametrize("is_hook", [False, True])
def test_end_session_denies_what_waits(panpan: Panpan, is_hook: bool) -> None:
    hooks = {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["h"]}]} if is_hook else {}
    with serving([call("Bash", TOUCH), say("done")]) as server:
        panpan.use(server)
        with running(panpan, *ASKS, hooks=hooks) as program:
            program.say("go")
            program.request("hook_callback" if is_hook else "can_use_tool")
            program.ask("end_session")
            assert program.process.wait(20) == 0

    assert "the program has" in tool_texts(server.requests[1])
    assert not (panpan.workspace / "made").exists()


def test_wishes_of_initialize_shape_the_session(panpan: Panpan) -> None:
    agents = {"critic": {"description": "Reads and judges.", "prompt": "Judge it.", "tools": ["Read"]}}
    large = {"prompter": {"description": "Long.", "prompt": "x" * 900_000}}
    wishes = {"agents": {**agents, **large}, "systemPrompt": ["Be a", "poet."], "appendSystemPrompt": "Rhyme."}
    with serving([say("one")]) as server:
        panpan.use(server)
        with running(panpan, "--system-prompt", "", **wishes) as program:
            program.say("go")
            program.result()
            program.end()

    (request,) = server.requests
    assert request.body["system"][0]["text"] == "Be a\n\npoet.\n\nRhyme."
    assert {"critic", "prompter"} <= set(next(line for line in program.seen if line.get("subtype") == "init")["agents"])


def test_options_that_initialize_delivers_count(panpan: Panpan) -> None:
    wishes = {"settings": {"permissions": {"deny": ["Bash(touch *)"]}}, "disallowedTools": ["LS"], "mcpServers": {}}
    touch = {"command": "touch made", "description": "Make"}
    fields = ("--initialize-fields", "settings,disallowedTools", "--disallowedTools", "Glob")
    with serving([call("Bash", touch), say("done")]) as server:
        panpan.use(server)
        with running(panpan, *fields, "--permission-mode", "bypassPermissions", begins=False) as program:
            first = program.call("initialize", **wishes)["response"]
            program.say("go")
            program.result()
            again = program.call("initialize", **wishes)["response"]
            program.end()

    applied = ("settings_applied", "disallowed_tools_applied", "mcp_servers_applied")
    assert [(first[name], again[name]) for name in applied] == [(True, False)] * 3
    assert not (panpan.workspace / "made").exists()
    assert not {"LS", "Glob"} & {tool["name"] for tool in server.requests[0].body["tools"]}


@pytest.mark.parametrize("wishes", [{"settings": {}}, {"settings": {}, "disallowedTools": 3}])
def test_run_ends_without_the_fields_that_are_announced(panpan: Panpan, wishes: Any) -> None:
    with serving([]) as server:
        panpan.use(server)
        with running(panpan, "--initialize-fields", "settings,disallowedTools", begins=False) as program:
            refused = program.call("initialize", **wishes)
            code = program.process.wait(20)

    assert "disallowedTools" in refused["error"]
    assert code == 2


def test_model_has_only_the_skills_that_are_named(panpan: Panpan) -> None:
    for name in ("forms", "letters"):
        folder = panpan.home / "skills" / name
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Writes {name}\n---\nDo it.\n")
    load = call("Skill", {"skill": "letters"})
    with serving([load, say("one"), say("two")]) as server:
        panpan.use(server)
        for named in (["forms"], []):
            with running(panpan, "--allowedTools", "Skill", skills=named) as program:
                program.say("go")
                program.result()
                program.end()

    first = json.dumps(server.requests[0].messages)
    assert "Writes forms" in first
    assert "Writes letters" not in first
    assert "there is no skill" in tool_texts(server.requests[1])
    assert "Skill" not in [tool["name"] for tool in server.requests[2].body["tools"]]


@pytest.mark.parametrize(
    ("wishes", "said"),
    [({"hooks": []}, "hooks is no object"), ({"hooks": {"Stop": [{"matcher": "["}]}}, "no pattern"),
     ({"agents": 3}, "agents is no object")],
)  # fmt: skip
def test_wrong_initialize_is_refused_and_may_be_sent_again(panpan: Panpan, wishes: Any, said: str) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        with running(panpan, begins=False) as program:
            assert said in program.call("initialize", **wishes)["error"]
            assert program.call("initialize")["subtype"] == "success"
            program.say("go")
            assert program.result()["subtype"] == "success"
            program.end()


def answered_by_server(program: Program, tool: Any = None, *, is_mute: bool = False) -> None:
    """Answer as an MCP server until the turn is over, or as one that says nothing to calls."""
    tool = tool or {"name": "add", "description": "Add", "inputSchema": {"type": "object", "properties": {}}}
    info = {"name": "calc", "version": "1"}
    results = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info},
        "tools/list": {"tools": [tool]},
        "tools/call": {"content": [{"type": "text", "text": "the sum is 3"}]},
    }
    while True:
        line = program.until(lambda line: line["type"] in ("control_request", "result"))
        if line["type"] == "result":
            return
        message = line["request"]["message"]
        result = results.get(message["method"], {})
        answer = {"jsonrpc": "2.0", "id": message.get("id", 0), "result": result}
        program.answer(line, mcp_response=None if is_mute and message["method"] == "tools/call" else answer)


@DIALECTS
@pytest.mark.parametrize("by_flag", [True, False])
def test_tool_of_the_program_is_offered_and_called(panpan: Panpan, dialect: str, by_flag: bool) -> None:
    options = ["--mcp-config", json.dumps({"mcpServers": {"calc": {"type": "sdk", "name": "calc"}}})] if by_flag else []
    wishes = {} if by_flag else {"sdkMcpServers": ["calc"]}
    with serving([call("mcp__calc__add", {"a": 1}), say("done")]) as server:
        panpan.use(server, dialect=dialect)
        with running(panpan, *options, "--allowedTools", "mcp__calc__add", "--tools", "", **wishes) as program:
            program.say("go")
            answered_by_server(program)
            done = program.end()

    assert done.code == 0, done.stderr
    names = [tool.get("function", tool)["name"] for tool in server.requests[0].body["tools"]]
    assert "mcp__calc__add" in names
    assert "the sum is 3" in tool_texts(server.requests[1])


def test_call_that_the_program_says_nothing_to_is_an_error(panpan: Panpan) -> None:
    with serving([call("mcp__calc__add", {"a": 1}), say("done")]) as server:
        panpan.use(server)
        with running(panpan, "--allowedTools", "mcp__calc__add", sdkMcpServers=["calc"]) as program:
            program.say("go")
            answered_by_server(program, is_mute=True)
            program.end()

    assert "it did not answer" in tool_texts(server.requests[1])


def test_server_of_the_program_is_switched_off_and_on(panpan: Panpan) -> None:
    adds = call("mcp__calc__add", {})
    with serving([adds, say("one"), adds, say("two"), adds, say("three")]) as server:
        panpan.use(server)
        with running(panpan, "--allowedTools", "mcp__calc__add", sdkMcpServers=["calc"]) as program:
            program.say("go")
            answered_by_server(program)
            assert program.call("mcp_toggle", serverName="calc", enabled=False)["subtype"] == "success"
            (row,) = program.call("mcp_status")["response"]["mcpServers"]
            program.say("again")
            answered_by_server(program)
            request = program.ask("mcp_toggle", serverName="calc", enabled=True)
            program.say("and again")
            answered_by_server(program)
            assert program.call("mcp_reconnect", serverName="nope")["subtype"] == "error"
            program.end()

    assert row["status"] == "disabled"
    assert any(
        line["type"] == "control_response" and line["response"]["request_id"] == request for line in program.seen
    )
    assert "is switched off" in tool_texts(server.requests[3])
    assert "the sum is 3" in tool_texts(server.requests[5])


def test_changed_tool_of_the_program_needs_no_new_yes(panpan: Panpan) -> None:
    for description in ("Add", "Add two numbers"):
        tool = {"name": "add", "description": description, "inputSchema": {"type": "object", "properties": {}}}
        with serving([call("mcp__calc__add", {}), say("done")]) as server:
            panpan.use(server)
            with running(panpan, "--allowedTools", "mcp__calc__add", sdkMcpServers=["calc"]) as program:
                program.say("go")
                answered_by_server(program, tool)
                program.end()
        assert "the sum is 3" in tool_texts(server.requests[1])


def test_server_of_the_program_that_fails_costs_itself(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        with running(panpan, sdkMcpServers=["calc"]) as program:
            program.fail(program.request("mcp_message"), "no such server")
            program.say("go")
            while (line := program.until(lambda line: line["type"] in ("control_request", "result")))[
                "type"
            ] != "result":
                program.fail(line, "no such server")
            assert line["result"] == "one"
            assert "no such server" in program.end().stderr


def test_states_are_told_to_a_program_that_reads_them(panpan: Panpan) -> None:
    panpan.env["CLAUDE_CODE_SDK_READS_SESSION_STATE"] = "1"
    with serving([call("Bash", TOUCH), say("done")]) as server:
        panpan.use(server)
        with running(panpan, *ASKS) as program:
            program.say("go")
            program.answer(program.request("can_use_tool"), behavior="allow")
            program.until(lambda line: line.get("state") == "idle")
            program.end()

    states = [(line["state"], line["sdk_host_only"]) for line in program.seen if "state" in line]
    assert states == [("running", True), ("requires_action", True), ("running", True), ("idle", True)]
    assert program.seen[-2]["type"] == "result"


# bad input, and programs that go away


BAD_LINES = [
    (b"nonsense", "line 2 of the input"),
    (b'{"type": "control_response", "response": {"request_id": "x", "subtype": "success"}}', "which nothing waits for"),
    (b'{"type": "control_response"}', "without the id of a request"),
    (b'{"type": "control_request", "request": {"subtype": "interrupt"}}', "request without an id"),
    (b'{"type": "dance"}', "type 'dance'"),
    (b'{"type": "user", "message": {"role": "user", "content": []}}', "line 2 of the input"),
    (b"[" * 100_000, "line 2 of the input"),
    (b'{"type": "control_request"', "line 2 of the input"),
]


@pytest.mark.parametrize(("line", "said"), BAD_LINES)
def test_bad_line_is_reported_and_costs_itself(panpan: Panpan, line: bytes, said: str) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        with running(panpan) as program:
            program.send(line)
            assert said in program.system("input_error")["error"]
            program.say("go")
            assert program.result()["result"] == "one"
            assert program.end().code == 0


def test_line_of_a_hundred_megabytes_costs_itself(panpan: Panpan) -> None:
    with serving([say("one")]) as server:
        panpan.use(server)
        with running(panpan) as program:
            program.send(b'{"type":"user","message":{"role":"user","content":"' + b"x" * 100_000_000 + b'"}}')
            assert "more than 64,000,000 bytes" in program.system("input_error")["error"]
            program.say("go")
            assert program.result()["result"] == "one"
            assert program.end().code == 0


def test_first_of_two_answers_counts(panpan: Panpan) -> None:
    with serving([call("Bash", TOUCH), say("done")]) as server:
        panpan.use(server)
        with running(panpan, *ASKS) as program:
            program.say("go")
            asked = program.request("can_use_tool")
            program.answer(asked, behavior="deny", message="no")
            program.answer(asked, behavior="allow")
            assert "which nothing waits for" in program.system("input_error")["error"]
            program.result()
            program.end()

    assert not (panpan.workspace / "made").exists()


@pytest.mark.parametrize("answer", [{}, {"behavior": "perhaps"}, {"behavior": None}])
def test_answer_that_says_nothing_is_a_no(panpan: Panpan, answer: Any) -> None:
    with serving([call("Bash", TOUCH), say("done")]) as server:
        panpan.use(server)
        with running(panpan, *ASKS) as program:
            program.say("go")
            program.answer(program.request("can_use_tool"), **answer)
            assert program.result()["permission_denials"]
            program.end()

    assert not (panpan.workspace / "made").exists()


def test_question_is_denied_when_the_input_ends(panpan: Panpan) -> None:
    with serving([call("Bash", TOUCH), say("done")]) as server:
        panpan.use(server)
        with running(panpan, *ASKS) as program:
            program.say("go")
            program.request("can_use_tool")
            done = program.end()
            results = [line for line in program if line["type"] == "result"]

    assert done.code == 0
    assert [one["result"] for one in results] == ["done"]
    assert "the program has closed its side" in tool_texts(server.requests[1])
    assert not (panpan.workspace / "made").exists()


def test_program_that_dies_in_a_question_leaves_a_valid_session(panpan: Panpan) -> None:
    panpan.env["CLAUDE_AGENT_SDK_VERSION"] = "0.2.189"
    with serving([call("Bash", TOUCH), say("done"), say("again")]) as server:
        panpan.use(server)
        process = panpan.start(*STREAM, *ASKS)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE + message("go"))
        process.stdin.flush()
        while b"can_use_tool" not in process.stdout.readline():
            pass
        process.stdin.close()
        process.stdout.close()
        process.wait(20)
        process.stdin = process.stdout = None
        done = panpan.run("-c", "-p", "and now?")

    assert done.code == 0, done.stderr
    assert not (panpan.workspace / "made").exists()
    assert server.refusals == []


def test_busy_run_ends_after_its_turn_and_an_idle_one_at_once(panpan: Panpan) -> None:
    held = Event()
    with serving([say("one", faults=(Hold("text", held),))]) as server:
        panpan.use(server)
        with running(panpan) as program:
            program.say("go")
            wait_until(lambda: server.requests)
            program.process.stdin.close()  # type: ignore[union-attr]
            program.process.stdin = None
            held.set()
            assert program.result()["result"] == "one"
            assert program.process.wait(20) == 0
        with running(panpan) as program:
            assert program.end().code == 0


def test_output_that_nobody_reads_stalls_nothing(panpan: Panpan) -> None:
    panpan.env["CLAUDE_AGENT_SDK_VERSION"] = "0.2.189"
    with serving([say("word " * 100_000, chunk_chars=50), say("two")]) as server:
        panpan.use(server)
        process = panpan.start(*STREAM, "--include-partial-messages")
        assert process.stdin is not None
        process.stdin.write(INITIALIZE + message("go") + message("again"))
        process.stdin.flush()
        wait_until(lambda: len(server.requests) == 2)  # the second turn begins though nobody has read a byte
        out, _ = process.communicate(timeout=60)

    results = [line for line in map(json.loads, out.splitlines()) if line["type"] == "result"]
    assert [len(one["result"]) for one in results] == [500_000, 3]
    assert process.returncode == 0


def test_signal_ends_the_run_with_a_result(panpan: Panpan) -> None:
    with serving([say("never", faults=(Stall("text"),))]) as server:
        panpan.use(server)
        with running(panpan) as program:
            program.say("go")
            wait_until(lambda: server.requests)
            program.process.send_signal(signal.SIGTERM)
            assert program.result()["is_error"]
            assert program.process.wait(20) == 143


def test_session_that_cannot_open_is_told_after_initialize(panpan: Panpan) -> None:
    with running(panpan, "--model", "nowhere/x") as program:
        result = program.result()
        done = program.end()

    assert result["terminal_reason"] == "turn_setup_failed"
    assert "nowhere" in result["errors"][0]
    assert done.code == 2


def test_limit_is_a_result_and_no_failure_of_the_process(panpan: Panpan) -> None:
    with serving([call("LS", {})]) as server:
        panpan.use(server)
        with running(panpan, "--max-turns", "1") as program:
            program.say("go")
            assert program.result()["subtype"] == "error_max_turns"
            assert program.end().code == 0


def test_costs_of_a_result_are_those_of_the_run(panpan: Panpan) -> None:
    tokens = Tokens(input=1_000, output=100)
    with serving([say("one", tokens=tokens), say("two", tokens=tokens)]) as server:
        panpan.use(server)
        with running(panpan) as program:
            program.say("go")
            first = program.result()
            program.say("again")
            second = program.result()
            program.end()

    assert second["total_cost_usd"] == pytest.approx(2 * first["total_cost_usd"])
    assert first["usage"]["input_tokens"] == second["usage"]["input_tokens"] == 1_000
    assert [one["inputTokens"] for one in second["modelUsage"].values()] == [2_000]


def test_turns_of_a_program_are_longer_than_unattended_ones(panpan: Panpan) -> None:
    rounds = [call("LS", {"path": "." if number % 2 else "sub"}) for number in range(55)]
    (panpan.workspace / "sub").mkdir()
    with serving([*rounds, say("done"), *rounds]) as server:
        panpan.use(server)
        with running(panpan) as program:
            program.say("go")
            assert program.result()["num_turns"] == 56
            program.end()
        del panpan.env["CLAUDE_AGENT_SDK_VERSION"]
        plain = panpan.run(*STREAM, stdin=message("go"))

    assert plain.result["subtype"] == "error_max_turns"
    assert plain.result["num_turns"] == 50
