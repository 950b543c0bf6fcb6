"""Answers to attempts that wait for a person, and the end of attempts that a person cancels.

The rule: an answer is one whole file, and the next run of the attempt uses it. Nothing is answered by default.
"""

from collections.abc import Sequence

import anyio

from panpan.batch.coordination.reconciling import Asking
from panpan.batch.store.folder import AttemptFolder, CampaignFolder, write_whole
from panpan.batch.store.lease import holder_of
from panpan.batch.store.naming import find_named
from panpan.batch.store.records import Answer, Needs, Outcome, Task
from panpan.errors import ConfigError
from panpan.types.dataclass import dataclass

_LOOK_S = 0.25
SKIPPED = "Nobody answers this. Go on as you think best, and say at the end what you assumed."
REFUSED = "This is not allowed. Go on without it, or say why the task cannot be done."


@dataclass(frozen=True, slots=True)
class Given:
    """An answer as a person gives it; one of these."""

    text: str = ""
    choice: int | None = None
    """Number of a choice, from 1."""
    allows: bool = False
    unfinished: Outcome | None = None
    skips: bool = False


def find_waiting(tasks: Sequence[Task], waiting: Sequence[Asking], word: str) -> Asking:
    """Return the waiting attempt that a word names; the attempt may be left out if only one of the task waits.

    Raises:
        ConfigError: It names no task, or no attempt at it waits, or several do.
    """
    named = find_named(tasks, word)
    found = [one for one in waiting if one.task.id == named.task.id and named.attempt in (None, one.attempt)]
    if not found:
        raise ConfigError(f"{word} waits for no answer; `panpan batch answer DIR` lists those that do")
    if len(found) > 1:
        numbers = ", ".join(str(one.attempt) for one in found)
        raise ConfigError(f"several attempts at {word} wait: {numbers}; name one as {word}/{found[0].attempt}")
    return found[0]


def answer_of(needs: Needs, given: Given) -> Answer:
    """Return the answer for what an attempt needs.

    Raises:
        ConfigError: It does not fit.
    """
    if given.unfinished is not None:
        if needs.kind != "unfinished":
            raise ConfigError(
                "--unfinished is for a command that a crash cut off; this attempt waits for something else"
            )
        return Answer(text=given.text, unfinished=given.unfinished)
    if needs.kind == "unfinished":
        raise ConfigError("say what became of the command: --unfinished finished, not-run or unclear")
    if given.allows:
        if not needs.allowed_with:
            raise ConfigError(
                "nothing can allow this beforehand; answer with a text, or open it with panpan batch attach"
            )
        return Answer(text=given.text, flags=needs.allowed_with)
    if given.choice is not None:
        if not 1 <= given.choice <= len(needs.choices):
            raise ConfigError(f"there is no choice {given.choice}; {_choices(needs)}")
        return Answer(text=needs.choices[given.choice - 1])
    if given.text:
        return Answer(text=given.text)
    if given.skips:
        return Answer(text=SKIPPED if needs.kind == "question" else REFUSED)
    raise ConfigError(f"there is no answer; {_choices(needs)}")


def _choices(needs: Needs) -> str:
    match needs.kind:
        case "permission" | "plan":
            return "give --allow, --skip to refuse it, or a text for the model"
        case _:
            numbers = f"--choice 1 to {len(needs.choices)}, " if needs.choices else ""
            return f"give {numbers}a text, or --skip to let the model decide"


def cancel(folder: CampaignFolder, words: Sequence[str]) -> Sequence[str]:
    """Mark attempts as cancelled, and return their labels; a task without a number means all its attempts.

    Raises:
        ConfigError: A word names no task or attempt, or an attempt that has ended.
        OutputError: The mark cannot be written.
    """
    tasks, attempts = folder.tasks(), folder.frozen().campaign.attempts
    marked: list[AttemptFolder] = []
    labels = []
    for word in words:
        named = find_named(tasks, word)
        if (named.attempt or 1) > attempts:
            raise ConfigError(f"{word} has no attempt {named.attempt}; the campaign makes {attempts} at each task")
        numbers = [named.attempt] if named.attempt else range(1, attempts + 1)
        open_ = [one for number in numbers if not (one := folder.attempt(named.task.id, number)).result()]
        if not open_:
            raise ConfigError(f"{word} has ended, so there is nothing to cancel")
        marked += open_
        labels += [named.task.attempt_label(one.number) for one in open_]
    for attempt in marked:
        attempt.path.mkdir(parents=True, exist_ok=True)
        write_whole(attempt.cancel, b"")
    return labels


async def stop_campaign(folder: CampaignFolder, wait_s: float) -> str:
    """Ask the panpan that runs the campaign to stop, wait for that, and return what came of it.

    Raises:
        OutputError: The folder cannot be written.
        ConfigError: It did not stop in time.
    """
    if (holder := await holder_of(folder.lease)) is None:
        return "the campaign does not run"
    write_whole(folder.stop, b"")
    with anyio.move_on_after(wait_s):
        while await holder_of(folder.lease) is not None:  # noqa: ASYNC110 - another process, which tells nobody
            await anyio.sleep(_LOOK_S)
        return "the campaign has stopped"
    raise ConfigError(
        f"process {holder.pid} on {holder.host} has not stopped within {wait_s:.0f} s; it does as soon as it sees "
        f"{folder.stop}"
    )
