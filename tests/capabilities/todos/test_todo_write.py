"""TodoWrite: what it takes, what it refuses, and that it is never in anybody's way."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from panpan.capabilities.todos.todo_write import MAX_CHARS, MAX_TODOS, TodoWriteTool
from panpan.core.conversation import Conversation
from panpan.core.hooks import ToolCall
from panpan.core.leases import EVERYTHING
from panpan.core.tool_call import find_file_use, prepare_call
from panpan.errors import ToolError
from panpan.permissions.gate import PermissionGate
from panpan.types.content import ChecklistDisplay, ChecklistItem, ToolUseBlock
from panpan.types.events import Output
from panpan.types.permission import Allow, PermissionMode
from tests.fakes.context import context_in


class Store:
    """Implements `TodoStore`, and keeps what it was given."""

    def __init__(self) -> None:
        self.lists: list[Sequence[ChecklistItem]] = []

    async def replace(self, wanted: Sequence[ChecklistItem]) -> Sequence[ChecklistItem]:
        self.lists.append(wanted)
        return [draft.model_copy(update={"id": str(number)}) for number, draft in enumerate(wanted, 1)]


def item(content: str, status: str = "pending", **more: Any) -> dict[str, Any]:
    return {"content": content, "status": status, **more}


async def written(root: Path, store: Store, *todos: dict[str, Any]) -> Output:
    tool = TodoWriteTool(store)
    args = tool.input_model.model_validate({"todos": list(todos)})
    (output,) = [part async for part in tool.run(args, context_in(root))]
    assert isinstance(output, Output)
    return output


async def test_todo_write_keeps_shows_and_counts_the_list(tmp_path: Path) -> None:
    store = Store()

    output = await written(
        tmp_path,
        store,
        item("Read the code", "completed", activeForm="Reading the code"),
        item("Run  the\ntests", "in_progress", activeForm="Running the tests"),
        item("Write it down"),
    )

    assert store.lists == [
        [
            ChecklistItem(content="Read the code", active_form="Reading the code", status="completed"),
            ChecklistItem(content="Run the tests", active_form="Running the tests", status="in_progress"),
            ChecklistItem(content="Write it down", active_form="Write it down"),
        ]
    ]
    assert output.text == "The list is kept: 1 of 3 done."
    assert isinstance(output.display, ChecklistDisplay)
    assert [todo.id for todo in output.display.todos] == ["1", "2", "3"]


async def test_todo_write_refuses_two_in_progress_by_name(tmp_path: Path) -> None:
    store = Store()

    with pytest.raises(ToolError, match=r"2 todos are in_progress.*Read; Write.*the list is as it was"):
        await written(tmp_path, store, item("Read", "in_progress"), item("Write", "in_progress"), item("Rest"))

    assert store.lists == []


@pytest.mark.parametrize(
    "todos",
    [
        [item("x")] * (MAX_TODOS + 1),
        [item("x" * (MAX_CHARS + 1))],
        [item("x", activeForm="y" * (MAX_CHARS + 1))],
        [item(" \n ")],
        [item("x", "done")],
        [item("x", priority="high")],
    ],
    ids=["too many", "too long", "too long while done", "nothing", "unknown status", "unknown key"],
)
def test_todo_write_refuses_lists_out_of_bounds(todos: list[dict[str, Any]]) -> None:
    with pytest.raises(ValidationError):
        TodoWriteTool(Store()).input_model.model_validate({"todos": todos})


async def test_todo_write_clears_with_an_empty_list(tmp_path: Path) -> None:
    store = Store()

    output = await written(tmp_path, store)

    assert (store.lists, output.text) == ([[]], "The list is kept: nothing to do.")


@pytest.mark.parametrize("mode", ["default", "plan", "dontAsk"])
async def test_todo_write_runs_unasked_in_every_mode(mode: PermissionMode, tmp_path: Path) -> None:

    tool = TodoWriteTool(Store())
    call = await ToolCall.of("1", tool, tool.input_model(todos=()), {"todos": []}, context_in(tmp_path))

    assert isinstance(await PermissionGate(mode=mode).before_tool(call), Allow)


async def test_todo_write_runs_alone_so_the_later_list_counts(tmp_path: Path) -> None:
    call = prepare_call(
        ToolUseBlock(id="1", name="TodoWrite", input={"todos": []}), {"TodoWrite": TodoWriteTool(Store())}
    )

    use = await find_file_use(call, context_in(tmp_path), may_move=False, is_beside_changes=True)

    assert use == EVERYTHING


async def test_todo_write_needs_no_snapshot_and_no_note(tmp_path: Path) -> None:
    tool = TodoWriteTool(Store())

    told = await tool.effects(tool.input_model(todos=()), context_in(tmp_path))

    assert told.is_read_only


def test_todo_write_title_is_the_todo_in_progress() -> None:
    tool = TodoWriteTool(Store())
    model = tool.input_model.model_validate

    assert tool.title(model({"todos": [item("Run", "in_progress", activeForm="Running")]})) == "Running"
    assert tool.title(model({"todos": [item("Run", "completed"), item("Rest")]})) == "1 of 2 done"


def test_todo_write_is_described_to_the_model() -> None:
    definition = TodoWriteTool(Store()).definition

    assert Conversation(tools=[definition]).request().tools[0].name == "TodoWrite"
    assert definition.input_schema["properties"]["todos"]["maxItems"] == MAX_TODOS
