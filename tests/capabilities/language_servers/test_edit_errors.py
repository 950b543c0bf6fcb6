"""The result of an edit brings the errors that it has made, and never waits for long or fails for a server's sake."""

from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from panpan.capabilities.files.edit import EditTool, MultiEditTool
from panpan.capabilities.files.patch import PatchTool
from panpan.capabilities.files.rename import RenameTool
from panpan.capabilities.files.write import WriteTool
from panpan.capabilities.language_servers.code_queries import CodePoint, CodeQueries
from panpan.capabilities.language_servers.edit_errors import EditErrors
from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.capabilities.language_servers.server_process import ServerTimeouts
from panpan.core.hooks import ToolCall
from panpan.types.content import DiffDisplay, Display
from panpan.types.events import Output
from tests.capabilities.guards.hook_fixtures import reply, round_of
from tests.capabilities.language_servers.toy import QUICK, ToyProject, served
from tests.fakes.context import context_in
from tests.system.backends import on_both_backends, run_on, until

TOOLS: dict[str, Any] = {
    tool.name: tool for tool in (EditTool(), MultiEditTool(), PatchTool(), RenameTool(), WriteTool())
}


@pytest.fixture
def project(tmp_path: Path) -> ToyProject:
    return ToyProject(tmp_path.resolve())


class Editor:
    """Makes calls as the executor does, with the hook around them."""

    def __init__(self, project: ToyProject, servers: LanguageServers, *, wait_s: float = 10.0) -> None:
        self.hook = EditErrors(servers, wait_s=wait_s)
        self._context = context_in(project.root)
        for path in project.root.rglob("*.toy"):
            self._context.seen_files.add(path, path.read_bytes())
        self._calls = 0
        self.display: Display | None = None
        """Display of the last call."""

    async def call(self, name: str, *, fails: bool = False, **arguments: Any) -> str:
        """Make a call and return the text of its result."""
        self._calls += 1
        tool = TOOLS[name]
        args = tool.input_model.model_validate(arguments)
        context = replace(self._context, tool_use_id=str(self._calls))
        call = await ToolCall.of(str(self._calls), tool, args, arguments, context)
        await self.hook.before_effect(call)
        output = Output("it failed", is_error=True)
        if not fails:
            async with aclosing(tool.run(args, context)) as outputs:
                async for one in outputs:
                    output = one
        result = await self.hook.after_tool(call, output)
        self.display = result.display
        return result.text

    @property
    def are_looks_done(self) -> bool:
        """True if servers have sent all that they will."""
        return all(late.look.done.is_set() for late in self.hook._late)

    async def replace(self, old: str, new: str, **arguments: Any) -> str:
        """Edit the file `a.toy`."""
        return await self.call("Edit", file_path="a.toy", old_string=old, new_string=new, **arguments)


@pytest.mark.parametrize("faults", [(), ("publishes",)])
@on_both_backends
def test_edit_reports_only_its_new_errors(backend: str, faults: tuple[str, ...], project: ToyProject) -> None:
    project.put("a.toy", "one\nERROR old\ntwo\n")
    results: list[str] = []

    async def main() -> None:
        async with served(project.servers(*faults)) as servers:
            editor = Editor(project, servers)
            results.append(await editor.replace("two", "ERROR new"))
            results.append(await editor.replace("one", "first\nsecond"))

    run_on(backend, main)

    assert results[0].endswith(
        "\nNew errors in a.toy after this change, as the language server toy reports them; fix them:"
        "\n  line 3: wrong 0: ERROR new (toy)"
    )
    assert "errors" not in results[1]


@pytest.mark.parametrize("faults", [(), ("publishes",)])
async def test_edit_of_a_name_does_not_report_old_errors_as_new(faults: tuple[str, ...], project: ToyProject) -> None:
    project.put("a.toy", "one\nERROR foo\nfoo\n")

    async with served(project.servers(*faults)) as servers:
        editor = Editor(project, servers)
        results = [
            await editor.call("Rename", old_name="foo", new_name="bar", file_paths=["a.toy"]),
            await editor.call("Rename", old_name="one", new_name="ERROR", file_paths=["a.toy"]),
        ]
        await until(lambda: editor.are_looks_done)
        late = await editor.hook.before_request(round_of())

    # with the result only if the server still showed the text that the first call left; its look at an older one races
    told = [line for text in (*results, *(one.text for one in late)) for line in text.splitlines() if "  line" in line]
    assert told == ["  line 1: wrong 0: ERROR (toy)"]


async def test_display_has_the_number_of_errors_and_the_first(project: ToyProject) -> None:
    project.put("a.toy", "one\ntwo\n")
    notes = []

    async with served(project.servers()) as servers:
        editor = Editor(project, servers)
        for old, new in (("one", "ERROR a"), ("two", "ERROR b\nERROR c"), ("ERROR c", "fine")):
            await editor.replace(old, new)
            assert isinstance(editor.display, DiffDisplay)
            notes.append(editor.display.notes)

    assert notes == [
        ("a.toy: 1 new error (toy): line 1: wrong 0: ERROR a (toy)",),
        ("a.toy: 2 new errors, the first (toy): line 2: wrong 0: ERROR b (toy)",),
        (),
    ]


