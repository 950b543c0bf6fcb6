"""The life of servers: when they are started, what they get, and that nothing they do costs more than a question."""

import json
import os
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.language_servers.code_queries import CodePlace, CodePoint, CodeQueries
from panpan.capabilities.language_servers.documents import MAX_IN_FOLDER, WatchedFiles
from panpan.capabilities.language_servers.language_server import initialize_params
from panpan.capabilities.language_servers.server_process import ServerKind, ServerTimeouts
from panpan.errors import ToolError
from panpan.system.processes.process_table import running_processes
from tests.capabilities.language_servers.toy import SCRIPT, ToyProject, served
from tests.system.backends import on_both_backends, run_on, until

TOY = ServerKind("toy", ("toy",), {".toy": "toy"})


@pytest.fixture
def project(tmp_path: Path) -> ToyProject:
    return ToyProject(tmp_path.resolve())


async def refusal(queries: CodeQueries, path: Path) -> str:
    with pytest.raises(ToolError) as caught:
        await queries.hover(CodePoint(path, 1, 0))
    return str(caught.value)


def toys_of(project: ToyProject) -> list[int]:
    """Return the processes of the project's servers."""
    log = str(project.root.parent / "log")
    found = []
    for pid in running_processes():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        except OSError:
            continue
        if str(SCRIPT) in words and log in words:
            found.append(pid)
    return found


