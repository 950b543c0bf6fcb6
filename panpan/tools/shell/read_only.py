"""Which shell commands only look: the first form of the analysis, for plain commands of known programs.

The rule: it fails closed. A command counts as read-only when every word of it is understood; whoever is asked
needlessly loses a moment, whoever is not asked may lose a file. The paths it names still have to be judged by whoever
runs it.
"""

from panpan.tools.shell.read_only_programs import FIND_OPTIONS, PROGRAMS, Program, fits
from panpan.tools.shell.simple_words import Words, split_commands


def is_read_only_command(command: str) -> bool:
    """Return whether running `command` in a shell changes nothing and starts only programs known to be harmless."""
    return read_only_paths(command) is not None


def read_only_paths(command: str) -> tuple[str, ...] | None:
    """Return the paths that a read-only command names, as it names them; None if it is not read-only."""
    commands = split_commands(command)
    if commands is None:
        return None
    paths: list[str] = []
    for words in commands:
        named = _paths_of(words)
        if named is None:
            return None
        paths += named
    return tuple(dict.fromkeys(paths))


def _paths_of(words: Words) -> list[str] | None:
    """Return the paths of one simple command, None where it is not known to be harmless."""
    name, arguments = words[0], list(words[1:])
    program = PROGRAMS.get(name)
    if program is None:
        return None
    if name == "find":
        return _find_paths(arguments)
    if name == "echo":
        return []  # prints its words, whatever they are
    return _Arguments(program).paths(arguments)


class _Arguments:
    """Reads the arguments of one command by the table."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._operands: list[str] = []
        self._has_pattern = False

    def paths(self, arguments: list[str]) -> list[str] | None:
        waiting = arguments[::-1]
        while waiting:
            word = waiting.pop()
            if word == "--":
                self._operands += waiting[::-1]
                break
            if word == "-" or not word.startswith("-"):
                self._operands.append(word)
                continue
            before = list(waiting)
            if not (self._takes_long(word) if word.startswith("--") else self._takes_short(word, waiting)):
                return None
            if self._operands:
                # Behind an operand, GNU still reads a flag and its value, BSD reads further operands: both must do.
                self._operands += [word, *before[len(waiting) :]]
        return self._judged_operands()

    def _takes_long(self, word: str) -> bool:
        flag, equals, _ = word.partition("=")
        self._has_pattern = self._has_pattern or flag in ("--regexp", "--files", "--type-list")
        return f"{flag}{equals}" in self._program.long.split()

    def _takes_short(self, word: str, waiting: list[str]) -> bool:
        """Read a cluster of letters, the last of which may take the rest or the next word as its value."""
        if self._program.number_flag and fits(word, r"-\d+"):
            return True
        for index, letter in enumerate(word[1:], start=2):
            value_regex = (self._program.valued or {}).get(letter)
            if value_regex is not None:
                self._has_pattern = self._has_pattern or letter in self._program.pattern_flags
                value = word[index:] or (waiting.pop() if waiting else None)
                return value is not None and fits(value, value_regex)
            if letter not in self._program.flags:
                return False
        return True

    def _judged_operands(self) -> list[str] | None:
        program, operands = self._program, self._operands
        if program.max_operands is not None and len(operands) > program.max_operands:
            return None
        if program.operands == "text":
            return [] if all(fits(operand, program.operand) for operand in operands) else None
        if program.operands == "script, paths":
            if not operands or not fits(operands[0], program.operand):
                return None
            operands = operands[1:]
        elif program.operands == "pattern, paths" and not self._has_pattern:
            operands = operands[1:]
        return _as_paths(operands)


def _find_paths(arguments: list[str]) -> list[str] | None:
    """Return the folders that find starts from; its expression begins at the first word that looks like one."""
    paths: list[str] = []
    waiting = arguments[::-1]
    while waiting and not waiting[-1].startswith(("-", "(", "!")):
        paths.append(waiting.pop())
    while waiting:
        values = FIND_OPTIONS.get(waiting.pop())
        if values is None or values > len(waiting):
            return None
        del waiting[len(waiting) - values :]
    return _as_paths(paths)


def _as_paths(operands: list[str]) -> list[str] | None:
    """Return operands as paths in the resolver's writing, where a tilde stands for the home and here it does not."""
    if "" in operands:
        return None
    return [f"./{operand}" if operand.startswith("~") else operand for operand in operands if operand != "-"]
