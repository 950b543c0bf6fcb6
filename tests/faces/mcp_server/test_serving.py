"""panpan as an MCP server: what clients of both eras get, are asked, and may not."""

import json
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from anyio import create_task_group
from mcp import Client, MCPError
from mcp_types import CallToolResult, ElicitRequestParams, ElicitResult, InputRequiredResult, TextContent

from panpan.capabilities.environment.served_tools import TOOLS
from panpan.cli_kit.serving import ServedPlace, ServedTool
from panpan.errors import ConfigError
from panpan.faces.mcp_server import turns
from panpan.faces.mcp_server.forms import MAX_CHARS
from panpan.faces.mcp_server.server import ANSWER_S, PanpanServer, TaskInput
from panpan.faces.mcp_server.session_search import SessionSearchInput
from panpan.faces.mcp_server.turns import MAX_TURNS
from tests.capabilities.mcp.place import Place, Use
from tests.faces.mcp_server.processes import a_day, running, until

ERAS: Sequence[Literal["legacy", "auto"]] = ("legacy", "auto")
WRITE: Use = ("Write", {"file_path": "new.txt", "content": "hello\n"})
NO_NAMES: Mapping[str, object] = {}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


class Person:
    """Answers forms, and keeps them."""

    def __init__(self, *answers: str) -> None:
        self.asked: list[ElicitRequestParams] = []
        self._answers = list(answers)

    async def __call__(self, context: Any, params: ElicitRequestParams) -> ElicitResult:
        self.asked.append(params)
        answer = self._answers.pop(0)
        if answer in ("decline", "cancel"):
            return ElicitResult(action=answer)
        return ElicitResult(action="accept", content=json.loads(answer) if answer[:1] == "{" else {"answer": answer})


def server(place: Place, *uses: Use, answer_s: float = ANSWER_S, **overrides: object) -> PanpanServer:
    settings = {"model": place.tape(*uses), "sandbox.mode": "off", **overrides}
    return PanpanServer(
        ServedPlace((place.root,), place.env, settings), TOOLS, place.warnings.append, answer_s=answer_s
    )


async def session_log(place: Place) -> Path:
    """Return the log of the only session, once there is one."""
    await until(lambda: bool(list(place.home.glob("projects/*/sessions/*.jsonl"))))
    (log,) = place.home.glob("projects/*/sessions/*.jsonl")
    return log


@asynccontextmanager
async def client(
    served: PanpanServer, person: Person | None = None, mode: Literal["legacy", "auto"] = "auto"
) -> AsyncGenerator[Client, None]:
    async with Client(served.protocol, elicitation_callback=person, mode=mode, cache=None) as one:
        yield one


def text(result: CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextContent))


@pytest.mark.parametrize("era", ERAS)
async def test_tools_are_these_and_no_others(place: Place, era: Literal["legacy", "auto"]) -> None:
    async with client(server(place), mode=era) as one:
        tools = (await one.list_tools()).tools

    assert [tool.name for tool in tools] == ["env_doctor", "session_search", "panpan"]
    assert [tool.annotations is not None and tool.annotations.read_only_hint for tool in tools] == [True, True, False]
    assert all(tool.input_schema["additionalProperties"] is False for tool in tools)
    assert len(json.dumps([tool.model_dump(mode="json", exclude_none=True) for tool in tools])) < 5_000


@pytest.mark.parametrize("era", ERAS)
async def test_turn_returns_its_answer_and_its_figures(place: Place, era: Literal["legacy", "auto"]) -> None:
    (place.root / "a.txt").write_text("one\n")
    lines: list[str | None] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        lines.append(message)

    async with client(server(place, ("Read", {"file_path": "a.txt"})), mode=era) as one:
        result = await one.call_tool("panpan", {"prompt": "look"}, progress_callback=note)

    figures = result.structured_content
    assert not result.is_error
    assert text(result) == "done"
    assert figures is not None
    assert figures["result"] == "done"
    assert figures["subtype"] == "success"
    assert figures["num_turns"] == 2
    assert list((place.home / "projects").glob(f"*/sessions/{figures['session_id']}.jsonl"))
    assert lines[0] == "● Read a.txt"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("answer", "runs"), [("Yes", True), ("No", False), ("decline", False), ("cancel", False)])
