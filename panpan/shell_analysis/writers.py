"""Files that well-known programs write which are not read-only, as far as their words name them.

The rule: what is returned is all that the program writes; where a word is only known when it runs, or the program is
not known here, that is None. It may name more than is written, such as the value of a flag.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from panpan.shell_analysis.facts import Word
from panpan.shell_analysis.languages import SED_SCRIPT, fits
from panpan.types.dataclass import dataclass

_Roles: TypeAlias = Literal["all", "last", "moved", "behind the mode"]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Operands that a program writes."""

    roles: _Roles
    valued: str = ""
    """Letters of flags with a value in the next word, which is no operand."""
    runs_code: bool | None = False
    only_creates: bool = False
    """True if it only makes what is empty, and takes nothing away."""


_WRITERS: Mapping[str, _Writer] = {
    "chgrp": _Writer("behind the mode"),
    "chmod": _Writer("behind the mode"),
    "chown": _Writer("behind the mode"),
    "cp": _Writer("last", "St"),
    "install": _Writer("last", "gmoSt", runs_code=None),  # may run any program to strip the file
    "link": _Writer("last"),
    "ln": _Writer("last", "St"),
    "mkdir": _Writer("all", "mZ", only_creates=True),
    "mkfifo": _Writer("all", "mZ"),
    "mv": _Writer("moved", "St"),
    "rm": _Writer("all"),
    "rmdir": _Writer("all"),
    "shred": _Writer("all", "ns"),
    "tee": _Writer("all"),
    "touch": _Writer("all", "dtr", only_creates=True),
    "truncate": _Writer("all", "sr"),
    "unlink": _Writer("all"),
}
_BARE_FLAGS = frozenset({
    "--archive", "--attributes-only", "--changes", "--create", "--debug", "--dereference", "--dir", "--directory",
    "--force", "--ignore-fail-on-non-empty", "--link", "--no-clobber", "--no-create",
    "--no-dereference", "--no-preserve-root", "--no-target-directory", "--one-file-system", "--parents", "--quiet",
    "--recursive", "--relative", "--silent", "--symbolic", "--symbolic-link", "--verbose", "--zero",
    "--append", "--ignore-interrupts", "--io-blocks",
    "--in-place", "--null-data", "--regexp-extended", "--separate", "--unbuffered",
})  # fmt: skip
_OPTIONAL_VALUES = frozenset({"--interactive", "--output-error", "--preserve", "--preserve-root", "--reflink",
                              "--update"})  # fmt: skip
_VALUED_FLAGS = frozenset({
    "--date", "--expression", "--from", "--group", "--iterations", "--mode", "--no-preserve", "--owner", "--reference",
    "--size", "--sparse", "--target-directory", "--time",
})  # fmt: skip
"""Long flags of these programs: alone, with a value in the same word or none, with one also in the next word. GNU takes
any beginning of one for it, so the meaning of all others is unknown."""
_FOLDER_FLAGS = ("-t", "--target-directory")
_REFERENCE_FLAGS = ("-r", "--reference")


@dataclass(frozen=True, slots=True)
class Written:
    """Words that name the files a writer reads and writes."""

    reads: tuple[Word, ...]
    writes: tuple[Word, ...]
    runs_code: bool | None = False
    only_creates: bool = False


def is_writer(name: str) -> bool:
    """True if a program writes the files that it is given, and runs nothing."""
    return name in _WRITERS


def written_by(name: str, words: Sequence[Word]) -> Written | None:
    """Return what a program touches when it is given `words`, None if that is not known."""
    if any(word.text is None and not word.is_glob for word in words):
        return None
    if name == "dd":
        return _written_by_dd(words)
    if name == "sed":
        return _written_by_sed(words)
    writer = _WRITERS.get(name)
    return _operands_of(writer, words) if writer else None