async def test_every_changing_tool_reports_errors(project: ToyProject) -> None:
    project.put("a.toy", "one\ntwo\nthree\n")
    patch = (
        "*** Begin Patch\n*** Update File: a.toy\n@@\n-three\n+ERROR p\n*** Add File: b.toy\n+ERROR b\n*** End Patch"
    )

    async with served(project.servers()) as servers:
        editor = Editor(project, servers)
        results = [
            await editor.replace("one", "ERROR e"),
            await editor.call("MultiEdit", file_path="a.toy", edits=[{"old_string": "two", "new_string": "ERROR m"}]),
            await editor.call("Patch", patch=patch),
            await editor.call("Write", file_path="new.toy", content="fine\nERROR w\n"),
        ]

    told = [[line.strip() for line in text.splitlines() if line.startswith("  line")] for text in results]
    assert told == [
        ["line 1: wrong 0: ERROR e (toy)"],
        ["line 2: wrong 0: ERROR m (toy)"],
        ["line 3: wrong 0: ERROR p (toy)", "line 1: wrong 0: ERROR b (toy)"],
        ["line 2: wrong 0: ERROR w (toy)"],
    ]


async def test_reported_errors_are_limited_to_twenty_with_a_count(project: ToyProject) -> None:
    project.put("a.toy", "one\n")

    async with served(project.servers("many")) as servers:
        result = await Editor(project, servers).replace("one", "ERROR")

    lines = result.splitlines()
    assert sum(line.startswith("  line") for line in lines) == 20
    assert lines[-1] == "  ... and 30 more"


async def test_warnings_are_not_reported(project: ToyProject) -> None:
    project.put("a.toy", "one\n")

    async with served(project.servers("warns")) as servers:
        result = await Editor(project, servers).replace("one", "two")

    assert "warning" not in result


async def test_server_texts_are_cleaned_and_bounded(project: ToyProject) -> None:
    project.put("a.toy", "one\n")

    async with served(project.servers("lies")) as servers:
        editor = Editor(project, servers)
        result = await editor.call("Write", file_path="new.toy", content="ERROR\n")

    told = [line for line in result.splitlines() if line.startswith("  line")]
    assert told[0] == "  line 1: wrong 0: ERROR (toy)"
    assert len(told) == 2
    assert len(told[1]) < 400
    assert "\x1b" not in told[1]
    assert "\u202e" not in told[1]


@pytest.mark.parametrize("fault", ["dies", "hangs", "silent", "prints", "huge"])
async def test_edit_succeeds_whatever_a_server_does(project: ToyProject, fault: str) -> None:
    path = project.put("a.toy", "one\n")

    async with served(project.servers(fault)) as servers:
        result = await Editor(project, servers, wait_s=0.05).replace("one", "ERROR")

    assert result.startswith("edited a.toy")
    assert "errors" not in result
    assert path.read_text() == "ERROR\n"


async def test_flood_about_other_files_does_not_hide_errors(project: ToyProject) -> None:
    project.put("a.toy", "one\n")

    async with served(project.servers("floods", "publishes")) as servers:
        editor = Editor(project, servers)
        result = await editor.replace("one", "ERROR")

    assert "wrong 0: ERROR (toy)" in result


async def test_late_errors_are_told_once_before_a_later_request(project: ToyProject) -> None:
    project.put("a.toy", "one\n")
    release = project.root.parent / "release"

    async with served(project.servers(f"waits-for={release}")) as servers:
        editor = Editor(project, servers, wait_s=0.01)
        result = await editor.replace("one", "ERROR")
        early = await editor.hook.before_request(round_of())
        release.touch()
        await until(lambda: editor.are_looks_done)
        late = await editor.hook.before_request(round_of())
        again = await editor.hook.before_request(round_of())

    assert "errors" not in result
    assert early == []
    assert [one.text.splitlines()[1] for one in late] == ["  line 1: wrong 0: ERROR (toy)"]
    assert again == []


async def test_question_meanwhile_does_not_lose_the_errors(project: ToyProject) -> None:
    path = project.put("a.toy", "one\n")
    release = project.root.parent / "release"

    async with served(project.servers(f"waits-for={release}", "publishes")) as servers:
        editor = Editor(project, servers, wait_s=0.01)
        await editor.replace("one", "ERROR")
        release.touch()
        answers = [await CodeQueries(servers).hover(CodePoint(path, 1, 0)) for _ in range(3)]
        await until(lambda: editor.are_looks_done)
        late = await editor.hook.before_request(round_of())

    assert ["ERROR" in answer for answer in answers] == [True] * 3
    assert [one.text.splitlines()[1] for one in late] == ["  line 1: wrong 0: ERROR (toy)"]