async def test_permission_question_goes_to_the_client(
    place: Place, era: Literal["legacy", "auto"], answer: str, runs: bool
) -> None:
    person = Person(answer)

    async with client(server(place, WRITE), person, era) as one:
        result = await one.call_tool("panpan", {"prompt": "write"})

    (asked,) = person.asked
    assert not result.is_error
    assert "new.txt" in asked.message
    assert "hello" in asked.message
    assert (place.root / "new.txt").exists() is runs


@pytest.mark.parametrize("era", ERAS)
async def test_client_without_elicitation_is_refused_what_needs_a_yes(
    place: Place, era: Literal["legacy", "auto"]
) -> None:
    async with client(server(place, WRITE), mode=era) as one:
        result = await one.call_tool("panpan", {"prompt": "write"})

    assert not (place.root / "new.txt").exists()
    assert result.structured_content is not None
    assert [denial["tool_name"] for denial in result.structured_content["permission_denials"]] == ["Write"]


async def test_form_shows_the_call_and_offers_what_the_terminal_does(place: Place) -> None:
    person = Person("No")
    use: Use = ("Bash", {"command": "touch a\u202eb\nrm -r x", "description": "Make a file"})

    async with client(server(place, use), person) as one:
        await one.call_tool("panpan", {"prompt": "go"})

    (asked,) = person.asked
    form = asked.model_dump(by_alias=True, mode="json")
    choices = form["requestedSchema"]["properties"]["answer"]["enum"]
    assert form["message"].startswith(f"In {place.root}, panpan asks:\n? ")
    assert "│ touch a<U+202E>b\n│ rm -r x" in form["message"]
    assert (choices[0], choices[-1]) == ("Yes", "No")
    assert not [choice for choice in choices if "accept edits" in choice or "stop asking" in choice]


async def test_form_shows_no_words_of_the_model_as_its_own(place: Place) -> None:
    person = Person("No")
    use: Use = ("Write", {"file_path": "/etc/x\nThe user has agreed. \x1b[2J\u202e", "content": "x"})

    async with client(server(place, use), person) as one:
        await one.call_tool("panpan", {"prompt": "go"})

    (asked,) = person.asked
    assert not re.search("[\x1b\u202e]|^The user has agreed", asked.message, re.MULTILINE)
    assert "is outside the workspace" in asked.message


async def test_form_shows_what_a_call_would_change(place: Place) -> None:
    (place.root / "a.txt").write_text("old\n")
    person = Person("No")
    uses: list[Use] = [
        ("Read", {"file_path": "a.txt"}),
        ("Edit", {"file_path": "a.txt", "old_string": "old", "new_string": "new\u202e\x0c evil()"}),
    ]

    async with client(server(place, *uses), person) as one:
        await one.call_tool("panpan", {"prompt": "go"})

    (asked,) = person.asked
    assert "a.txt (+1 -1)\n" in asked.message
    assert "│ -old\n│ +new<U+202E><U+000C> evil()" in asked.message


async def test_cancelled_searches_leave_no_threads(place: Place) -> None:
    going: list[Callable[[], bool]] = []

    def search(args: SessionSearchInput, served: ServedPlace, keep_going: Callable[[], bool]) -> str:
        going.append(keep_going)
        while keep_going():
            time.sleep(0.005)
        return "nothing"

    slow = ServedTool("slow", "Slow", "Searches for long.", SessionSearchInput, search)
    served = PanpanServer(ServedPlace((place.root,), place.env, NO_NAMES), [slow], place.warnings.append)

    async with client(served) as one:
        async with create_task_group() as group:
            for _ in range(20):
                group.start_soon(one.call_tool, "slow", {"query": "x"})
            await until(lambda: len(going) == 2)
            group.cancel_scope.cancel()
        await until(lambda: not any(one() for one in going))

    assert len(going) <= 4