def _operands_of(writer: _Writer, words: Sequence[Word]) -> Written | None:
    operands: list[Word] = []
    targets: list[Word] = []
    read: list[Word] = []
    for flag, value in _flags_and_operands(words, writer.valued):
        if flag == _UNKNOWN_FLAG:
            return None
        if flag in _FOLDER_FLAGS and value and writer.roles in ("last", "moved"):
            targets.append(value)
        elif flag in _REFERENCE_FLAGS and value:
            read.append(value)
        elif not flag and value:
            operands.append(value)
    match writer.roles:
        case "all":
            has_glob = any(operand.is_glob for operand in operands)
            return Written(tuple(read), tuple(operands), writer.runs_code, writer.only_creates and not has_glob)
        case "behind the mode":
            changed = operands if read else operands[1:]
            return Written(tuple(read), tuple(changed), writer.runs_code)
        case "moved":
            return Written(tuple(operands), (*operands, *targets), writer.runs_code)
        case "last":
            sources, last = (operands, targets) if targets else (operands[:-1], operands[-1:])
            # With one operand, ln puts the link into the working directory.
            return Written(tuple(sources), tuple(last) if len(operands) > 1 or targets else (_HERE,), writer.runs_code)


_HERE = Word(".", ".")


_UNKNOWN_FLAG = "--"


def _flags_and_operands(words: Sequence[Word], valued: str) -> Iterator[tuple[str, Word | None]]:
    """Yield each flag with its value, if it has one, `_UNKNOWN_FLAG` for others, and an empty one for an operand."""
    waiting = list(words)[::-1]
    while waiting:
        word = waiting.pop()
        text = word.text if word.text is not None else word.pattern
        if text == "--":
            yield from (("", operand) for operand in waiting[::-1])
            return
        if text == "-" or not text.startswith("-") or word.is_glob:
            yield "", word
        elif text.startswith("--"):
            yield _long_flag(text, waiting)
        elif text[-1] in valued and not any(letter in valued for letter in text[1:-1]) and waiting:
            yield f"-{text[-1]}", waiting.pop()
        else:
            first = next((at for at, letter in enumerate(text) if at and letter in valued), None)
            value = text[first + 1 :] if first else ""
            yield f"-{text[first]}" if first else text, Word(value, value) if value else None


def _long_flag(text: str, waiting: list[Word]) -> tuple[str, Word | None]:
    """Return a long flag, with its value if it has one; the value may be the next of the words."""
    flag, equals, value = text.partition("=")
    if equals:
        is_known = flag in _VALUED_FLAGS or flag in _OPTIONAL_VALUES
        return (flag, Word(value, value)) if is_known else (_UNKNOWN_FLAG, None)
    if flag in _VALUED_FLAGS and waiting:
        return flag, waiting.pop()
    return (flag if flag in _BARE_FLAGS or flag in _OPTIONAL_VALUES else _UNKNOWN_FLAG), None


def _written_by_dd(words: Sequence[Word]) -> Written:
    def named(key: str) -> tuple[Word, ...]:
        values = [word.text.removeprefix(key) for word in words if word.text and word.text.startswith(key)]
        return tuple(Word(value, value) for value in values)

    return Written(named("if="), named("of="))


def _written_by_sed(words: Sequence[Word]) -> Written | None:
    """Return the files that `sed -i` changes, where its scripts are known to write and run nothing else."""
    read = list(_flags_and_operands(words, "efl"))
    flags = [flag for flag, _ in read if flag]
    if _UNKNOWN_FLAG in flags:
        return None
    # With a suffix it keeps the old content in backup files.
    if not any(flag in ("-i", "-Ei", "-ri", "-ni", "--in-place") for flag in flags):
        return None
    if any(flag.startswith("-i") and flag != "-i" for flag in flags):
        return None
    operands = [word for flag, word in read if not flag and word]
    scripts = [word for flag, word in read if flag in ("-e", "--expression") and word]
    if not scripts:
        scripts, operands = operands[:1], operands[1:]
    is_known = bool(scripts) and not any(flag.startswith("-f") for flag in flags)
    if not is_known or not all(fits(script.text or "", SED_SCRIPT) for script in scripts):
        return None
    return Written((), tuple(operands))
