"""Results in a resumed session for calls that were open when panpan was killed."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from panpan.capabilities.files.edit import EditTool
from panpan.capabilities.files.patch import PatchTool
from panpan.core.conversation import NEVER_ANSWERED, NEVER_BEGUN
from panpan.errors import UnfinishedCallError
from panpan.session.log.recorder import fork
from panpan.session.session import Session
from panpan.session.unfinished import Outcome
from panpan.system.processes.process_table import ProcessTree
from panpan.types.messages import AssistantMessage, Compaction, SystemReminder, ToolResultMessage, UserMessage
from panpan.types.permission import UserAnswer, UserAsker, UserQuestion
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import log_path, recorded, session_in
from tests.fakes.tools import changing, looking

EDIT = {"file_path": "new.txt", "old_string": "", "new_string": "written\n"}
PATCH = {
    "patch": "*** Begin Patch\n*** Add File: one.txt\n+one\n*** Add File: two.txt\n+two\n*** End Patch",
}


class Asked:
    """A user who gives one answer and remembers the questions."""

    def __init__(self, *chosen: str) -> None:
        self._chosen = chosen
        self.questions: list[UserQuestion] = []

    async def __call__(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        self.questions += questions
        return [UserAnswer(self._chosen)] if self._chosen else None


async def send(session: Session, prompt: str = "go") -> None:
    async with aclosing(session.submit(prompt)) as events:
        async for _ in events:
            pass


async def killed(root: Path, tools: Callable[[], Sequence[Any]], reply: Any, *, after: str) -> None:
    """Leave the log of a turn as a kill leaves it, right after the newest record of a kind."""
    async with session_in(root, ScriptedLLM(reply, say("done")), *tools()) as session:
        await send(session)
    lines = log_path(root).read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line).get("subtype") or json.loads(line)["type"] for line in lines]
    log_path(root).write_bytes(b"".join(lines[: len(kinds) - kinds[::-1].index(after)]))


async def results(
    root: Path, tools: Callable[[], Sequence[Any]], ask: UserAsker | None = None, outcome: Outcome | None = None
) -> list[ToolResultMessage]:
    """Go on with the session, and return what the model is told of its calls; the same as the log holds then."""
    llm = ScriptedLLM(say("on"), say("and on"))
    async with session_in(root, llm, *tools(), ask_user=ask, outcome=outcome) as session:
        await send(session, "and?")
        first = list(llm.histories[0])
    async with session_in(root, llm, *tools()) as session:
        await send(session, "further")
        assert llm.histories[1][: len(first)] == first  # the prefix of the next run is the same
    assert recorded(root)[: len(first)] == first
    return [message for message in first if isinstance(message, ToolResultMessage)]


def edit() -> Sequence[Any]:
    return [EditTool()]


def patch() -> Sequence[Any]:
    return [PatchTool()]


def change() -> Sequence[Any]:
    return [changing(), looking()]


async def test_unfinished_edit_without_its_file_is_called_not_begun(tmp_path: Path) -> None:
    await killed(tmp_path, edit, call(("1", "Edit", EDIT)), after="file_changes")
    (tmp_path / "new.txt").unlink()

    (result,) = await results(tmp_path, edit)

    assert (result.text, result.is_error) == (NEVER_BEGUN, True)


async def test_unfinished_edit_found_on_disk_is_reported_as_made(tmp_path: Path) -> None:
    await killed(tmp_path, edit, call(("1", "Edit", EDIT)), after="file_changes")

    (result,) = await results(tmp_path, edit)

    assert "had done its work" in result.text
    assert str(tmp_path / "new.txt") in result.text
    assert not result.is_error


@pytest.mark.parametrize("after", ["assistant", "call_started"])
async def test_unfinished_edit_without_a_note_changed_nothing(tmp_path: Path, after: str) -> None:
    await killed(tmp_path, edit, call(("1", "Edit", EDIT)), after="file_changes")
    lines = log_path(tmp_path).read_bytes().splitlines(keepends=True)
    log_path(tmp_path).write_bytes(b"".join(lines[: -1 if after == "call_started" else -2]))

    (result,) = await results(tmp_path, edit)

    assert result.text == NEVER_BEGUN


async def test_unfinished_patch_is_reported_file_by_file(tmp_path: Path) -> None:
    await killed(tmp_path, patch, call(("1", "Patch", PATCH)), after="file_changes")
    (tmp_path / "two.txt").unlink()

    (result,) = await results(tmp_path, patch)

    assert f"as the call was to leave them: {tmp_path / 'one.txt'}" in result.text
    assert f"as they were before it: {tmp_path / 'two.txt'}" in result.text
    assert result.is_error


async def test_unfinished_edit_of_a_file_changed_since_is_unknown(tmp_path: Path) -> None:
    await killed(tmp_path, edit, call(("1", "Edit", EDIT)), after="file_changes")
    (tmp_path / "new.txt").write_text("the user's own")

    (result,) = await results(tmp_path, edit)

    assert f"neither: {tmp_path / 'new.txt'}" in result.text


@pytest.mark.parametrize(
    ("chosen", "outcome", "said"),
    [
        ("It finished", "finished", "The user says that it finished"),
        ("It did not run", "not-run", NEVER_BEGUN),
        ("I do not know", "unclear", NEVER_ANSWERED),
    ],
)
async def test_unfinished_call_without_traces_is_put_to_the_user(
    tmp_path: Path, chosen: str, outcome: Outcome, said: str
) -> None:
    ask = Asked(chosen)
    await killed(tmp_path, change, call(("1", "Change", {"seconds": 0})), after="call_started")
    log = log_path(tmp_path).read_bytes()

    (asked,) = await results(tmp_path, change, ask)
    log_path(tmp_path).write_bytes(log)
    (given,) = await results(tmp_path, change, outcome=outcome)

    assert said in asked.text
    assert given.text == asked.text
    assert "Change (0.0)" in ask.questions[0].question


async def test_unfinished_question_left_open_allows_no_second_run(tmp_path: Path) -> None:
    await killed(tmp_path, change, call(("1", "Change", {})), after="call_started")

    (result,) = await results(tmp_path, change, Asked())

    assert NEVER_ANSWERED in result.text


async def test_unfinished_answer_in_the_users_words_reaches_the_model(tmp_path: Path) -> None:
    async def ask(questions: Sequence[UserQuestion]) -> Sequence[UserAnswer]:
        return [UserAnswer(text="I stopped it half-way.")]

    await killed(tmp_path, change, call(("1", "Change", {})), after="call_started")

    (result,) = await results(tmp_path, change, ask)

    assert "The user says: I stopped it half-way." in result.text


async def test_unfinished_call_without_a_user_stops_before_any_request(tmp_path: Path) -> None:
    await killed(tmp_path, change, call(("1", "Change", {})), after="call_started")
    log = log_path(tmp_path).read_bytes()
    llm = ScriptedLLM()

    async with session_in(tmp_path, llm, *change()) as session:
        with pytest.raises(UnfinishedCallError, match=r"Change \(0.0\) ran.*panpan -r s1.*--unfinished") as error:
            await send(session, "and?")
        assert session.agent.unfinished.have_stopped_a_turn  # what goes on beside it stays as it is, too

    assert error.value.exit_code == 6
    assert llm.requests == []
    assert log_path(tmp_path).read_bytes() == log


async def test_unfinished_call_is_not_settled_by_a_users_command(tmp_path: Path) -> None:
    await killed(tmp_path, change, call(("1", "Change", {})), after="call_started")
    llm = ScriptedLLM()

    async with session_in(tmp_path, llm, *change()) as session:
        session.add_message(UserMessage.of("$ ls\nnew.txt"))  # and the user leaves
    async with session_in(tmp_path, llm, *change()) as session:
        with pytest.raises(UnfinishedCallError):
            await send(session, "and?")
    (result,) = await results(tmp_path, change, Asked("It finished"))

    assert llm.requests == []
    assert "The user says that it finished" in result.text


async def test_unfinished_calls_survive_a_compaction(tmp_path: Path) -> None:
    await killed(tmp_path, change, call(("1", "Change", {})), after="call_started")
    llm = ScriptedLLM(say("on"), say("and on"))

    async with session_in(tmp_path, llm, *change(), outcome="finished") as session:
        reply = session.conversation.messages[1]
        short = (SystemReminder(text="what came before"),)
        session._recorder.compact(
            Compaction("manual", reply.uuid, tokens_before=9, tokens_after=5, added=short, kept_from=reply.uuid)
        )
        await send(session, "and?")
    async with session_in(tmp_path, llm, *change()) as session:
        await send(session, "further")

    first, second = llm.histories
    assert [type(message) for message in first] == [SystemReminder, AssistantMessage, ToolResultMessage, UserMessage]
    assert "The user says that it finished" in first[2].text
    assert second[: len(first)] == first


async def test_unfinished_call_divides_done_from_unbegun_calls(tmp_path: Path) -> None:
    calls = ("1", "Change", {}), ("2", "Change", {}), ("3", "Look", {})
    await killed(tmp_path, change, call(*calls), after="call_started")
    (done, *_) = recorded(tmp_path)[2:]

    first, second, third = await results(tmp_path, change, Asked("It finished"))

    assert first == done
    assert "Change 1 done" in first.text
    assert "finished" in second.text
    assert third.text == NEVER_BEGUN


class AskedInTurn(Asked):
    """A user who answers one question after the other; between two, something happens."""

    def __init__(self, *chosen: str, meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        self._left = list(chosen)
        self._meanwhile = meanwhile

    async def __call__(self, questions: Sequence[UserQuestion]) -> Sequence[UserAnswer] | None:
        self.questions += questions
        self._meanwhile()
        return [UserAnswer((self._left.pop(0),))]


def _mark(root: Path) -> str:
    """Return that of the processes of a call that is the last in the log."""
    return str(json.loads(log_path(root).read_text().splitlines()[-1])["processMark"])


@pytest.fixture
def survivor(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A command that outlived its panpan, as a session left it that was killed while the command ran."""
    anyio.run(partial(killed, tmp_path, change, call(("1", "Change", {})), after="call_started"))
    env = ProcessTree(_mark(tmp_path)).marked({"PATH": os.environ["PATH"]})
    process = subprocess.Popen(["/bin/sh", "-c", "sleep 1000 & wait"], env=env, start_new_session=True)
    while len(ProcessTree(_mark(tmp_path)).members()) < 2:  # just after its exec a process shows no environment
        time.sleep(0.01)
    yield process
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_unfinished_process_is_ended_if_the_user_says_so(tmp_path: Path, survivor: "subprocess.Popen[bytes]") -> None:
    ask = AskedInTurn("End it")

    (result,) = anyio.run(results, tmp_path, change, ask)

    assert survivor.wait(10) < 0
    assert f"ends {survivor.pid}" in ask.questions[0].choices[1].description
    assert NEVER_ANSWERED in result.text


