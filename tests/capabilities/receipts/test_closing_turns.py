"""Turns end with the evidence for their answer, and go on for what is missing only if the settings say so."""

from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path

import anyio

from panpan.capabilities.receipts.hooks import ClosingHook
from panpan.capabilities.receipts.session_receipts import SessionReceipt, SessionReceipts
from panpan.capabilities.receipts.settings import Verifying
from panpan.core.hooks import Hook
from panpan.receipts.staleness import Freshness
from panpan.session.session import Session
from panpan.types.events import Event, TurnEnded, Verification
from panpan.types.messages import SystemReminder
from tests.fakes.receipts import Ran, ran
from tests.fakes.scripted_llm import ScriptedLLM, call, say
from tests.fakes.session import session_in
from tests.fakes.tools import looking
from tests.system.backends import on_both_backends, run_on


class CommandsOfSession(Hook):
    """Receipts of a session; those in `next_turn` come with the next turn."""

    def __init__(self, root: Path, *next_turn: Ran) -> None:
        self.receipts = SessionReceipts(root, self._settled)
        self.next_turn = list(next_turn)
        self.is_stale = False
        self.are_taken = anyio.Event()
        self.are_taken.set()

    async def turn_started(self, conversation: object) -> Sequence[SystemReminder]:
        self.receipts.begin_turn()
        for one in self.next_turn:
            self.add(one)
        self.next_turn.clear()
        return ()

    def add(self, one: Ran, *, root: Path | None = None) -> None:
        receipts = self.receipts
        receipts.add(SessionReceipt(one.receipt, "", receipts.turn, root or receipts.root, self._look))

    async def _look(self, one: SessionReceipt) -> Freshness:
        return Freshness("stale", ["src/a.py"]) if self.is_stale else Freshness("fresh")

    async def _settled(self) -> None:
        await self.are_taken.wait()


async def ended(session: Session, prompt: str = "go") -> tuple[TurnEnded, list[Event]]:
    async with aclosing(session.submit(prompt)) as events:
        seen = [event async for event in events]
    assert isinstance(seen[-1], TurnEnded)
    return seen[-1], seen


async def evidence_for(
    root: Path, commands: CommandsOfSession, *answers: str, verifying: Verifying = "report"
) -> tuple[Verification | None, ScriptedLLM]:
    llm = ScriptedLLM(*map(say, answers))
    hooks = [commands, ClosingHook(commands.receipts, verifying)]
    async with session_in(root, llm, hooks=hooks) as session:
        last, _ = await ended(session)
    return last.verification, llm