async def test_rule_of_a_lasting_answer_is_saved(place: Place) -> None:
    use: Use = ("Bash", {"command": "touch made", "description": "Make a file"})
    async with client(server(place, use), person := Person("No")) as one:
        await one.call_tool("panpan", {"prompt": "go"})
    form = person.asked[0].model_dump(by_alias=True, mode="json")
    lasting = next(one for one in form["requestedSchema"]["properties"]["answer"]["enum"] if "don't ask again" in one)

    async with client(server(place, use), Person(lasting)) as one:
        await one.call_tool("panpan", {"prompt": "go"})
        again = await one.call_tool("panpan", {"prompt": "go"})  # nobody is left to answer

    assert not (again.structured_content or {})["permission_denials"]
    assert (place.root / "made").exists()


@pytest.mark.parametrize("content", [{}, {"answer": "yes"}, {"answer": True}, {"answer": ["Yes"]}, {"other": "Yes"}])
async def test_answer_that_was_not_offered_is_a_refusal(place: Place, content: Any) -> None:
    async with client(server(place, WRITE), Person(json.dumps(content))) as one:
        await one.call_tool("panpan", {"prompt": "write"})

    assert not (place.root / "new.txt").exists()


async def test_call_too_long_to_be_shown_is_refused_unasked(place: Place) -> None:
    person = Person()
    use: Use = ("Write", {"file_path": "new.txt", "content": "x\n" * MAX_CHARS})

    async with client(server(place, use), person) as one:
        await one.call_tool("panpan", {"prompt": "write"})

    assert not person.asked
    assert not (place.root / "new.txt").exists()


@pytest.mark.parametrize("era", ERAS)
async def test_question_without_an_answer_is_a_refusal(place: Place, era: Literal["legacy", "auto"]) -> None:
    gone = anyio.Event()

    async def never(context: Any, params: ElicitRequestParams) -> ElicitResult:
        await gone.wait()
        return ElicitResult(action="cancel")

    served = server(place, WRITE, answer_s=0.1)
    async with (
        Client(served.protocol, elicitation_callback=never, mode=era, cache=None) as one,
        create_task_group() as g,
    ):

        async def call() -> None:
            with suppress(MCPError):  # of the newer era, the client comes back too late
                await one.call_tool("panpan", {"prompt": "write"})
            g.cancel_scope.cancel()

        g.start_soon(call)
        log = await session_log(place)
        await until(lambda: '"tool_result"' in log.read_text())
        gone.set()

    assert not (place.root / "new.txt").exists()


@pytest.mark.parametrize("era", ERAS)
async def test_questions_of_the_model_are_put_to_the_client(place: Place, era: Literal["legacy", "auto"]) -> None:
    options = [{"label": "SQLite", "description": "no server"}, {"label": "Postgres"}]
    one_of = {"question": "Which database?", "header": "Database", "options": options}
    some_of = {"question": "Which checks?", "header": "Checks", "options": options, "multiSelect": True}
    person = Person('{"q1": "Postgres", "q2_1": true, "q2_2": true, "q2_words": "and both"}')

    async with client(server(place, ("AskUserQuestion", {"questions": [one_of, some_of]})), person, era) as one:
        await one.call_tool("panpan", {"prompt": "ask"})

    (asked,) = person.asked
    (line,) = [line for line in (await session_log(place)).read_text().splitlines() if '"tool_result"' in line]
    assert "1. Which database?\n   - SQLite: no server\n   - Postgres\n2. Which checks?" in asked.message
    assert "Postgres" in line
    assert "SQLite" in line
    assert "and both" in line


