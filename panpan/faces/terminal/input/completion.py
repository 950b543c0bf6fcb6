"""Completion in the input box: `/command` at the beginning, its arguments, `@path` and `@agent`.

The rule: typing never waits. Completions come from existing lists, and prompt_toolkit drops those that come too late
(`Buffer` compares the text before it shows anything).
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from rapidfuzz import fuzz

from panpan.faces.terminal.input.input_box import MAX_OFFERED, CommandCompletion
from panpan.hub.path_search import FileIndex, begins_word, find_paths
from panpan.session.command import Command
from panpan.system.files.paths import PathResolver
from panpan.types.attachments import quote_path
from panpan.types.pattern import compile_late

_MAX_TYPED_CHARS = 200
"""Most typed characters of a path that are completed; a longer text after an @ is a paste."""

_COMMAND = compile_late(r"/(\S*)")
_ARGUMENTS = compile_late(r"/(?P<name>\S+) +(?P<typed>\S.*)")
_MENTION = compile_late(r'(?<![^\s(\[{])@(?:"(?P<quoted>[^"\n]*)(?P<closed>")?|(?P<word>[^\s"]*))$')


class InputCompleter(Completer):
    """Completes commands, files, folders and agents, each with a line of description."""

    def __init__(
        self,
        commands: Sequence[Command],
        index: FileIndex,
        paths: PathResolver,
        arguments: Callable[[Command], Sequence[str]] = lambda command: (),
        agents: Mapping[str, str] | None = None,
        others: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self._commands = commands
        self._index = index
        self._paths = paths
        self._arguments = arguments
        self._agents = agents or {}
        self._others = others

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return commands, or arguments of one; files are only completed asynchronously."""
        text = document.text_before_cursor
        if typed := _COMMAND.fullmatch(text):
            return self._command_completions(typed[1])
        if typed := _ARGUMENTS.fullmatch(text):
            return self._argument_completions(typed["name"], typed["typed"])
        return []

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        for completion in self.get_completions(document, complete_event):
            yield completion
        typed = _MENTION.search(document.current_line_before_cursor)
        if typed is None or len(typed[0]) > _MAX_TYPED_CHARS:
            return
        room = MAX_OFFERED
        if typed["quoted"] is None:
            for completion in self._name_completions(typed["word"]):
                room -= 1
                yield completion
        elif typed["closed"] and not typed["quoted"].endswith("/"):
            return  # after a closing quote, only a folder has completions
        files = await self._index.known()
        meta = "the workspace has more files than are known here" if files.is_partial else ""
        for path in await find_paths(files, typed["word"] or typed["quoted"] or "", room):
            if files.folder is not None and self._paths.may_show(files.folder / path):
                yield _path_completion(path, typed[0], meta)
                meta = ""  # once is enough

    def _command_completions(self, typed: str) -> Sequence[Completion]:
        """Return the matching commands, the best first."""
        rank_by_name = {
            command.name: min(_rank(name, typed) for name in (command.name, *command.aliases))
            for command in self._commands
        }
        fitting = [command for command in self._commands if rank_by_name.get(command.name, _NO_MATCH) < _NO_MATCH]
        fitting.sort(key=lambda command: (rank_by_name[command.name], command.name))
        return [
            CommandCompletion(
                command.name,
                typed,
                arguments=command.arguments,
                detail=command.help,
                needs_arguments=command.needs_arguments,
            )
            for command in fitting
        ]

    def _argument_completions(self, name: str, typed: str) -> Sequence[Completion]:
        """Return the arguments of a command that contain all typed words."""
        command = next((each for each in self._commands if name in (each.name, *each.aliases)), None)
        words = typed.lower().split()
        offered = self._arguments(command) if command is not None else ()
        fitting = [text for text in offered if all(word in text.lower() for word in words)]
        fitting.sort(key=lambda text: not text.lower().startswith(typed.lower()))
        return [Completion(text, start_position=-len(typed)) for text in fitting[:MAX_OFFERED]]

    def _name_completions(self, typed: str) -> list[Completion]:
        """Return the matching agents, then a few things of others, the best first; files have to have room, too."""
        found: list[Completion] = []
        agents = {name: line or "agent" for name, line in self._agents.items()}
        for about, most in ((agents, MAX_OFFERED), (self._others(), _MOST_OTHERS)):
            ranked = sorted((_rank(name, typed), name) for name in about)
            found += [
                Completion(f"@{name} ", start_position=-len(typed) - 1, display_meta=about[name])
                for rank, name in ranked[:most]
                if rank < _NO_MATCH
            ]
        return found


_NO_MATCH = 1000.0
_MOST_OTHERS = 10


def _rank(name: str, typed: str) -> float:
    """Return the rank of a name, lowest for the best match: prefix, start of a word, part, letters, misspelling."""
    name, typed = name.lower(), typed.lower()
    if name.startswith(typed):
        return float(len(name) - len(typed) if typed else 0)
    if typed in name:
        return (50.0 if begins_word(name, typed) else 100.0) + name.index(typed)
    letters = iter(name)
    if all(letter in letters for letter in typed):
        return 200.0 + len(name)
    likeness = fuzz.ratio(name, typed)
    return 400.0 - likeness if likeness >= 70 and len(typed) > 2 else _NO_MATCH


def _path_completion(path: str, typed: str, meta: str) -> Completion:
    text = quote_path(path) if path.endswith("/") else f"{quote_path(path)} "
    return Completion(text, start_position=-len(typed), display=path, display_meta=meta)