@on_both_backends
def test_turn_ends_with_results_and_unshown_claims(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        commands = CommandsOfSession(tmp_path, ran("pytest", passed=12))
        found, _ = await evidence_for(tmp_path, commands, "All tests pass. It works on GPU.")

        assert found is not None
        assert [text.partition(" (")[0] for text in found.verified] == ["12 tests passed"]
        assert found.unverified == ("works on GPU",)

    run_on(backend, main)


async def test_turn_without_anything_to_say_has_no_evidence(tmp_path: Path) -> None:
    found, _ = await evidence_for(tmp_path, CommandsOfSession(tmp_path, ran("ls")), "I looked.")

    assert found is None


async def test_answer_that_only_explains_has_no_evidence(tmp_path: Path) -> None:
    commands = CommandsOfSession(tmp_path)
    llm = ScriptedLLM(say("A heap is faster."), say("A heap is faster."), say("I tested it on CUDA."))
    lines = []
    async with session_in(tmp_path, llm, hooks=[commands, ClosingHook(commands.receipts, "report")]) as session:
        for turn in range(3):
            commands.next_turn = [ran("python heap.py")] if turn == 1 else []
            last, _ = await ended(session)
            lines.append("" if last.verification is None else last.verification.line)

    assert lines == ["", 'unverified: "is faster"', 'unverified: "tested it on CUDA"']


async def test_requests_are_the_same_with_and_without_receipts(tmp_path: Path) -> None:
    asked = []
    for name, hooks in (("with", True), ("without", False)):
        (folder := tmp_path / name).mkdir()
        commands = CommandsOfSession(folder, ran("pytest", passed=1, failed=1, exit_code=1))
        llm = ScriptedLLM(call(("1", "Look", {})), say("All tests pass."), say("It works on GPU."))
        of_session = [commands, ClosingHook(commands.receipts, "report")] if hooks else []
        async with session_in(folder, llm, looking(), hooks=of_session) as session:
            await ended(session)
            await ended(session)
        asked.append([request.messages for request in llm.requests])

    assert [[message.model_dump(exclude={"uuid"}) for message in one] for one in asked[0]] == [
        [message.model_dump(exclude={"uuid"}) for message in one] for one in asked[1]
    ]


async def test_ask_once_asks_once(tmp_path: Path) -> None:
    commands = CommandsOfSession(tmp_path)
    answers = ("All tests pass.", "All tests pass.")

    found, llm = await evidence_for(tmp_path, commands, *answers, verifying="ask-once")

    assert found == Verification(unverified=("All tests pass",))
    reminders = [message for message in llm.requests[-1].messages if isinstance(message, SystemReminder)]
    assert len(llm.requests) == 2
    assert [reminder.cause for reminder in reminders] == ["answer:unverified"]
    assert '"All tests pass", but no command of this session shows that' in reminders[0].text


async def test_ask_once_is_silent_where_all_is_shown(tmp_path: Path) -> None:
    commands = CommandsOfSession(tmp_path, ran("pytest", passed=3))

    found, llm = await evidence_for(tmp_path, commands, "All tests pass.", verifying="ask-once")

    assert len(llm.requests) == 1
    assert found is not None
    assert found.unverified == ()


async def test_answer_that_takes_its_claim_back_is_enough(tmp_path: Path) -> None:
    answers = ("It works on GPU.", "I have not tested it on a GPU.")

    found, _ = await evidence_for(tmp_path, CommandsOfSession(tmp_path), *answers, verifying="require")

    assert found is None


async def test_require_asks_three_times_and_then_names_the_problem(tmp_path: Path) -> None:
    answers = ["It builds."] * 4

    found, llm = await evidence_for(tmp_path, CommandsOfSession(tmp_path), *answers, verifying="require")

    assert len(llm.requests) == 4
    assert found is not None
    assert found.problem.startswith('the answer claims "It builds", which no command of this session shows; ')


async def test_require_asks_nothing_in_the_last_round(tmp_path: Path) -> None:
    commands = CommandsOfSession(tmp_path)
    llm = ScriptedLLM(say("It builds."))
    hooks = [commands, ClosingHook(commands.receipts, "require")]
    async with session_in(tmp_path, llm, hooks=hooks, max_rounds=1) as session:
        last, _ = await ended(session)

    assert last.verification is not None
    assert last.verification.problem


async def test_answers_that_are_data_are_not_asked_about(tmp_path: Path) -> None:
    commands = CommandsOfSession(tmp_path)
    llm = ScriptedLLM(say("It builds."))
    hooks = [commands, ClosingHook(commands.receipts, "ask-once", may_ask=lambda: False)]
    async with session_in(tmp_path, llm, hooks=hooks) as session:
        await ended(session)

    assert len(llm.requests) == 1


async def test_earlier_result_is_told_once_when_it_becomes_stale(tmp_path: Path) -> None:
    commands = CommandsOfSession(tmp_path, ran("pytest", passed=12))
    llm = ScriptedLLM(say("Done."), say("Still."), say("Edited."), say("Bye."))
    lines = []
    async with session_in(tmp_path, llm, hooks=[commands, ClosingHook(commands.receipts, "report")]) as session:
        for turn in range(4):
            commands.is_stale = turn >= 2
            last, _ = await ended(session)
            lines.append("" if last.verification is None else last.verification.line.partition(":")[0])

    assert lines == ["verified", "", "stale", ""]


async def test_stale_result_is_told_although_the_model_was_asked(tmp_path: Path) -> None:
    commands = CommandsOfSession(tmp_path, ran("pytest", passed=12))
    llm = ScriptedLLM(say("Done."), say("It works on GPU."), say("I have not tested it on GPU."))
    async with session_in(tmp_path, llm, hooks=[commands, ClosingHook(commands.receipts, "ask-once")]) as session:
        await ended(session)
        commands.is_stale = True
        last, _ = await ended(session)

    assert last.verification is not None
    assert last.verification.line == "stale: 12 tests (pytest; src/a.py changed since)"


async def test_receipts_that_do_not_come_leave_the_line_out(tmp_path: Path) -> None:
    commands = CommandsOfSession(tmp_path, ran("pytest", passed=12))
    commands.are_taken = anyio.Event()
    llm = ScriptedLLM(say("All tests pass."))
    hook = ClosingHook(commands.receipts, "report", wait_s=0)
    async with session_in(tmp_path, llm, hooks=[commands, hook]) as session:
        last, _ = await ended(session)

    assert last.verification is None


async def test_old_failure_counts_behind_many_commands(tmp_path: Path) -> None:
    failed = ran("npm test", passed=1, failed=1, exit_code=1, framework="jest", files=["a.test.js"])
    many = [ran(f"pytest tests/test_{number}.py", passed=1) for number in range(60)]
    commands = CommandsOfSession(tmp_path, failed, *many, ran("pytest", passed=60))

    found, _ = await evidence_for(tmp_path, commands, "All tests pass.")

    assert found is not None
    assert found.unverified == ("All tests pass",)


async def test_tests_in_a_copy_of_the_workspace_show_nothing(tmp_path: Path) -> None:
    commands = CommandsOfSession(tmp_path)
    commands.add(ran("pytest", passed=12), root=tmp_path / "copy")

    found, _ = await evidence_for(tmp_path, commands, "All tests pass.")

    assert found == Verification(unverified=("All tests pass",))


async def test_folder_of_all_test_files_stands_for_all_tests(tmp_path: Path) -> None:
    for name in ("tests/test_a.py", "tests/test_b.py", "src/a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    await anyio.run_process(["git", "init", "-q", str(tmp_path)])
    commands = CommandsOfSession(tmp_path, ran("pytest tests", passed=2))

    whole, _ = await evidence_for(tmp_path, commands, "All tests pass.")
    (tmp_path / "src/test_c.py").touch()
    part, _ = await evidence_for(tmp_path, commands, "All tests pass.")

    assert whole is not None
    assert part is not None
    assert (whole.unverified, part.unverified) == ((), ("All tests pass",))


async def test_answer_in_two_parts_is_read_as_one(tmp_path: Path) -> None:
    commands = CommandsOfSession(tmp_path)
    llm = ScriptedLLM(say("All tests", stop_reason="max_tokens"), say(" pass."))
    async with session_in(
        tmp_path, llm, hooks=[commands, ClosingHook(commands.receipts, "report"), GoesOn()]
    ) as session:
        last, _ = await ended(session)

    assert last.verification == Verification(unverified=("All tests pass",))


class GoesOn(Hook):
    """Lets a reply that was cut go on."""

    async def after_round(self, round_: object, reply: object) -> Sequence[SystemReminder]:
        return [SystemReminder(text="go on")] if getattr(reply, "is_to_be_continued", False) else []