async def test_late_errors_keep_a_turn_going(project: ToyProject) -> None:
    project.put("a.toy", "one\n")
    release = project.root.parent / "release"

    async with served(project.servers(f"waits-for={release}")) as servers:
        editor = Editor(project, servers, wait_s=0.01)
        await editor.replace("one", "ERROR")
        release.touch()
        await until(lambda: editor.are_looks_done)
        added = await editor.hook.after_round(round_of(), reply("done"))

    assert len(added) == 1


async def test_errors_of_a_second_look_omit_those_of_the_first(project: ToyProject) -> None:
    project.put("a.toy", "one\ntwo\n")

    async with served(project.servers("publishes", "in-pieces")) as servers:
        editor = Editor(project, servers)
        result = await editor.replace("one\ntwo", "ERROR one\nERROR two")
        await until(lambda: editor.are_looks_done)
        late = await editor.hook.before_request(round_of())

    # on a machine that stands still both pieces come before the first look ends
    told = [line for text in (result, *(one.text for one in late)) for line in text.splitlines() if "  line" in line]
    assert told == ["  line 1: wrong 0: ERROR one (toy)", "  line 2: wrong 0: ERROR two (toy)"]


async def test_errors_on_new_lines_of_an_unseen_file_come_at_once(
    project: ToyProject,
) -> None:
    project.put("a.toy", "one\nERROR old\n")
    timeouts = replace(QUICK, silence_s=60.0)  # nothing could be waited for that depends on what was wrong before

    async with served(project.servers("publishes", timeouts=timeouts)) as servers:
        result = await Editor(project, servers).replace("one", "ERROR new")

    assert [line for line in result.splitlines() if line.startswith("  line")] == ["  line 1: wrong 0: ERROR new (toy)"]


@pytest.mark.parametrize("faults", [(), ("publishes",)])
async def test_errors_on_other_lines_are_told_at_last_without_old_ones(
    project: ToyProject, faults: tuple[str, ...]
) -> None:
    project.put("a.toy", "top\none\nNEEDS one\nNEEDS zero\n")

    async with served(project.servers(*faults)) as servers:
        editor = Editor(project, servers)
        result = await editor.replace("top\none", "top\ntwo")
        await until(lambda: editor.are_looks_done)
        late = await editor.hook.before_request(round_of())

    told = [line for text in (result, *(one.text for one in late)) for line in text.splitlines() if "  line" in line]
    assert told == ["  line 3: missing: one"]


@pytest.mark.parametrize("faults", [(), ("publishes",)])
async def test_errors_of_successive_edits_are_all_reported(project: ToyProject, faults: tuple[str, ...]) -> None:
    project.put("a.toy", "top\none\nNEEDS one\nend\n")

    async with served(project.servers(*faults)) as servers:
        editor = Editor(project, servers, wait_s=0.05)
        results = [
            await editor.replace("top\none", "top\ntwo"),
            await editor.replace("top", "ERROR top"),
            await editor.replace("end", "ERROR end"),
        ]
        await until(lambda: editor.are_looks_done)
        late = await editor.hook.before_request(round_of())

    told = [line for text in (*results, *(one.text for one in late)) for line in text.splitlines() if "  line" in line]
    assert sorted(line.partition(": ")[2] for line in told) == [
        "missing: one",
        "wrong 0: ERROR end (toy)",
        "wrong 0: ERROR top (toy)",
    ]


async def test_silent_server_does_not_delay_the_next_edit(project: ToyProject) -> None:
    project.put("a.toy", "one\n")

    async with served(project.servers("publishes", "only-news")) as servers:
        editor = Editor(project, servers)
        await editor.replace("one", "two")
        result = await editor.replace("two", "ERROR")
        await until(lambda: editor.are_looks_done)

    assert "wrong 0: ERROR (toy)" in result


async def test_error_of_a_later_foreign_change_is_not_told(project: ToyProject) -> None:
    project.put("a.toy", "one\nNEEDS word\n")
    words = project.put("words.toy", "word\n")

    async with served(project.servers()) as servers:
        editor = Editor(project, servers)
        await editor.replace("one", "two")
        words.write_text("another\n")
        result = await editor.replace("two", "three")

    assert "errors" not in result


async def test_failed_call_reports_nothing(project: ToyProject) -> None:
    project.put("a.toy", "ERROR\n")

    async with served(project.servers()) as servers:
        result = await Editor(project, servers).call(
            "Edit", fails=True, file_path="a.toy", old_string="x", new_string="y"
        )

    assert result == "it failed"


async def test_edit_in_an_untrusted_project_starts_no_server(project: ToyProject) -> None:
    project.put("a.toy", "one\n")

    async with served(project.servers(is_trusted=False)) as servers:
        result = await Editor(project, servers).replace("one", "ERROR")

    assert "errors" not in result
    assert project.messages("start") == []


async def test_file_of_another_language_starts_no_server(project: ToyProject) -> None:
    async with served(project.servers(timeouts=ServerTimeouts())) as servers:
        await Editor(project, servers).call("Write", file_path="a.unknown", content="x")

    assert project.messages("start") == []