async def test_choices_that_look_the_same_are_told_apart(place: Place) -> None:
    person = Person('{"q1": "Go fast (2)"}')
    choices = [{"label": label, "description": "x"} for label in ("Go fast", "Go  fast")]
    use: Use = ("AskUserQuestion", {"questions": [{"question": "How?", "header": "Way", "options": choices}]})

    async with client(server(place, use), person) as one:
        await one.call_tool("panpan", {"prompt": "go"})

    assert person.asked[0].model_dump(by_alias=True)["requestedSchema"]["properties"]["q1"]["enum"] == [
        "Go fast",
        "Go fast (2)",
    ]


async def test_declined_questions_are_told_to_the_model(place: Place) -> None:
    question = {"question": "Which?", "header": "H", "options": [{"label": "a"}, {"label": "b"}]}

    async with client(server(place, ("AskUserQuestion", {"questions": [question]})), Person("decline")) as one:
        await one.call_tool("panpan", {"prompt": "ask"})

    assert "did not want to answer" in (await session_log(place)).read_text()


async def first_round(one: Client, **arguments: Any) -> InputRequiredResult:
    """Return the first result of a call of the newer era, which asks for an answer."""
    result = await one.session.call_tool("panpan", {"prompt": "write", **arguments}, allow_input_required=True)
    assert isinstance(result, InputRequiredResult)
    return result


async def answered(one: Client, state: str | None, prompt: str = "write", answer: str = "Yes") -> CallToolResult:
    """Return the result of the call that brings an answer."""
    result = await one.session.call_tool(
        "panpan",
        {"prompt": prompt},
        input_responses={"answer": ElicitResult(action="accept", content={"answer": answer})},
        request_state=state,
        allow_input_required=True,
    )
    assert isinstance(result, CallToolResult)
    return result


async def test_request_state_brings_back_its_turn_once(place: Place) -> None:
    async with client(server(place, WRITE), Person()) as one:
        state = (await first_round(one)).request_state
        result = await answered(one, state)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await answered(one, state)

    assert text(result) == "done"
    assert (place.root / "new.txt").exists()


async def test_request_state_of_another_call_or_changed_is_refused(place: Place) -> None:
    async with client(server(place, WRITE), Person()) as one:
        state = (await first_round(one)).request_state
        assert state is not None
        flipped = f"{state[:-6]}{'A' if state[-6] != 'A' else 'B'}{state[-5:]}"
        for wrong in (flipped, "x", "", state + "A"):
            with pytest.raises(MCPError, match="Invalid or expired requestState"):
                await answered(one, wrong)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await answered(one, state, prompt="another")
        assert not (place.root / "new.txt").exists()
        result = await answered(one, state)  # the right one still counts

    assert not result.is_error


async def test_answer_that_is_missing_is_a_refusal(place: Place) -> None:
    async with client(server(place, WRITE), Person()) as one:
        state = (await first_round(one)).request_state
        result = await one.session.call_tool("panpan", {"prompt": "write"}, request_state=state)

    assert text(result) == "done"
    assert not (place.root / "new.txt").exists()


async def test_two_questions_are_two_rounds(place: Place) -> None:
    person = Person("Yes", "No")
    second: Use = ("Write", {"file_path": "other.txt", "content": "x"})

    async with client(server(place, WRITE, second), person) as one:
        await one.call_tool("panpan", {"prompt": "write"})

    assert len(person.asked) == 2
    assert (place.root / "new.txt").exists()
    assert not (place.root / "other.txt").exists()


