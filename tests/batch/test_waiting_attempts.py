"""An attempt that needs a person waits, and uses the answer once."""

from pathlib import Path

from panpan.batch.attempts.session_runs import ANSWERED
from panpan.batch.store.records import Answer, Finished, Waiting
from tests.batch.attempt_runs import SETTINGS, AttemptRuns, lines_of, prompts_of
from tests.model_server import ToolCall, calls, say, serving
from tests.prepared_command import PREPARED

QUESTION = {
    "question": "Which seed?",
    "header": "Seed",
    "options": [{"label": "1", "description": "as in the paper"}, {"label": "2", "description": ""}],
}
ASK = calls(ToolCall("AskUserQuestion", {"questions": [QUESTION]}))
CAREFUL = '[attempt]\nflags = ["--sandbox", "off"]\n'
WRITE = calls(ToolCall("Write", {"file_path": "made.txt", "content": "x\n"}))


async def test_question_waits_for_its_answer_and_goes_on(tmp_path: Path) -> None:
    with serving([ASK, say("Seed 1.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        first = await runs.run()
        again = await runs.run()
        assert isinstance(first, Waiting)
        assert first == again
        assert (first.needs.kind, first.needs.choices) == ("question", ("1", "2"))
        assert runs.attempt.needs() == first.needs
        assert len(server.requests) == 1, "nothing runs before the answer"

        runs.attempt.write_answer(Answer(text="Take seed 1."))
        result = await runs.result()

    assert (result.status, result.message, result.tries) == ("done", "Seed 1.", 2)
    assert prompts_of(server.requests[1]) == [runs.task.prompt, "Take seed 1."]
    assert (runs.attempt.needs(), runs.attempt.answer()) == (None, None)
    assert sum(event["type"] == "result" for event in lines_of(runs.attempt.events)) == 2


async def test_permission_is_given_by_flags_that_stay(tmp_path: Path) -> None:
    with serving([WRITE, WRITE, ASK, WRITE, say("Written.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED, CAREFUL)
        asked = await runs.run()
        assert isinstance(asked, Waiting)
        assert asked.needs.kind == "permission"
        runs.attempt.write_answer(Answer(flags=asked.needs.allowed_with))
        asked_more = await runs.run()
        assert isinstance(asked_more, Waiting)
        assert asked_more.needs.kind == "question"
        assert (runs.workspace / "made.txt").exists()
        runs.attempt.write_answer(Answer(text="1"))
        result = await runs.result()

    assert result.status == "done"
    assert prompts_of(server.requests[1]) == [runs.task.prompt, ANSWERED]
    assert prompts_of(server.requests[-1]) == [runs.task.prompt, ANSWERED, "1"]


async def test_refusing_campaign_never_waits(tmp_path: Path) -> None:
    with serving([WRITE, say("I could not write.")]) as server:
        result = await AttemptRuns(tmp_path, server, PREPARED, f'{CAREFUL}when_asked = "refuse"\n').result()

    assert (result.status, result.ended_by, result.message) == ("done", "refused", "I could not write.")


async def test_answer_that_a_killed_run_took_is_not_sent_again(tmp_path: Path) -> None:
    with serving([ASK, say("Seed 1."), say("All done.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        await runs.run()
        runs.attempt.write_answer(Answer(text="Take seed 1."))
        needs = runs.attempt.needs()
        assert needs is not None
        assert isinstance(await runs.run(), Finished)
        # as if the worker had been killed before it knew that the answer has reached the model
        (runs.attempt.path / "result.json").unlink()
        state = runs.attempt.state()
        assert state is not None
        runs.attempt.write_state(state.model_copy(update={"ended_by": None, "answered_after": 1}))
        runs.attempt.write_needs(needs)
        runs.attempt.write_answer(Answer(text="Take seed 1."))
        result = await runs.result()

    assert result.message == "All done."
    assert [prompt.startswith("Take") for prompt in prompts_of(server.requests[-1])] == [False, True, False]
    assert (runs.attempt.needs(), runs.attempt.answer()) == (None, None)


async def test_answer_that_never_reached_the_model_is_sent_again(tmp_path: Path) -> None:
    with serving([ASK, say("Seed 1.")]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED)
        await runs.run()
        runs.attempt.write_answer(Answer(text="Take seed 1.", flags=("--max-turns", "40")))
        state = runs.attempt.state()
        assert state is not None
        # as if the worker had been killed between the note of the run and its prompt
        taken = {"tries": 2, "answered_after": 1, "flags": ("--max-turns", "40")}
        runs.attempt.write_state(state.model_copy(update=taken))
        result = await runs.result()

    assert (result.status, result.tries) == ("done", 3)
    assert prompts_of(server.requests[1]) == [runs.task.prompt, "Take seed 1."]
    ended = runs.attempt.state()
    assert ended is not None
    assert ended.flags == ("--max-turns", "40"), "once"


async def test_waiting_attempt_can_be_cancelled(tmp_path: Path) -> None:
    with serving([ASK]) as server:
        runs = AttemptRuns(tmp_path, server, PREPARED, SETTINGS)
        assert isinstance(await runs.run(), Waiting)
        runs.attempt.cancel.touch()
        result = await runs.result()

    assert (result.status, result.ended_by) == ("cancelled", "cancel")
    assert result.spent.tokens == 15
    assert runs.attempt.needs() is None