def test_unfinished_process_is_awaited_and_then_asked_about(
    tmp_path: Path, survivor: "subprocess.Popen[bytes]"
) -> None:
    def end_first() -> None:
        if len(ask.questions) == 1:
            os.killpg(survivor.pid, signal.SIGKILL)
            survivor.wait()
            while ProcessTree(_mark(tmp_path)).members():  # what the shell started ends a moment later
                time.sleep(0.01)

    ask = AskedInTurn("Wait for it", "It finished", meanwhile=end_first)

    (result,) = anyio.run(results, tmp_path, change, ask)

    assert "The user says that it finished" in result.text
    assert len(ask.questions) == 2


@pytest.mark.parametrize("outcome", [None, "finished"])
def test_unfinished_process_stops_a_run_without_a_user(
    tmp_path: Path, survivor: "subprocess.Popen[bytes]", outcome: Outcome | None
) -> None:
    with pytest.raises(UnfinishedCallError, match=f"still runs .processes {survivor.pid}"):
        anyio.run(results, tmp_path, change, None, outcome)

    assert survivor.poll() is None


def test_fork_of_an_open_session_ignores_its_processes(tmp_path: Path, survivor: "subprocess.Popen[bytes]") -> None:
    log = log_path(tmp_path)
    fork(log, log.parent).replace(log)

    (result,) = anyio.run(results, tmp_path, change, AskedInTurn("It did not run"))

    assert "did not do its work" in result.text
    assert survivor.poll() is None
