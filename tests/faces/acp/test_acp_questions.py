"""Questions of the model and plans, with forms and without."""

from pathlib import Path
from typing import Any

import pytest

from tests.capabilities.mcp.place import Place, Use
from tests.faces.acp.editor import FORMS, chooses, editing, silent

ASK: Use = (
    "AskUserQuestion",
    {
        "questions": [
            {
                "header": "Colour",
                "question": "Which colour?",
                "options": [{"label": "Red", "description": "like blood"}, {"label": "Blue", "description": ""}],
                "multiSelect": False,
            }
        ]
    },
)
PLAN_TEXT = "# The plan\n\nRead the file, change the line, and run the tests once more."
PLAN: Use = ("ExitPlanMode", {"plan": PLAN_TEXT})
WRITE: Use = ("Write", {"file_path": "new.txt", "content": "hello\n"})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def result_of(editor: Any) -> str:
    """Return the text of the first call's result."""
    ended = [one for one in editor.updates("tool_call_update") if one.get("status") in ("completed", "failed")]
    return "".join(one["content"]["text"] for call in ended for one in call.get("content", ()) if "content" in one)


async def test_question_is_a_form_where_the_editor_has_them(place: Place) -> None:
    def answer(method: str, params: dict[str, Any]) -> Any:
        return {"action": "accept", "content": {"q1": "Blue"}}

    async with editing(place, ASK, "blue it is", answer=answer, client=FORMS) as editor:
        await editor.prompt(await editor.new(place.root))

    (form,) = editor.asked("elicitation/create")
    assert form["requestedSchema"]["properties"]["q1"]["enum"] == ["Red", "Blue"]
    assert "Blue" in result_of(editor)


@pytest.mark.parametrize("answer", [{"action": "decline"}, {"action": "cancel"}, {}, "no", {"action": "accept"}])
async def test_form_without_an_answer_is_a_refusal(place: Place, answer: Any) -> None:
    async with editing(place, ASK, "then not", answer=lambda *_: answer, client=FORMS) as editor:
        assert await editor.prompt(await editor.new(place.root)) == "end_turn"

    assert editor.text() == "then not"


async def test_question_is_a_choice_without_forms(place: Place) -> None:
    async with editing(place, ASK, "red it is", answer=chooses("0")) as editor:
        await editor.prompt(await editor.new(place.root))

    (asked,) = editor.asked()
    assert asked["toolCall"]["title"] == "Which colour?"
    assert [one["name"] for one in asked["options"]] == ["Red", "Blue", "No answer"]
    assert "Red" in result_of(editor)


async def test_approved_plan_changes_the_mode_and_is_told(place: Place) -> None:
    async with editing(place, PLAN, WRITE, "done", answer=chooses("acceptEdits"), permission__mode="plan") as editor:
        session = await editor.new(place.root)
        assert await editor.prompt(session) == "end_turn"

    (asked,) = editor.asked()
    assert asked["toolCall"]["kind"] == "switch_mode"
    assert asked["toolCall"]["content"][0]["content"]["text"] == PLAN_TEXT
    assert editor.updates("current_mode_update")[-1]["currentModeId"] == "acceptEdits"
    assert (place.root / "new.txt").exists()


async def test_rejected_plan_leaves_plan_mode_on(place: Place) -> None:
    async with editing(place, PLAN, "planning on", answer=chooses("no"), permission__mode="plan") as editor:
        session = await editor.new(place.root)
        assert await editor.prompt(session) == "end_turn"

    assert editor.updates("current_mode_update") == []


async def test_call_that_is_too_long_to_judge_is_refused(place: Place) -> None:
    long: Use = ("Bash", {"command": f"echo {'x' * 99_900}", "description": "Much"})
    async with editing(place, long, "then not", answer=silent) as editor:
        assert await editor.prompt(await editor.new(place.root)) == "end_turn"

    assert editor.asked() == []
    assert editor.updates("tool_call_update")[-1]["status"] == "failed"


async def test_command_is_shown_exactly(place: Place) -> None:
    command = "echo one && echo '```' && printf '\\u202e'  # \u202e"
    use: Use = ("Bash", {"command": command, "description": "Look harmless"})
    async with editing(place, use, "done", answer=chooses("n")) as editor:
        await editor.prompt(await editor.new(place.root))

    (asked,) = editor.asked()
    shown = asked["toolCall"]["content"][-1]["content"]["text"]
    assert asked["toolCall"]["rawInput"]["command"] == command
    assert "\u202e" not in shown + asked["toolCall"]["title"]
    assert "<U+202E>" in shown
    assert shown.startswith("````\n")
    assert shown.endswith("\n````")