@on_both_backends
def test_servers_start_on_demand_and_leave_nothing(backend: str, project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")
    seen: list[object] = []

    async def main() -> None:
        async with served(project.servers()) as servers:
            seen.append(project.messages("start"))
            seen.append(await CodeQueries(servers).hover(CodePoint(path, 1, 0)))
            seen.append(len(toys_of(project)))

    run_on(backend, main)

    assert seen == [[], "\x1b]0;title\x07the word alpha\n\nof the toy language", 1]
    assert [len(project.messages(name)) for name in ("start", "shutdown", "exit")] == [1, 1, 1]
    assert toys_of(project) == []


async def test_servers_do_not_start_in_an_untrusted_project(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")

    async with served(project.servers(is_trusted=False)) as servers:
        said = await refusal(CodeQueries(servers), path)

    assert "trusted projects only" in said
    assert not servers.can_be_used
    assert project.messages("start") == []


async def test_server_serves_one_folder_without_inner_repositories(project: ToyProject) -> None:
    paths = [project.put(name, "alpha\n") for name in ("a.toy", "deep/b.toy")]
    other = project.put("vendor/c.toy", "alpha\n")
    (other.parent / ".git").mkdir()

    async with served(project.servers()) as servers:
        async with anyio.create_task_group() as group:
            for path in [*paths, *paths]:
                group.start_soon(CodeQueries(servers).hover, CodePoint(path, 1, 0))
        said = await refusal(CodeQueries(servers), other)

    assert len(project.messages("start")) == 1
    assert "a repository of its own" in said


async def test_server_gets_no_key(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")
    environment = {**os.environ, "OPENAI_API_KEY": "sk-x", "MY_TOKEN": "x"}

    async with served(project.servers(environment=environment)) as servers:
        await CodeQueries(servers).hover(CodePoint(path, 1, 0))

    names = project.messages("start")[0]["params"]
    assert "PATH" in names
    assert not {"OPENAI_API_KEY", "MY_TOKEN"} & set(names)


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("dies", "toy ended with code 1: out of luck"),
        ("complains", "toy ended with code 1: error: no toys are installed"),
        ("dies-when-asked", "toy ended with code 1: out of breath"),
        ("hangs", "toy did not answer initialize within 0.3 s"),
        ("prints", "toy sent something that is not a message"),
        ("huge", "toy sent a message of 99,999,999,999 bytes"),
        ("silent", "toy did not answer textDocument/hover within 0.3 s"),
        ("babbles", "toy refuses textDocument/hover: {}"),
    ],
)
async def test_failing_server_costs_the_question_and_says_why(project: ToyProject, fault: str, reason: str) -> None:
    path = project.put("a.toy", "alpha\n")
    timeouts = ServerTimeouts(start_s=0.3 if fault == "hangs" else 10.0, answer_s=0.3 if fault == "silent" else 10.0)

    async with served(project.servers(fault, timeouts=timeouts)) as servers:
        said = await refusal(CodeQueries(servers), path)

    assert said.startswith(reason)
    assert toys_of(project) == []


async def test_ended_server_is_restarted_a_few_times(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")

    async with served(project.servers("dies-when-asked")) as servers:
        said = [await refusal(CodeQueries(servers), path) for _ in range(7)]
        states = [state.state for state in servers.states if state.name == "toy"]

    assert len(project.messages("start")) == 5
    assert ["not started again" in text for text in said] == [False] * 5 + [True] * 2
    assert states == ["failed: toy ended with code 1: out of breath"]


async def test_silent_server_is_ended_and_restarted(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")
    timeouts = ServerTimeouts(answer_s=0.1, first_pause_s=0.0)

    async with served(project.servers("silent", timeouts=timeouts)) as servers:
        said = [await refusal(CodeQueries(servers), path) for _ in range(4)]

    assert [text.startswith("toy did not answer textDocument/hover within 0.1 s") for text in said] == [True] * 4
    assert len(project.messages("start")) == 2


async def test_failed_server_is_not_restarted_at_once(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")
    timeouts = ServerTimeouts(first_pause_s=60.0)

    async with served(project.servers("dies", timeouts=timeouts)) as servers:
        said = [await refusal(CodeQueries(servers), path) for _ in range(2)]

    assert "it is started again in 60 s at the earliest" in said[1]
    assert len(project.messages("start")) == 1


@on_both_backends
def test_server_that_will_not_end_is_killed(backend: str, project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")

    async def main() -> None:
        async with served(project.servers("deaf")) as servers:
            await CodeQueries(servers).hover(CodePoint(path, 1, 0))

    run_on(backend, main)

    assert toys_of(project) == []


async def test_idle_server_is_ended_and_comes_back(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")
    timeouts = ServerTimeouts(idle_s=0.4)

    async with served(project.servers(timeouts=timeouts)) as servers:
        await CodeQueries(servers).hover(CodePoint(path, 1, 0))
        await until(lambda: len(project.messages("exit")) == 1)
        await until(lambda: not toys_of(project))
        again = await CodeQueries(servers).hover(CodePoint(path, 1, 0))

    assert "alpha" in again
    assert len(project.messages("start")) == 2


async def test_slowly_starting_server_is_not_idle(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")

    async with served(project.servers("starts-slowly", timeouts=ServerTimeouts(idle_s=0.2))) as servers:
        told = await CodeQueries(servers).hover(CodePoint(path, 1, 0))

    assert "alpha" in told
    assert len(project.messages("start")) == 1


async def test_requests_of_a_server_are_answered_without_changes(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")

    async with served(project.servers("asks")) as servers:
        queries = CodeQueries(servers)
        await queries.hover(CodePoint(path, 1, 0))
        await until(lambda: len(project.messages(None)) == 3)
        told = json.loads((await queries.hover(CodePoint(path, 1, 0))).partition("\n")[0])

    answers = {answer["id"]: answer.get("result", answer.get("error", {}).get("code")) for answer in told}
    assert answers["c"] == [None, None]
    assert answers["e"]["applied"] is False
    assert answers["x"] == -32601


async def test_question_with_an_outdated_answer_is_asked_again(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\n")

    async with served(project.servers("hasty")) as servers:
        told = await CodeQueries(servers).hover(CodePoint(path, 1, 0))

    assert "alpha" in told


async def test_server_still_reading_is_asked_and_the_answer_says_so(
    project: ToyProject,
) -> None:
    path = project.put("a.toy", "alpha\n")

    async with served(project.servers("reads")) as servers:
        await CodeQueries(servers).hover(CodePoint(path, 1, 0))  # by now it has said that it reads
        found = await CodeQueries(servers).related("definition", CodePoint(path, 1, 0))

    assert found.places == [CodePlace(path, 1)]
    assert "still reading the project" in found.note


async def test_senseless_parts_of_an_answer_are_left_out(project: ToyProject) -> None:
    path = project.put("a.toy", "alpha\nbeta\n")

    async with served(project.servers("lies")) as servers:
        found = await CodeQueries(servers).related("definition", CodePoint(path, 2, 0))

    places = [(str(place.place), place.line) for place in found.places]
    assert places == [("/etc/shadow", 1), ("http://example.org/a.toy", 1), (str(path), 2**30 + 1), (str(path), 2)]


def test_data_folder_does_not_stop_watching_the_code_beside_it(project: ToyProject) -> None:
    project.put("a.toy", "alpha\n")
    data = project.put("data/0", "").parent
    for number in range(1, MAX_IN_FOLDER + 1):
        (data / str(number)).touch()
    watched = WatchedFiles(project.root, TOY, max_entries=2)

    watched.changes()
    project.put("a.toy", "changed\n")

    assert [change["type"] for change in watched.changes()] == [2]


async def test_restless_server_is_asked_for_problems_in_time(project: ToyProject) -> None:
    path = project.put("a.toy", "ERROR\n")
    timeouts = ServerTimeouts(answer_s=0.4)

    async with served(project.servers("publishes", "never-rests", timeouts=timeouts)) as servers:
        found = await CodeQueries(servers).problems(path)

    assert [problem.message for problem in found] == ["wrong 0: ERROR"]


def test_server_of_a_huge_folder_is_told_to_watch_itself(project: ToyProject) -> None:
    for name in ("a.toy", "b.toy", "c.data"):
        project.put(name, "alpha\n")
    watched = [WatchedFiles(project.root, TOY, max_entries=most) for most in (3, 2)]

    found = [list(one.changes()) for one in watched]
    params = [initialize_params(project.root, None, is_watched=not one.is_too_large) for one in watched]

    assert found == [[], []]
    told = [one["capabilities"]["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"] for one in params]
    assert told == [True, False]


async def test_file_replaced_with_equal_size_and_time_is_read_again(project: ToyProject) -> None:
    path, asked = project.put("a.toy", "alpha\n"), project.put("b.toy", "b\n")

    async with served(project.servers()) as servers:
        queries = CodeQueries(servers)
        await queries.hover(CodePoint(path, 1, 0))
        before = path.stat()
        other = project.put("new", "omega\n")
        os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
        other.rename(path)
        await queries.hover(CodePoint(asked, 1, 0))

    shown = [message["params"]["contentChanges"] for message in project.messages("textDocument/didChange")]
    assert shown == [[{"text": "omega\n"}]]


async def test_server_sees_changes_on_disk(project: ToyProject) -> None:
    path, other = project.put("a.toy", "alpha\n"), project.put("b.toy", "beta\n")

    async with served(project.servers()) as servers:
        queries = CodeQueries(servers)
        await queries.hover(CodePoint(path, 1, 0))
        project.put("a.toy", "changed\n")
        project.put("c.toy", "new\n")
        other.unlink()
        told = await queries.hover(CodePoint(path, 1, 0))

    assert "the word changed" in told
    changes = project.messages("workspace/didChangeWatchedFiles")[0]["params"]["changes"]
    kinds = {change["uri"].rpartition("/")[2]: change["type"] for change in changes}
    assert kinds == {"a.toy": 2, "b.toy": 3, "c.toy": 1}
