"""Hooks that a model judges, in the real program: its yes, its no, and when it has no verdict."""

import json

import pytest

from tests.e2e.conftest import Panpan
from tests.e2e.test_user_hooks import results, run, write_hooks
from tests.model_server import call, say

TOUCH = call("Bash", {"command": "touch made"})
YES, NO = '{"ok": true}', 'I think:\n{"ok": false, "reason": "it makes a file"}'


def judge(**keys: object) -> dict[str, object]:
    return {"type": "prompt", "prompt": "May this run? $ARGUMENTS", **keys}


@pytest.mark.parametrize("event", ["PreToolUse", "PermissionRequest"])
def test_model_judges_a_call(panpan: Panpan, event: str) -> None:
    write_hooks(panpan, **{event: [judge()]})
    args = ("-y", "-p", "go") if event == "PreToolUse" else ("-p", "go")

    done, requests = run(panpan, TOUCH, say(NO), say("Done."), args=args)

    asked, told = json.dumps(requests[1].body["messages"]), results(requests[2])
    assert "May this run?" in asked
    assert "touch made" in asked
    assert "tools" not in requests[1].body
    assert "it makes a file" in told
    assert not (panpan.workspace / "made").exists()
    assert "Done." in done.stdout


def test_yes_of_a_model_lets_a_call_run_but_allows_nothing(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[judge()])

    run(panpan, TOUCH, say(YES), say("Done."))
    assert (panpan.workspace / "made").exists()
    (panpan.workspace / "made").unlink()

    _, requests = run(panpan, TOUCH, say(YES), say("Done."), args=("-p", "go"))
    assert "Bash was not run" in results(requests[2])
    assert not (panpan.workspace / "made").exists()


def test_model_without_a_verdict_is_a_failure(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[judge()])
    done, _ = run(panpan, TOUCH, say("Sure, go on."), say("Done."))
    assert "the model gave no verdict: Sure, go on." in done.stderr
    assert (panpan.workspace / "made").exists()
    (panpan.workspace / "made").unlink()

    write_hooks(panpan, PreToolUse=[judge(guard=True)])
    _, requests = run(panpan, TOUCH, say("Sure, go on."), say("Done."))
    assert "it is a guard, and it failed" in results(requests[2])
    assert not (panpan.workspace / "made").exists()


def test_model_elsewhere_is_not_asked(panpan: Panpan) -> None:
    panpan.env |= {"OPENAI_API_KEY": "sk-test-0123456789"}
    write_hooks(panpan, PreToolUse=[judge(model="openai/gpt-test", guard=True)])

    _, requests = run(panpan, TOUCH, say("Done."))

    assert "gpt-test is at openai, and only a model at anthropic may be" in results(requests[1])
    assert not (panpan.workspace / "made").exists()


def test_model_may_send_the_model_back_to_work(panpan: Panpan) -> None:
    write_hooks(panpan, Stop=[judge(prompt="Is all of it done?")])

    done, requests = run(panpan, say("Half."), say('{"ok": false, "reason": "the tests are missing"}'), say("All."),
                         say(YES))  # fmt: skip

    assert "the tests are missing" in results(requests[2])
    assert done.stdout.endswith("All.\n")


def test_verdict_costs_money_of_the_session(panpan: Panpan) -> None:
    write_hooks(panpan, Stop=[judge()])

    done, _ = run(panpan, say("Done."), say(YES), args=("-p", "go", "-f", "json"))
    (panpan.home / "hooks.json").unlink()
    alone, _ = run(panpan, say("Done."), args=("-p", "go", "-f", "json"))

    assert done.result["total_cost_usd"] > alone.result["total_cost_usd"] > 0


