"""Completion of what is typed: `/command` at the beginning, what may stand behind it, `@path` and `@agent`.

The rule: typing never waits. What is offered comes from lists that are there, and prompt_toolkit drops what comes too
late (`Buffer` compares the text before it shows anything).
"""

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from rapidfuzz import fuzz

from panpan.faces.terminal.input.file_index import FileIndex, find_paths
from panpan.faces.terminal.input.input_box import CommandCompletion
from panpan.session.command import Command
from panpan.system.files.paths import PathResolver
from panpan.types.mentions import written

MAX_OFFERED = 50
_MAX_TYPED_CHARS = 200
"""Of a path; whoever pastes more behind an @ wants no completion."""

_COMMAND = re.compile(r"/(\S*)")
_ARGUMENTS = re.compile(r"/(?P<name>\S+) +(?P<typed>\S.*)")
_MENTION = re.compile(r'(?<![^\s(\[{])@(?:"(?P<quoted>[^"\n]*)(?P<closed>")?|(?P<word>[^\s"]*))$')


class InputCompleter(Completer):
    """Offers commands, files, folders and agents.

    Args:
        commands: All there are.
        index: The files.
        paths: Says which of them may be shown.
        arguments: Returns what may stand behind a command.
        agents: Agents by name, each with what it is for, on one line.
    """

    def __init__(
        self,
        commands: Sequence[Command],
        index: FileIndex,
        paths: PathResolver,
        arguments: Callable[[Command], Sequence[str]] = lambda command: (),
        agents: Mapping[str, str] | None = None,
    ) -> None:
        self._commands = commands
        self._index = index
        self._paths = paths
        self._arguments = arguments
        self._agents = agents or {}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return the commands, or what may stand behind one; files are only offered asynchronously."""
        text = document.text_before_cursor
        if typed := _COMMAND.fullmatch(text):
            return self._command_completions(typed[1])
        if typed := _ARGUMENTS.fullmatch(text):
            return self._argument_completions(typed["name"], typed["typed"])
        return []

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield what fits, the best first."""
        for completion in self.get_completions(document, complete_event):
            yield completion
        typed = _MENTION.search(document.current_line_before_cursor)
        if typed is None or len(typed[0]) > _MAX_TYPED_CHARS:
            return
        if typed["quoted"] is None:
            for completion in self._agent_completions(typed["word"]):
                yield completion
        elif typed["closed"] and not typed["quoted"].endswith("/"):
            return  # behind a closing quote only a folder goes on
        files = await self._index.known()
        meta = "the workspace has more files than are known here" if files.is_partial else ""
        for path in await find_paths(files, typed["word"] or typed["quoted"] or "", MAX_OFFERED):
            if files.folder is not None and self._paths.may_show(files.folder / path):
                yield _path_completion(path, typed[0], meta)
                meta = ""  # once is enough

    def _command_completions(self, typed: str) -> Sequence[Completion]:
        """Return the commands that fit, the best first; those whose service is not there yet behind all others."""
        rank_by_name = {
            command.name: min(_rank(name, typed) for name in (command.name, *command.aliases))
            for command in self._commands
        }
        fitting = [command for command in self._commands if rank_by_name[command.name] < _NO_MATCH]
        fitting.sort(key=lambda command: (command.is_missing, rank_by_name[command.name], command.name))
        return [
            CommandCompletion(
                command.name,
                typed,
                arguments=command.arguments,
                detail="not there yet" if command.is_missing else command.help,
                needs_arguments=command.needs_arguments,
                is_missing=command.is_missing,
            )
            for command in fitting
        ]

    def _argument_completions(self, name: str, typed: str) -> Sequence[Completion]:
        """Return what may stand behind a command and has all the words that are typed."""
        command = next((each for each in self._commands if name in (each.name, *each.aliases)), None)
        words = typed.lower().split()
        offered = self._arguments(command) if command is not None else ()
        fitting = [text for text in offered if all(word in text.lower() for word in words)]
        fitting.sort(key=lambda text: not text.lower().startswith(typed.lower()))
        return [Completion(text, start_position=-len(typed)) for text in fitting[:MAX_OFFERED]]

    def _agent_completions(self, typed: str) -> list[Completion]:
        ranked = sorted((_rank(name, typed), name) for name in self._agents)
        return [
            Completion(f"@{name} ", start_position=-len(typed) - 1, display_meta=self._agents[name] or "agent")
            for rank, name in ranked
            if rank < _NO_MATCH
        ]


_NO_MATCH = 1000.0


def _rank(name: str, typed: str) -> float:
    """Return how well a name fits, less for better: begins so, has it, has its letters, is misspelt."""
    name, typed = name.lower(), typed.lower()
    if name.startswith(typed):
        return float(len(name) - len(typed) if typed else 0)
    if typed in name:
        return 100.0 + name.index(typed)
    letters = iter(name)
    if all(letter in letters for letter in typed):
        return 200.0 + len(name)
    likeness = fuzz.ratio(name, typed)
    return 400.0 - likeness if likeness >= 70 and len(typed) > 2 else _NO_MATCH


def _path_completion(path: str, typed: str, meta: str) -> Completion:
    text = written(path) if path.endswith("/") else f"{written(path)} "
    return Completion(text, start_position=-len(typed), display=path, display_meta=meta)
