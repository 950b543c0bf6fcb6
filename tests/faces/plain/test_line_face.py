"""The face that only prints lines: the checklist stands below its call, and nothing in the answer to a question."""

from panpan.faces.plain.line_face import LineFace
from panpan.faces.turn_text import WaitingTime
from panpan.types.content import ChecklistDisplay, ChecklistItem, TextBlock, ToolResultBlock
from panpan.types.events import ToolStarted
from panpan.types.messages import ToolResultMessage
from tests.faces.memory import Memory
from tests.fakes.scripted_llm import call
from tests.fakes.subagents import looks, of_agent


async def test_a_todo_list_is_printed_as_soon_as_it_is_kept() -> None:
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


async def test_what_subagents_do_while_a_question_waits_is_printed_after_it() -> None:
    out, waiting = Memory(), WaitingTime(lambda: 0.0)
    face = LineFace(out, has_colour=False, waiting=waiting)
    await face.show(ToolStarted("t1", "Task", "explore: it", starts_agent=True))
    begun = out.text

    with waiting.counted():
        for event in of_agent(*looks("1", "loss")):
            await face.show(event)
        during = out.text
    for event in of_agent(*looks("2", "model")):
        await face.show(event)
    with waiting.counted():
        for event in of_agent(*looks("3", "data")):
            await face.show(event)
    await face.end()

    assert during == begun
    places = [out.text.find(pattern) for pattern in ("loss", "model", "data")]
    assert -1 not in places
    assert places == sorted(places)
