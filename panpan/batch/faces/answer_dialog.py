"""`panpan batch answer`: the questions of attempts, listed or asked on a terminal.

The rule: a person sees every character of what they allow.
"""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
import click

from panpan.batch.coordination.reconciling import Asking, waiting_attempts
from panpan.batch.faces.answering import Given, answer_of, find_waiting
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.lease import holder_of
from panpan.batch.store.records import Needs
from panpan.batch.store.wording import batch_command, shortened, typed
from panpan.cli_kit.questions import TerminalQuestions
from panpan.errors import ConfigError
from panpan.session.command import Option
from panpan.system.text.terminal_text import clean_line, escape_invisible

_OTHER = "Another answer, in your words"
_LATER = "Leave it for later"
_MAX_LABEL_CHARS = 200


def answer(folder: CampaignFolder, word: str | None, given: Mapping[str, Any], form: str) -> int:
    """Answer an attempt, or list those that wait; on a terminal, ask what is not given.

    Args:
        folder: The campaign's folder.
        word: Name of the attempt; None: the user picks one, or all are listed.
        given: The options, by the fields of `Given`.
        form: `text` or `json`, for the list.

    Raises:
        ConfigError: The attempt does not wait, or the answer does not fit.
        OutputError: The answer cannot be written.
    """
    tasks = folder.tasks()
    waiting = list(waiting_attempts(folder, tasks))
    asks = sys.stdin.isatty() and sys.stdout.isatty() and form == "text"
    answered = Given(**given)
    if word is not None:
        named = find_waiting(tasks, waiting, word)
        _answer_one(folder, named, anyio.run(_asked, named) if answered == Given() and asks else answered)
        return 0
    if answered != Given():
        raise ConfigError("name the attempt to answer; `panpan batch answer DIR` lists those that wait")
    if not asks or not waiting:
        _list(folder, waiting, form)
        return 0
    while waiting and (one := anyio.run(_picked, waiting)) and _answer_one(folder, one, anyio.run(_asked, one)):
        click.echo("")
        waiting = [other for other in waiting_attempts(folder, tasks) if other != one]
    return 0


def _answer_one(folder: CampaignFolder, one: Asking, given: Given | None) -> bool:
    """Write the answer to an attempt; return False if the user gave none."""
    if given is None:
        click.echo("nothing was answered")
        return False
    folder.attempt(one.task.id, one.attempt).write_answer(answer_of(one.needs, given))
    runs = anyio.run(holder_of, folder.lease) is not None
    then = "the campaign goes on with it" if runs else f"go on with it: {batch_command('run', folder.path)}"
    click.echo(f"answered {clean_line(one.label)}; {then}")
    return True


def _list(folder: CampaignFolder, waiting: Sequence[Asking], form: str) -> None:
    if form == "json":
        rows = [{"attempt": one.label, "task_id": one.task.id, **one.needs.model_dump(mode="json")} for one in waiting]
        click.echo(json.dumps(rows))
        return
    if not waiting:
        click.echo("no attempt waits for an answer")
        return
    for one in waiting:
        click.echo(f"{clean_line(one.label)} waits for {_kind(one.needs)}:")
        for line in question_lines(one.needs):
            click.echo(f"  {line}")
        command = batch_command("answer", folder.path, typed(one.label, one.task.id, one.attempt))
        click.echo(f"  answer: {command} {_hint(one.needs)}\n")


def _kind(needs: Needs) -> str:
    kinds = {"question": "an answer", "permission": "a permission", "plan": "the approval of its plan"}
    return kinds.get(needs.kind, "word on a command that a crash cut off")


def question_lines(needs: Needs) -> Sequence[str]:
    """Return the question with its numbered choices, every character visible."""
    choices = [f"{number}. {choice}" for number, choice in enumerate(needs.choices, 1)]
    allowed = [f"(--allow adds: {shlex.join(needs.allowed_with)})"] if needs.allowed_with else []
    return escape_invisible("\n".join([needs.text, *choices, *allowed])).split("\n")


def _hint(needs: Needs) -> str:
    match needs.kind:
        case "permission" | "plan":
            return "--allow" if needs.allowed_with else "TEXT"
        case "unfinished":
            return "--unfinished finished|not-run|unclear"
        case _:
            return "--choice N" if needs.choices else "TEXT"


async def _picked(waiting: Sequence[Asking]) -> Asking | None:
    if len(waiting) == 1:
        return waiting[0]
    options = [Option(_short(f"{one.label}: {one.needs.text}")) for one in waiting]
    picked = await TerminalQuestions().choose("Which attempt?", options)
    return None if picked is None else waiting[picked]


async def _asked(one: Asking) -> Given | None:
    """Return the answer that the user gives on the terminal; None if they leave."""
    choices = _answers(one.needs)
    head = [f"{clean_line(one.label)} waits for {_kind(one.needs)}.", f"Its task: {shortened(one.task.prompt)}"]
    title = "\n".join([*head, "", *_title(one.needs), "", "Your answer:"])
    picked = await TerminalQuestions().choose(title, [*(Option(_short(label)) for label, _ in choices), Option(_LATER)])
    if picked is None or picked == len(choices):
        return None
    given = choices[picked][1]
    if given is not None:
        return given
    text = await anyio.to_thread.run_sync(_line)
    return Given(text=text) if text else None


def _title(needs: Needs) -> Sequence[str]:
    lines = escape_invisible(needs.text).split("\n")
    allowed = [f"Allowed with: {escape_invisible(shlex.join(needs.allowed_with))}"] if needs.allowed_with else []
    return [*lines, *allowed]


def _answers(needs: Needs) -> Sequence[tuple[str, Given | None]]:
    """Return the offered answers, each with its label; None stands for words of the user."""
    other = (_OTHER, None)
    match needs.kind:
        case "permission" | "plan":
            allow = [("Allow it" if needs.kind == "permission" else "Approve the plan", Given(allows=True))]
            return [*(allow if needs.allowed_with else ()), ("Refuse it, and go on", Given(skips=True)), other]
        case "unfinished":
            return [
                ("It did its work", Given(unfinished="finished")),
                ("It did not run", Given(unfinished="not-run")),
                ("Unclear: the model looks", Given(unfinished="unclear")),
            ]
        case _:
            offered = [(choice, Given(choice=number)) for number, choice in enumerate(needs.choices, 1)]
            return [*offered, ("Let the model decide", Given(skips=True)), other]


def _short(text: str) -> str:
    line = clean_line(text)
    return line if len(line) <= _MAX_LABEL_CHARS else f"{line[:_MAX_LABEL_CHARS]}…"


def _line() -> str:
    try:
        return input("Your answer: ").strip()
    except EOFError:
        return ""
