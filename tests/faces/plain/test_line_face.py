"""The face that only prints lines."""

from panpan.faces.plain.line_face import LineFace
from panpan.types.content import ChecklistDisplay, ChecklistItem, TextBlock, ToolResultBlock
from panpan.types.events import CommandRan, ToolStarted, TurnEnded, Verification
from panpan.types.messages import ToolResultMessage, Usage
from tests.faces.memory import Memory
from tests.fakes.scripted_llm import call


async def test_todo_list_is_printed_with_its_result() -> None:
    out = Memory()
    face = LineFace(out, has_colour=False)
    todos = (
        ChecklistItem(id="1", content="Read", active_form="Reading", status="completed"),
        ChecklistItem(id="2", content="Run \x1b[2J", active_form="Running \x1b[2J", status="in_progress"),
    )
    block = ToolResultBlock(tool_use_id="1", content=(TextBlock(text="The list is kept: 1 of 2 done."),))

    await face.show(call(("1", "TodoWrite", {"todos": []})))
    await face.show(ToolStarted("1", "TodoWrite", "Running"))
    await face.show(ToolResultMessage(result=block, display=ChecklistDisplay(todos=todos)))

    assert out.text == "● TodoWrite Running\n  └ 1 of 2 done\n    ☑ Read\n    ◐ Running\n"


async def test_output_of_a_command_is_printed() -> None:
    out = Memory()
    await LineFace(out, has_colour=False).show(CommandRan("/hello", "hello there"))

    assert out.text == "hello there\n"


async def test_evidence_for_the_answer_is_printed_before_the_figures() -> None:
    out = Memory()
    found = Verification(failed=["1 of 2 tests"], unverified=["All tests\x07 pass"])
    await LineFace(out, has_colour=False).show(TurnEnded(1, Usage(), None, 1.0, 0.0, verification=found))

    assert out.text == 'failed: 1 of 2 tests · unverified: "All tests pass"\n1.0 s · 1 round\n'
