"""Project context: the place, git, the files, and the rules that are written for agents."""

from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.abc

from panpan.capabilities.project_context.collect import (
    LATE_GIT,
    ContextPlaces,
    LateText,
    StartSoon,
    late_git_reminder,
    take_project_context,
)
from panpan.capabilities.project_context.nested_memory import NestedMemory, ToldRules, rules_told
from panpan.capabilities.project_context.notes import TakenNotes, append_note, file_for_notes
from panpan.capabilities.project_context.settings import ProjectContextSettings
from panpan.config.locations import Locations
from panpan.core.conversation import Conversation
from panpan.core.hooks import Addition, Hook, Round
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.command import Command, Option, Terminal, number_options, say, say_pairs
from panpan.session.context import SessionContext
from panpan.session.reminders import ReminderSource
from panpan.session.user_hooks import HooksOfUser
from panpan.system.files.canonical import user_home
from panpan.system.text.terminal_text import clean_line
from panpan.types.messages import PROJECT_CONTEXT, SystemReminder


class ProjectContext(Capability):
    """Tells each agent of the project."""

    name = "project_context"
    settings_model = ProjectContextSettings
    settings: ProjectContextSettings
    _tasks: anyio.abc.TaskGroup

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self.notes = TakenNotes()

    def services(self) -> Iterable[object]:
        return (self,)

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        return (self.notes,) if agent.is_main else ()

    def note_files(self) -> Mapping[str, tuple[Path, Path | None]]:
        """Return the files that may take a note of the user, each with the folder that it may not lead out of."""
        locations = self.session.setup.locations
        return {
            "this project": (file_for_notes(locations.project_root), locations.project_root),
            "all projects": (file_for_notes(locations.home), None),
        }

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel("the session is over")

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        session, setup = self.session, self.session.setup
        home, locations, root = user_home(), setup.locations, agent.context.paths.root
        kinds = setup.loaded.files.kinds
        if agent.is_main:
            withholds = partial(session.gate.hides_from_context, root=setup.cwd)
            where = (setup.cwd, locations.project_root, home, locations.home)
            memory = NestedMemory(*where, session.warn, withholds, self._tell_loaded)
            folders = setup.settings.additional_directories
            places = ContextPlaces(setup.cwd, locations.project_root, locations.home, home, folders, withholds, kinds)
            start_soon = None if session.config.is_intercepted else self._start_soon  # a replay must not depend on time
            wait_s = self.settings.git_wait_s
            start = SessionStart(places, memory, session.warn, git_wait_s=wait_s, start_soon=start_soon)
            return (start, memory) if "project" in kinds else (start,)
        top = root if root != setup.cwd else locations.project_root  # in the worktree of the subagent or its parent
        withholds = partial(session.gate.hides_from_context, root=root)
        identity = agent.identity
        given = GivenContext(
            lambda: project_contexts(session.conversation), identity.worktree, is_recreated=identity.has_new_worktree
        )
        nested = NestedMemory(root, top, home, locations.home, session.warn, withholds)
        return (given, nested) if "project" in kinds else (given,)

    async def _tell_loaded(self, files: Sequence[str], reason: str) -> None:
        if (hooks := self.session.capabilities.find(HooksOfUser)) is not None:
            for file in files:
                await hooks.tell("InstructionsLoaded", reason, {"file_path": file, "load_reason": reason})

    def _start_soon(self, task: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._tasks.start_soon(task)

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return MEMORY_COMMANDS


class SessionStart(Hook):
    """Adds the project context behind the first message of a new session; a resumed one has it already.

    Args:
        places: Where to look.
        memory: Notes which rules are told.
        warn: Takes sentences for the user.
        git_wait_s: Seconds that the first request waits for git; what it says later is told with a later request.
        start_soon: Starts a task beside the session; None to wait for git however long it takes.
    """

    is_for_small_windows = False

    def __init__(
        self,
        places: ContextPlaces,
        memory: NestedMemory,
        warn: Callable[[str], None],
        *,
        git_wait_s: float,
        start_soon: StartSoon | None,
    ) -> None:
        self._places = places
        self._memory = memory
        self._warn = warn
        self._git_wait_s = git_wait_s
        self._start_soon = start_soon
        self._is_told = False
        self._git: LateText | None = None

    async def history_replaced(self, conversation: Conversation) -> None:
        self._is_told = False

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        if self._is_told or project_contexts(conversation):
            return ()
        context = await take_project_context(self._places, git_wait_s=self._git_wait_s, start_soon=self._start_soon)
        self._is_told = True
        self._git = context.git
        await self._memory.note_loaded(context.loaded)
        for warning in context.warnings:
            self._warn(warning)
        return (context.reminder,)

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        if self._git is None or self._git.text is None:
            return ()
        reminder, self._git = late_git_reminder(self._git.text), None
        return (reminder,)


WORKTREE = "worktree"

_RECREATED = (
    "Your worktree has been made again with the user's present files, since the one of before is gone: what you had "
    "changed there was merged into the project, was thrown away, or was nothing. Read files again before you rely on "
    "them."
)


class GivenContext(Hook):
    """Begins a subagent's conversation with its parent's project context, and a note on its worktree."""

    def __init__(
        self,
        context: Callable[[], Sequence[SystemReminder]],
        worktree: Path | None = None,
        *,
        is_recreated: bool = False,
    ) -> None:
        self._context = context
        self._worktree = worktree
        self._is_recreated = is_recreated

    async def turn_started(self, conversation: Conversation) -> Sequence[Addition]:
        told = {message.cause for message in conversation.messages if isinstance(message, SystemReminder)}
        added: list[SystemReminder] = []
        if PROJECT_CONTEXT not in told:
            for context in self._context():
                is_late = context.cause == LATE_GIT
                added.append(SystemReminder(text=context.text, cause=LATE_GIT if is_late else PROJECT_CONTEXT))
        if self._worktree is not None and WORKTREE not in told:
            text = (
                f"You work in {self._worktree}, a copy of the project that is yours alone: a git worktree with the "
                "user's present files, without those that git ignores. Change files there and nowhere else; what you "
                "change is put to them afterwards."
            )
            added.append(SystemReminder(text=text, cause=WORKTREE))
        elif self._worktree is not None and self._is_recreated:
            added.append(SystemReminder(text=_RECREATED, cause=WORKTREE))
        return added


def project_contexts(conversation: Conversation | None) -> Sequence[SystemReminder]:
    """Return the project context that a conversation got at its start, and what git said later."""
    messages = conversation.messages if conversation is not None else ()
    reminders = (message for message in messages if isinstance(message, SystemReminder))
    return [reminder for reminder in reminders if reminder.cause in (PROJECT_CONTEXT, LATE_GIT)]


async def _memory(terminal: Terminal, rest: str) -> None:
    told = rules_told(terminal.session.conversation.messages)
    if told:
        say(terminal, "The model has these files; later ones win:", "strong")
    else:
        told = await _rules_to_come(terminal)
        if not told:
            say(terminal, "there is no AGENTS.md or CLAUDE.md for this folder; /init lets the model write one")
            return
        say(terminal, "The model gets these files with the first message; later ones win:", "strong")
    say_pairs(terminal, [(rules.path, _of_rules(rules)) for rules in told])
    say(terminal, "Files of deeper folders follow when the model first touches something there.", "dim")


async def _rules_to_come(terminal: Terminal) -> Sequence[ToldRules]:
    """Return the files that a session which begins now would tell the model of."""
    cwd = terminal.session.info.cwd
    locations = Locations.find(cwd, terminal.env)
    withholds = partial(terminal.session.gate.hides_from_context, root=cwd)
    places = ContextPlaces(cwd, locations.project_root, locations.home, user_home(), withholds=withholds)
    context = await take_project_context(places)
    for warning in context.warnings:
        say(terminal, warning, "warn")
    return rules_told([context.reminder])


def _of_rules(rules: ToldRules) -> str:
    origin = f", imported by {rules.imported_by}" if rules.imported_by else ""
    return f"{rules.chars:,} characters{origin}"


async def _note(terminal: Terminal, words: str) -> None:
    if not words:
        say(terminal, "/note WORDS, or # WORDS, keeps a rule for the model in AGENTS.md")
        return
    context = terminal.session[ProjectContext]
    files = context.note_files()
    options = [Option(f"For {whom}", str(file)) for whom, (file, _) in files.items()]
    if (picked := await terminal.choose("Where should the note go?", number_options(options))) is None:
        return
    file, within = list(files.values())[picked]
    await append_note(words, file, within)
    if project_contexts(terminal.session.conversation):  # else the model gets the whole file with the first message
        context.notes.add(" ".join(words.split()), file)
    say(terminal, f"noted in {clean_line(str(file))}; the model hears of it with your next message")


MEMORY_COMMANDS: Sequence[Command] = (
    Command(
        "note",
        "Keep a rule for the model in AGENTS.md; so does a line that begins with #",
        _note,
        arguments="words",
        needs_arguments=True,
        is_immediate=True,
        needs_terminal=True,
    ),
    Command("memory", "Show the AGENTS.md and CLAUDE.md files in use", _memory, is_immediate=True),
)
