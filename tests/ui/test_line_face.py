"""The face that only prints lines: the checklist stands below the call that wrote it."""

from panpan.types.content import TextBlock, ToolResultBlock
from panpan.types.display import TodoDisplay
from panpan.types.events import ToolStarted
from panpan.types.messages import ToolResultMessage
from panpan.types.todo import Todo
from panpan.ui.line_face import LineFace
from tests.fakes.scripted_llm import call
from tests.ui.memory import Memory


async def test_a_todo_list_is_printed_as_soon_as_it_is_kept() -> None:
    out = Memory()
    face = LineFace(out, has_colour=False)
    todos = (
        Todo(id="1", content="Read", active_form="Reading", status="completed"),
        Todo(id="2", content="Run \x1b[2J", active_form="Running \x1b[2J", status="in_progress"),
    )
    block = ToolResultBlock(tool_use_id="1", content=(TextBlock(text="The list is kept: 1 of 2 done."),))

    await face.show(call(("1", "TodoWrite", {"todos": []})))
    await face.show(ToolStarted("1", "TodoWrite", "Running"))
    await face.show(ToolResultMessage(result=block, display=TodoDisplay(todos=todos)))

    assert out.text == "● TodoWrite Running\n  └ 1 of 2 done\n    ☑ Read\n    ◐ Running\n"
