"""Plan mode in a pipe: panpan explores, changes nothing, and the plan is the result in every format."""

import pytest

from tests.e2e.conftest import Panpan
from tests.model_server import RecordedRequest, Reply, ToolCall, calls, say, serving

PLAN = "# Plan\n\n1. Let `parse` take a list of paths.\n2. Run the tests."
LOOK = ToolCall("Read", {"file_path": "a.py"})
CHANGE = ToolCall("Write", {"file_path": "a.py", "content": "changed\n"})
LEAVE = ToolCall("ExitPlanMode", {"plan": PLAN})
WAYS = ("-p", "how would you do it?", "--permission-mode", "plan")


@pytest.fixture(autouse=True)
def _workspace(panpan: Panpan) -> None:
    (panpan.workspace / "a.py").write_text("first\n")


@pytest.mark.parametrize("output_format", ["text", "json", "stream-json"])
def test_plan_is_the_result_in_every_format(panpan: Panpan, output_format: str) -> None:
    with serving([calls(LOOK, CHANGE, text="Let me see."), calls(LEAVE), say("never asked for")]) as server:
        panpan.use(server)
        done = panpan.run(*WAYS, "-f", output_format, "--yes", "--allowedTools", "Write")

    assert done.code == 0
    assert len(server.requests) == 2
    assert (panpan.workspace / "a.py").read_text() == "first\n"
    (plan,) = (panpan.home / "plans").iterdir()
    assert plan.read_text() == f"{PLAN}\n"
    if output_format == "text":
        assert done.stdout == f"Let me see.\n{PLAN}\n"
    else:
        assert (done.result["subtype"], done.result["is_error"], done.result["result"]) == ("success", False, PLAN)
    if output_format == "stream-json":
        assert done.lines[0]["permissionMode"] == "plan"
        assert "ExitPlanMode" in done.lines[0]["tools"]
        displays = [line["tool_use_result"] for line in done.lines if "tool_use_result" in line]
        assert [(each["text"], each["is_result"]) for each in displays if each["type"] == "plan"] == [(PLAN, True)]


def test_plan_mode_reminder_is_not_in_the_system_prompt(panpan: Panpan) -> None:
    with serving([calls(LOOK), calls(LEAVE)]) as server:
        panpan.use(server)
        panpan.run(*WAYS)

    first, second = server.requests
    assert "Plan mode is on" not in str(first.body["system"])
    assert str(first.messages[-1]).count("Plan mode is on") == 1
    assert str(second.messages).count("Plan mode is on") == 1


def test_plan_may_be_left_out_of_the_call_if_it_is_in_its_file(panpan: Panpan) -> None:
    def script(request: RecordedRequest) -> Reply:
        match len(request.messages) // 2:
            case 0:
                (path,) = (panpan.home / "plans").iterdir()
                return calls(ToolCall("Write", {"file_path": str(path), "content": PLAN}))
            case 1:
                return calls(ToolCall("ExitPlanMode", {}))
            case _:
                return say("Too far.")

    with serving(script) as server:
        panpan.use(server)
        done = panpan.run(*WAYS, "-f", "json")

    assert (done.result["result"], done.result["permission_denials"], len(server.requests)) == (PLAN, [], 2)


def test_plan_mode_answers_a_question_without_a_plan(panpan: Panpan) -> None:
    with serving([calls(LOOK), say("It says first.")]) as server:
        panpan.use(server)
        done = panpan.run(*WAYS)

    assert (done.stdout, done.code) == ("It says first.\n", 0)


def test_plan_tools_are_not_offered_in_a_pipe(panpan: Panpan) -> None:
    with serving([say("Hello.")]) as server:
        panpan.use(server)
        panpan.run("-p", "hi")

    assert not {"EnterPlanMode", "ExitPlanMode"} & {tool["name"] for tool in server.requests[0].body["tools"]}


def test_plan_mode_is_kept_by_a_resume_until_the_user_ends_it(panpan: Panpan) -> None:
    with serving([calls(LEAVE), calls(CHANGE), say("No."), calls(CHANGE), say("Done.")]) as server:
        panpan.use(server)
        panpan.run(*WAYS)
        panpan.run("-c", "-p", "do it", "--yes")
        before = (panpan.workspace / "a.py").read_text()
        panpan.run("-c", "-p", "do it", "--permission-mode", "bypassPermissions")

    assert before == "first\n"
    assert "Plan mode is off" in str(server.requests[-2].messages)
