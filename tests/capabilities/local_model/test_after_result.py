"""A fault of the small model that is mended: it takes the result of a call for the end."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.capabilities.local_model.call_repair import follow_up_reply
from panpan.core.tool import ToolContext
from panpan.core.tool_call import prepare_call
from panpan.errors import ToolError
from panpan.types.content import TextBlock, ToolResultBlock, ToolUseBlock
from panpan.types.events import Output
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage, UserMessage
from tests.fakes.context import context_in
from tests.fakes.every_tool import every_tool

TOOLS = {tool.name: tool for tool in every_tool()}
RENAME = {"old_name": "fetch", "new_name": "load", "file_paths": ["a.py", "b.py"]}


def call(name: str, use_id: str = "c1", **arguments: Any) -> AssistantMessage:
    use = ToolUseBlock(id=use_id, name=name, input=arguments)
    return AssistantMessage(content=(use,), model="m", stop_reason="tool_use")


def result(text: str, use_id: str = "c1", is_error: bool = True) -> ToolResultMessage:
    block = ToolResultBlock(tool_use_id=use_id, content=(TextBlock(text=text),), is_error=is_error)
    return ToolResultMessage(result=block)


async def refused(message: AssistantMessage, workspace: Path, context: ToolContext | None = None) -> ToolResultMessage:
    """Return the tool's real answer to a call that it refuses."""
    context = context or context_in(workspace)
    (use,) = message.tool_uses
    tool = TOOLS[use.name]
    with pytest.raises(ToolError) as refusal:
        async with aclosing(tool.run(tool.input_model.model_validate(use.input), context)) as outputs:
            async for _ in outputs:
                pass
    return result(str(refusal.value), use.id)


def next_call(messages: Sequence[Message]) -> ToolUseBlock | None:
    events = follow_up_reply(messages, "local")
    if not events:
        return None
    last = events[-1]
    assert isinstance(last, AssistantMessage)
    (use,) = last.tool_uses
    assert prepare_call(use, TOOLS).problem == ""
    return use


@pytest.mark.parametrize(
    ("path", "command"),
    [("docs", "ls docs"), ("my docs", "ls 'my docs'"), ("-l", "ls ./-l"), ("a;b", "ls 'a;b'")],
)
async def test_folder_read_as_a_file_is_listed(path: str, command: str, tmp_path: Path) -> None:
    (tmp_path / path).mkdir()
    read = call("Read", file_path=path)

    use = next_call([UserMessage.of("what is in it?"), read, await refused(read, tmp_path)])

    assert use is not None
    assert (use.name, use.input) == ("Bash", {"command": command})


@pytest.mark.parametrize("paths", [["docs"], ["docs/"], ["a.py", "docs"]])
async def test_folder_renamed_in_as_a_file_is_listed(paths: list[str], tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "a.py").write_text("docs = 1\n")
    rename = call("Rename", old_name="docs", new_name="texts", file_paths=paths)

    use = next_call([UserMessage.of("name the files in docs/"), rename, await refused(rename, tmp_path)])

    assert use is not None
    assert (use.name, use.input) == ("Bash", {"command": f"ls {paths[-1]}"})


@pytest.mark.parametrize(
    ("path", "content"), [("a.txt", "plums\n"), ("my list.txt", "it's $HOME"), ("a.txt", "  x\ny\n"), ("-n", "-n\n")]
)
async def test_line_written_as_the_whole_file_is_appended(path: str, content: str, tmp_path: Path) -> None:
    (tmp_path / path).write_text("pears\n")
    write = call("Write", file_path=path, content=content)

    words = UserMessage.of(f"one more entry for the list: {content}")
    use = next_call([words, write, await refused(write, tmp_path)])

    assert use is not None
    assert use.name == "Bash"
    await anyio.run_process(["bash", "-c", str(use.input["command"])], cwd=tmp_path)
    assert (tmp_path / path).read_text() == "pears\n" + content.strip("\n") + "\n"