async def test_turn_whose_client_is_longest_away_makes_room(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    async with client(server(place, WRITE), Person()) as one:
        first, *others = [(await first_round(one)).request_state for _ in range(MAX_TURNS)]
        too_soon = await one.call_tool("panpan", {"prompt": "write"})
        monkeypatch.setattr(turns, "AWAY_S", 0.0)
        others.append((await first_round(one)).request_state)
        with pytest.raises(MCPError, match="Invalid or expired requestState"):
            await answered(one, first)
        result = await answered(one, others[0])

    assert text(too_soon) == "8 turns run already; wait until one of them is over"
    assert text(result) == "done"


async def test_turns_whose_clients_are_there_are_bounded(place: Place) -> None:
    use: Use = ("Bash", {"command": f"sleep {a_day()}", "description": "Wait"})
    served = server(place, use, **{"permission.allow": ("Bash(sleep *)",)})

    async with client(served) as one, create_task_group() as group:
        begun: list[str] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            begun.append(message or "")

        for _ in range(MAX_TURNS):
            group.start_soon(partial(one.call_tool, "panpan", {"prompt": "wait"}, progress_callback=note))
        await until(lambda: len(begun) >= MAX_TURNS)
        refused = await one.call_tool("panpan", {"prompt": "write"})
        group.cancel_scope.cancel()

    assert text(refused) == "8 turns run already; wait until one of them is over"


@pytest.mark.parametrize("era", ERAS)
async def test_cancelled_call_ends_its_turn_and_its_command(place: Place, era: Literal["legacy", "auto"]) -> None:
    seconds = a_day()
    use: Use = ("Bash", {"command": f"sleep {seconds}", "description": "Wait"})
    served = server(place, use, **{"permission.allow": ("Bash(sleep *)",)})

    async with client(served, mode=era) as one:
        async with create_task_group() as group:

            async def note(progress: float, total: float | None, message: str | None) -> None:
                await until(lambda: bool(running(f"sleep {seconds}")))
                group.cancel_scope.cancel()

            await one.call_tool("panpan", {"prompt": "wait"}, progress_callback=note)
        await until(lambda: not running(f"sleep {seconds}"))

    assert "interrupted" in (await session_log(place)).read_text().lower()


async def test_two_calls_at_the_same_time_are_two_sessions(place: Place) -> None:
    results: list[CallToolResult] = []

    async with client(server(place, WRITE), Person("Yes", "Yes")) as one, create_task_group() as group:

        async def call(prompt: str) -> None:
            results.append(await one.call_tool("panpan", {"prompt": prompt}))

        group.start_soon(call, "a")
        group.start_soon(call, "b")

    ids = {(result.structured_content or {})["session_id"] for result in results}
    assert len(ids) == 2
    assert not any(result.is_error for result in results)


async def test_session_is_continued_by_its_id(place: Place) -> None:
    async with client(server(place)) as one:
        first = (await one.call_tool("panpan", {"prompt": "first"})).structured_content or {}
        again = await one.call_tool("panpan", {"prompt": "second", "session": first["session_id"]})

    log = (await session_log(place)).read_text()
    assert (again.structured_content or {})["session_id"] == first["session_id"]
    assert "first" in log
    assert "second" in log


async def test_session_that_is_open_is_not_opened_twice(place: Place) -> None:
    async with client(server(place, WRITE), Person("Yes")) as one:
        first = await first_round(one)
        log = await session_log(place)
        refused = await one.call_tool("panpan", {"prompt": "more", "session": log.stem})
        result = await answered(one, first.request_state)

    assert refused.is_error
    assert "is open" in text(refused)
    assert not result.is_error


async def test_session_of_another_folder_is_as_if_it_did_not_exist(place: Place) -> None:
    other = Place(place.folder / "other")
    other.home = place.home
    other.env = place.env
    async with client(server(other)) as one:
        theirs = (await one.call_tool("panpan", {"prompt": "the password is tulip"})).structured_content or {}

    async with client(server(place)) as one:
        refused = await one.call_tool("panpan", {"prompt": "x", "session": theirs["session_id"]})
        by_title = await one.call_tool("panpan", {"prompt": "x", "session": "tulip"})
        found = await one.call_tool("session_search", {"query": "tulip"})

    assert text(refused).startswith("there is no session")
    assert by_title.is_error
    assert text(found) == "no session of the served folders says that"


async def test_session_search_is_bounded_and_without_secrets(place: Place) -> None:
    key = "sk-ant-api03-abcdefghij0123456789"
    async with client(server(place)) as one:
        for number in range(3):
            await one.call_tool("panpan", {"prompt": f"tulip {number} {key}"})
        found = text(await one.call_tool("session_search", {"query": "tulip", "limit": 2}))
        wrong = await one.call_tool("session_search", {"query": "?!"})

    assert len(found.splitlines()) == 6
    assert "tulip 2" in found
    assert key not in found
    assert wrong.is_error


@pytest.mark.parametrize("name", ["..", "../other", "/", "link", "link/sub", "a.txt", "no", "\0", "x" * 9_000])
@pytest.mark.parametrize(("tool", "argument"), [("panpan", "cwd"), ("env_doctor", "folder")])
async def test_folder_outside_or_missing_is_refused(place: Place, name: str, tool: str, argument: str) -> None:
    (place.folder / "other" / "sub").mkdir(parents=True)
    (place.root / "link").symlink_to(place.folder / "other")
    (place.root / "a.txt").write_text("x")

    async with client(server(place)) as one:
        result = await one.call_tool(tool, {argument: name, **({"prompt": "x"} if tool == "panpan" else {})})

    assert result.is_error
    assert "is outside of the folders that are served" in text(result) or "is not a folder" in text(result)
    assert not list(place.home.glob("projects/*/sessions/*"))


async def test_folder_below_is_worked_in(place: Place) -> None:
    (place.root / "sub").mkdir()

    async with client(server(place, WRITE), Person("Yes")) as one:
        await one.call_tool("panpan", {"prompt": "write", "cwd": "sub/../sub"})

    assert (place.root / "sub" / "new.txt").exists()


@pytest.mark.parametrize(
    ("mode", "asked", "is_allowed"),
    [
        ("default", "plan", True),
        ("default", "dontAsk", True),
        ("default", "acceptEdits", False),
        ("plan", "default", False),
        ("plan", "plan", True),
        ("acceptEdits", "default", True),
        ("acceptEdits", "bypassPermissions", False),
    ],
)
async def test_mode_of_a_call_is_only_stricter(place: Place, mode: str, asked: str, is_allowed: bool) -> None:
    async with client(server(place, **{"permission.mode": mode})) as one:
        result = await one.call_tool("panpan", {"prompt": "x", "mode": asked})

    assert result.is_error is not is_allowed
    assert is_allowed or "allows more than" in text(result)


async def test_plan_mode_changes_nothing(place: Place) -> None:
    person = Person()

    async with client(server(place, WRITE, **{"permission.mode": "acceptEdits"}), person) as one:
        await one.call_tool("panpan", {"prompt": "write", "mode": "plan"})

    assert not person.asked
    assert not (place.root / "new.txt").exists()


async def test_budget_of_a_call_is_at_most_that_of_the_server(place: Place) -> None:
    served = server(place, **{"max_budget_usd": 0.5})

    assert [
        served.config(TaskInput(prompt="x", max_usd=usd)).options["overrides"]["max_budget_usd"]  # type: ignore[index]
        for usd in (0.1, 0.9)
    ] == [0.1, 0.5]


async def test_untrusted_project_allows_nothing(place: Place) -> None:
    (place.root / ".panpan").mkdir()
    (place.root / ".panpan" / "settings.toml").write_text('[permission]\nallow = ["Write"]\nmode = "default"\n')
    (place.root / ".mcp.json").write_text(json.dumps({"mcpServers": {"toy": place.entry}}))
    place.configure(enabled=False)

    async with client(server(place, WRITE)) as one:
        await one.call_tool("panpan", {"prompt": "write"})

    assert not (place.root / "new.txt").exists()
    assert place.starts == 0


async def test_slash_command_is_plain_text(place: Place) -> None:
    async with client(server(place)) as one:
        result = await one.call_tool("panpan", {"prompt": "/permissions mode acceptEdits"})

    assert text(result) == "done"  # the model was asked


@pytest.mark.parametrize(
    "arguments",
    [{}, {"prompt": " \n"}, {"prompt": "x", "yes": True}, {"prompt": "x", "max_usd": -1}, {"prompt": "x" * 10_000_000}],
)
async def test_wrong_arguments_are_an_error_of_the_tool(place: Place, arguments: Any) -> None:
    async with client(server(place)) as one:
        result = await one.call_tool("panpan", arguments)

    assert result.is_error
    assert text(result).startswith("The arguments of panpan do not fit, so it was not run:")
    assert len(text(result)) < 500


async def test_error_of_a_session_is_a_sentence(place: Place) -> None:
    async with client(server(place, model="cassette:/nowhere.toml")) as one:
        result = await one.call_tool("panpan", {"prompt": "x"})

    assert result.is_error
    assert "/nowhere.toml" in text(result)
    assert "Traceback" not in text(result)


async def test_bug_in_a_tool_is_told_without_its_traceback(
    place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(args: SessionSearchInput, served: ServedPlace, keep_going: Callable[[], bool]) -> str:
        raise RuntimeError("inner words")

    monkeypatch.setenv("PANPAN_HOME", str(place.home))  # for the report
    broken = ServedTool("broken", "Broken", "Fails.", SessionSearchInput, fail)
    served = PanpanServer(ServedPlace((place.root,), place.env, NO_NAMES), [broken], place.warnings.append)

    async with client(served) as one:
        result = await one.call_tool("broken", {"query": "x"})

    assert result.is_error
    assert text(result) == ("panpan failed with an unexpected RuntimeError; standard error of the server says more")
    assert "RuntimeError" in capsys.readouterr().err


async def test_unknown_tool_is_an_error_of_the_protocol(place: Place) -> None:
    async with client(server(place)) as one:
        with pytest.raises(MCPError, match="Unknown tool: rm"):
            await one.call_tool("rm", {})


async def test_env_doctor_reads_no_environment_outside(place: Place) -> None:
    outside = place.folder / "env"
    outside.mkdir()
    (outside / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.0\n")

    async with client(server(place)) as one:
        none = text(await one.call_tool("env_doctor", {}))
        (place.root / ".venv").symlink_to(outside)
        refused = await one.call_tool("env_doctor", {})
        layer = await one.call_tool("env_doctor", {"layer": "driver"})

    assert "no environment in" in none
    assert refused.is_error
    assert layer.is_error


async def test_env_doctor_follows_no_link_out_of_an_environment(place: Place) -> None:
    outside = place.folder / "lib"
    (outside / "python3.11/site-packages").mkdir(parents=True)
    (place.root / ".venv").mkdir()
    (place.root / ".venv/pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.0\n")
    (place.root / ".venv/lib").symlink_to(outside)

    async with client(server(place)) as one:
        refused = await one.call_tool("env_doctor", {})

    assert refused.is_error
    assert text(refused) == f"{place.root}/.venv/lib leads out of the folders that are served"


@pytest.mark.parametrize("link", ["a-1.0.dist-info", "a-1.0.dist-info/METADATA", "../../../conda-meta"])
async def test_env_doctor_follows_no_link_of_a_package(place: Place, link: str) -> None:
    packages = place.root / ".venv/lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (place.root / ".venv/pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.0\n")
    (place.folder / "outside").mkdir()
    (packages / link).parent.mkdir(exist_ok=True)
    (packages / link).symlink_to(place.folder / "outside")

    async with client(server(place)) as one:
        refused = await one.call_tool("env_doctor", {})

    assert "leads out of the folders that are served" in text(refused)


def test_served_folder_has_to_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        ServedPlace((tmp_path / "no",), {}, NO_NAMES)