def test_subagent_judges_with_tools_of_its_own(panpan: Panpan) -> None:
    (panpan.workspace / "rules.txt").write_text("No files.")
    write_hooks(panpan, PreToolUse=[{"matcher": "Bash", "hooks": [{"type": "agent", "prompt": "See rules.txt."}]}])

    _, requests = run(panpan, TOUCH, call("Read", {"file_path": "rules.txt"}), say(NO), say("Done."))

    assert "See rules.txt." in json.dumps(requests[1].body["messages"])
    assert "No files." in results(requests[2])
    assert "it makes a file" in results(requests[3])
    assert not (panpan.workspace / "made").exists()


def test_subagent_that_judges_is_judged_by_no_other(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[{"type": "agent", "prompt": "May it?", "guard": True}])

    _, requests = run(panpan, TOUCH, call("Bash", {"command": "ls"}), say(YES), say("Done."))

    assert len(requests) == 4
    assert (panpan.workspace / "made").exists()


def test_subagent_judges_a_message(panpan: Panpan) -> None:
    write_hooks(panpan, UserPromptSubmit=[{"type": "agent", "prompt": "May it be sent?"}])

    done, requests = run(panpan, say('{"ok": false, "reason": "not today"}'))

    assert len(requests) == 1
    assert "not today" in done.stderr
    assert done.code != 0


@pytest.mark.parametrize(
    "said",
    [
        '{"ok": false, "reason": "it makes a file", "checked": {"ok": true}}',
        '{"ok": false, "reason": "it makes a file"} {"ok": true}',
        '{"ok": false, "ok": true, "reason": "it makes a file"}',
        'It is {"ok": false, "reason": "it makes a file"}, and the command also holds {"ok": true}, which I ignored.',
        '```json\n{"ok": false, "reason": "it makes a file"}\n```',
    ],
)
def test_no_of_a_model_is_a_no_whatever_stands_beside_it(panpan: Panpan, said: str) -> None:
    write_hooks(panpan, PreToolUse=[judge()])

    _, requests = run(panpan, TOUCH, say(said), say("Done."))

    assert "it makes a file" in results(requests[2])
    assert not (panpan.workspace / "made").exists()


@pytest.mark.parametrize("said", ['{"ok": "yes"}', '[{"ok": 1}]', '{"reason": "fine"}', "{" * 10_000, ""])
def test_odd_verdict_is_none(panpan: Panpan, said: str) -> None:
    write_hooks(panpan, PreToolUse=[judge(guard=True)])

    _, requests = run(panpan, TOUCH, say(said), say("Done."))

    assert "it is a guard, and it failed" in results(requests[2])


def test_call_too_long_to_judge_is_not_judged(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[judge(guard=True)])
    long = call("Bash", {"description": "a" * 110_000, "command": "touch made"})

    _, requests = run(panpan, long, say("Done."))

    assert "too much to judge" in results(requests[1])
    assert not (panpan.workspace / "made").exists()


def test_subagent_judges_in_subagents_and_without_the_tool(panpan: Panpan) -> None:
    write_hooks(panpan, PreToolUse=[{"matcher": "Bash", "hooks": [{"type": "agent", "prompt": "May it?"}]}])
    task = call("Task", {"subagent_type": "general-purpose", "description": "d", "prompt": "p"})

    _, requests = run(panpan, task, TOUCH, say(NO), say("Refused."), say("Done."))
    assert "it makes a file" in results(requests[3])
    assert not (panpan.workspace / "made").exists()

    args = ("-y", "-p", "go", "--disallowedTools", "Task")
    _, requests = run(panpan, TOUCH, say(NO), say("Done."), args=args)
    assert "it makes a file" in results(requests[2])
    assert not (panpan.workspace / "made").exists()


def test_file_of_the_project_is_no_judge(panpan: Panpan) -> None:
    (panpan.workspace / "agents").mkdir()
    (panpan.workspace / "agents" / "explore.md").write_text("---\nname: explore\ndescription: d\n---\nEVIL")
    write_hooks(panpan, PreToolUse=[{"type": "agent", "prompt": "May it?"}])

    _, requests = run(panpan, TOUCH, say(NO), say("Done."), args=("-y", "-p", "go", "--trust"))

    assert "EVIL" not in json.dumps(requests[1].body["system"])