@pytest.mark.parametrize(
    ("words", "content"),
    [
        ("write plums into a.txt", "plums"),
        ("add plums at the top of a.txt", "plums"),
        ("add plums below the first line", "plums"),
        ("add a line", " \n"),
        ("add a greeting to a.txt", "hello"),
    ],
)
async def test_line_is_not_appended_if_its_place_is_unclear(words: str, content: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("pears\n")
    write = call("Write", file_path="a.txt", content=content)

    assert next_call([UserMessage.of(words), write, await refused(write, tmp_path)]) is None


async def an_ambiguous_edit(workspace: Path) -> list[Message]:
    (workspace / "a.txt").write_text("tea, tea\n")
    context = context_in(workspace)
    read = TOOLS["Read"]
    async with aclosing(read.run(read.input_model.model_validate({"file_path": "a.txt"}), context)) as outputs:
        async for _ in outputs:
            pass
    edit = call("Edit", file_path="a.txt", old_string="tea", new_string="coffee")
    return [edit, await refused(edit, workspace, context)]


@pytest.mark.parametrize("words", ["replace every tea by coffee", "coffee everywhere, please", "ALL tea to coffee"])
async def test_ambiguous_edit_becomes_all_places_if_the_user_said_all(words: str, tmp_path: Path) -> None:
    use = next_call([UserMessage.of(words), *await an_ambiguous_edit(tmp_path)])

    assert use is not None
    assert (use.name, use.input["old_string"], use.input["replace_all"]) == ("Edit", "tea", True)


@pytest.mark.parametrize("words", ["replace tea by coffee", "the second tea is wrong: coffee", "call it coffee"])
async def test_ambiguous_edit_is_left_to_the_model_otherwise(words: str, tmp_path: Path) -> None:
    assert next_call([UserMessage.of(words), *await an_ambiguous_edit(tmp_path)]) is None


async def test_next_call_has_a_new_id(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    read = call("Read", file_path="docs")
    before = [call("Bash", use_id="after_result", command="ls docs"), result("a.md", "after_result", is_error=False)]

    use = next_call([*before, read, await refused(read, tmp_path)])

    assert use is not None
    assert use.id not in {"after_result", "c1"}


async def test_next_call_needs_such_a_refusal_as_the_newest_message(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    read = call("Read", file_path="docs")
    refusal = await refused(read, tmp_path)

    assert next_call([]) is None
    assert next_call([read, result(refusal.text, is_error=False)]) is None, "a file that says so"
    assert next_call([read, result("docs does not exist")]) is None
    assert next_call([call("Bash", command="cat docs"), refusal]) is None
    assert next_call([read, refusal, UserMessage.of("never mind")]) is None
    assert next_call([refusal]) is None, "its call was left out"


def write_renamed_the_other_way(workspace: Path) -> None:
    (workspace / "a.py").write_text("def load():\n    pass\n")
    (workspace / "b.py").write_text("from a import load\n")


async def test_swapped_names_of_a_rename_are_exchanged(tmp_path: Path) -> None:
    write_renamed_the_other_way(tmp_path)
    rename = call("Rename", **RENAME)

    use = next_call([UserMessage.of("say fetch, not load (a.py, b.py)"), rename, await refused(rename, tmp_path)])

    assert use is not None
    assert (use.name, use.input) == ("Rename", {**RENAME, "old_name": "load", "new_name": "fetch"})


@pytest.mark.parametrize("words", ["rename fetch to load", "fetch -> load", "turn `fetch` into `load`"])
async def test_next_call_never_contradicts_the_user(words: str, tmp_path: Path) -> None:
    write_renamed_the_other_way(tmp_path)
    rename = call("Rename", **RENAME)

    assert next_call([UserMessage.of(words), rename, await refused(rename, tmp_path)]) is None


async def test_repeated_rename_is_not_reversed(tmp_path: Path) -> None:
    write_renamed_the_other_way(tmp_path)
    first, again = call("Rename", **RENAME), call("Rename", use_id="c2", **RENAME)
    done = result("renamed fetch to load", is_error=False)

    messages = [UserMessage.of("say load, not fetch"), first, done, again, await refused(again, tmp_path)]

    assert next_call(messages) is None


async def test_name_in_no_file_is_left_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("pass\n")
    (tmp_path / "b.py").write_text("pass\n")
    rename = call("Rename", **RENAME)

    assert next_call([UserMessage.of("say fetch"), rename, await refused(rename, tmp_path)]) is None


async def renamed_in_one(workspace: Path) -> list[Message]:
    """A rename that was made in a.py, with what the tool really says of the files that have the old name still."""
    for name in ("a.py", "b.py", "lib/c.py"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_text("fetch()\n")
    rename = call("Rename", **{**RENAME, "file_paths": ["a.py"]})
    tool = TOOLS["Rename"]
    args = tool.input_model.model_validate(rename.tool_uses[0].input)
    async with aclosing(tool.run(args, context_in(workspace))) as outputs:
        said = [output.text async for output in outputs if isinstance(output, Output)]
    return [rename, result("".join(said), is_error=False)]


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        ("a.py defines fetch; rename it to load and update b.py.", ["b.py"]),
        ("load for fetch (a.py, b.py, lib/c.py)", ["b.py", "lib/c.py"]),
        ("rename fetch in a.py and `lib/c.py`", ["lib/c.py"]),
        ("rename fetch to load in all files", ["b.py", "lib/c.py"]),
        ("fetch shall be called load everywhere", ["b.py", "lib/c.py"]),
    ],
)
async def test_rename_goes_on_in_the_files_the_user_named(words: str, rest: list[str], tmp_path: Path) -> None:
    use = next_call([UserMessage.of(words), *await renamed_in_one(tmp_path)])

    assert use is not None
    assert (use.name, use.input) == ("Rename", {**RENAME, "file_paths": rest})


@pytest.mark.parametrize(
    ("told", "there"),
    [
        (["shape.py"], ["shapes.py"]),
        (["shape.py", "shapes.py"], ["shapes.py"]),
        (["shape.py", "x", "y"], ["shapes.py"]),
    ],
)
async def test_rename_in_invented_files_moves_to_existing_ones(
    told: list[str], there: list[str], tmp_path: Path
) -> None:
    (tmp_path / "shapes.py").write_text("def fetch(): ...\n")
    tried = call("Rename", **{**RENAME, "file_paths": told})
    refusal = await refused(tried, tmp_path)

    use = next_call([UserMessage.of("rename fetch to load in all files"), tried, refusal])

    assert use is not None
    assert (use.name, use.input) == ("Rename", {**RENAME, "file_paths": there})
    assert next_call([UserMessage.of(f"rename fetch to load in {told[0]}"), tried, refusal]) is None


async def test_rename_in_only_invented_files_is_left_to_the_model(tmp_path: Path) -> None:
    tried = call("Rename", **{**RENAME, "file_paths": ["x"]})

    assert next_call([UserMessage.of("rename fetch to load"), tried, await refused(tried, tmp_path)]) is None


@pytest.mark.parametrize(
    "words", ["rename fetch to load in a.py", "in a.py, but not in b.py", "leave b.py as it is", "see b.pyc and c.py"]
)
async def test_rename_stays_away_from_other_files(words: str, tmp_path: Path) -> None:
    assert next_call([UserMessage.of(words), *await renamed_in_one(tmp_path)]) is None
