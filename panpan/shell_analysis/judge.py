"""Analysis of a command line: its text is parsed, and the effect of each of its simple commands is judged.

The rule: `analyse` is the one way in; every decision about a command line uses these facts. A command is
read-only only on the word of a row of the table of programs. What is said of all others serves to refuse and to
explain: where it is not certain, it is None.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from urllib.parse import unquote

from panpan.shell_analysis.arguments import ParsedArguments, read_arguments
from panpan.shell_analysis.facts import (
    Effect,
    Kind,
    LineFacts,
    ReadDetails,
    Search,
    SimpleCommand,
    TooNestedError,
    Word,
)
from panpan.shell_analysis.find_exec import find_exec
from panpan.shell_analysis.languages import NotHarmlessError
from panpan.shell_analysis.parser import ShellParser
from panpan.shell_analysis.programs import (
    copied_words,
    git_does_more,
    git_may_show,
    is_searcher,
    kind_of,
    load_table,
    may_run_words,
    may_show,
    words_read_recursively,
)
from panpan.shell_analysis.runners import WrappedCommand, unwrap
from panpan.shell_analysis.shell_changes import may_change_shell
from panpan.shell_analysis.words import as_path, folder_of, home_for, in_folder, paths_of
from panpan.shell_analysis.working_directory import find_shell, is_bash
from panpan.shell_analysis.writers import written_by
from panpan.types.pattern import compile_late

_BEFORE_NAMES = compile_late("[=@:,;<{}]")
"""Signs behind which programs take a part of a word for the name of a file."""
_BETWEEN_NAMES = compile_late(r"""[\s'";&|<>()=`$]+""")
_FILE_ADDRESS = compile_late(r"file://(?:localhost|127\.0\.0\.1)?(/[^?#]*)", re.IGNORECASE)
_MESSAGE = compile_late(r"git (?:-[A-Za-z]*m|--message)|gh (?:-b|-t|--body|--title)")
"""Programs, each with a flag whose value is prose, such as a commit message."""
_SED = frozenset({"sed", "gsed", "/bin/sed", "/usr/bin/sed"})
_BEHIND_FILE_COMMANDS = compile_late(r"(?=[rRwW][ \t]*([^\n]{1,4096})(?:\n|$))")
"""Every text that sed may read as the name of a file: the rest of the line after an `r`, `R`, `w` or `W`."""


def path_like_words(command: SimpleCommand) -> Iterable[str]:
    """Yield every fixed word that could be a path, and the parts of words after `=`, `@` and other such signs."""
    name = command.words[0].text if command.words else ""
    before = ""
    for word in (*command.words[1:], *(redirect.target for redirect in command.redirects)):
        is_text = is_message(name or "", before, word.text or "")
        before = word.text or ""
        if not word.text:
            if word.is_glob:
                yield folder_of(word.pattern)
            continue
        if not word.text.startswith("-"):
            yield as_path(word.text)
        elif len(word.text) > 2 and not word.text.startswith("--"):
            yield as_path(word.text[2:])  # value of a short flag in the same word
        yield from map(as_path, dict.fromkeys(part for part in _parts(word.text, is_message=is_text) if part))
    if name in _SED:
        texts = (word.text or "" for word in command.words[1:])
        yield from (as_path(name) for text in texts for name in _BEHIND_FILE_COMMANDS.findall(text))


def is_message(program: str, before: str, word: str) -> bool:
    """Return whether a word is a text for people: the value of a flag such as `git commit -m`.

    Args:
        program: Whose word it is.
        before: The word before it.
        word: The word, which may hold the flag, too: `--message=text`.
    """
    return any(_MESSAGE.fullmatch(f"{program} {flag}") for flag in (before, word.partition("=")[0]))


def _parts(text: str, *, is_message: bool) -> Iterator[str]:
    """Yield the parts of a word that could be names of files."""
    yield text.partition("=")[2]
    yield from _BEFORE_NAMES.split(text)[1:]  # `-d @file`, `name=<file;type=text`, `file:name`, `{a,b}`
    if address := _FILE_ADDRESS.search(text):
        yield unquote(address[1])
    if any(letter.isspace() for letter in text) and not is_message:
        yield from _BETWEEN_NAMES.split(text)  # a command line or script in another language


_SYSTEM_FOLDERS = frozenset({"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin"})
_MOST_WRAPPERS = 10
_MOST_SEARCHES = 20
"""Words of a command that are held to be the search which it runs, at most."""
_NO_FILES = frozenset({"-", "/dev/null"})
"""Operands that name no file for commands that only look: standard input, and a file that is always empty."""


def judge(command: SimpleCommand) -> Effect:
    """Return what a simple command would do when the shell runs it."""
    return _judge(command, _MOST_WRAPPERS)


def _judge(command: SimpleCommand, most_wrappers: int) -> Effect:
    effect = _of_program(command, most_wrappers) if command.words else _only_redirects(command)
    effect = replace(effect, path_like_words=tuple(path_like_words(command)))
    return _with_redirects(effect) if command.redirects else effect


def _only_redirects(command: SimpleCommand) -> Effect:
    if command.assignments:
        return _unknown(command, None, "sets shell variables, which may change what follows")
    return Effect(command, None, (), (), _looks("it only opens the files that it redirects"))


def _of_program(command: SimpleCommand, most_wrappers: int) -> Effect:
    name, arguments = command.words[0].text, command.words[1:]
    if name is None:
        return _unknown(command, None, f"{command.words[0].source} is known only when it runs")
    if command.assignments:
        names = ", ".join(command.assignments)
        changed = _of_program(replace(command, assignments=()), most_wrappers)
        return replace(changed, command=command, kind=Kind(None, None, f"{names} may change what {name} does"))
    if "/" in name:
        return _by_path(command, name, most_wrappers)
    refusal = ""
    row = load_table().programs.get(name)
    if row is not None:
        try:
            reading = read_arguments(name, row, arguments)
            if may_change_shell(command):
                raise NotHarmlessError("where it may change what follows")
            return _harmless(command, name, reading)
        except NotHarmlessError as exc:
            # If a program is only asked for its version, there is more to say.
            refusal = "" if row.not_bare and not row.sub else f"{name} is not known to be harmless {exc}"
    effect = _other(command, name, refusal, most_wrappers)
    return _searching(effect, arguments) if is_searcher(name) else effect


def _searching(effect: Effect, arguments: Sequence[Word]) -> Effect:
    """Return an effect with the folders that a search with flags that the table does not have may show.

    The flags may make a search of `grep x`, and any word the pattern, so the folder in which it runs always counts.
    """
    folders = paths_of([word for word in arguments if not (word.text or "-").startswith("-")])
    return replace(effect, search=replace(effect.search, folders=(".", *folders)))


def _by_path(command: SimpleCommand, name: str, most_wrappers: int) -> Effect:
    """Judge a program that is named by its path; never as harmless, since the table speaks of names on the PATH."""
    why = f"runs a program by its path: {name}"
    folder, _, base = name.rpartition("/")
    if folder not in _SYSTEM_FOLDERS or not base:
        effect = _unknown(command, name if name.startswith("/") else None, why)
        effect = _with_folders(effect, name, most_wrappers)
        if is_searcher(base):
            return _searching(effect, command.words[1:])
        return replace(effect, search=replace(effect.search, folders=()))
    named = _of_program(replace(command, words=(Word(base, base), *command.words[1:])), most_wrappers)
    kind = replace(named.kind, runs_code=None, why=why) if named.is_read_only else named.kind
    return replace(named, command=command, program=name, kind=kind)


def _harmless(command: SimpleCommand, name: str, reading: ParsedArguments) -> Effect:
    row = reading.row
    files = [word for word in reading.paths if word.text not in _NO_FILES]
    is_git = load_table().programs[name].git
    paths = [in_folder(reading.folder, path) for path in paths_of(files)]
    paths += [in_folder(reading.folder, path) for path in reading.files]
    paths += [path + ending for path in paths for ending in row.tries]
    from_top, from_folder = _git_paths(files, reading.lines_of) if is_git else ((), ())
    paths += [in_folder(reading.folder, path) for path in from_folder]
    if reading.folder is not None:
        paths.append(reading.folder)
    if not reading.searches:
        searches: tuple[str, ...] = ()
    elif is_git:
        searches = (reading.folder or ".",)
    else:
        searches = tuple(paths)
    globs = [in_folder(reading.folder, word.pattern) for word in reading.paths if word.is_glob]
    return Effect(
        command,
        name,
        tuple(dict.fromkeys(paths)),
        (),
        _looks(f"{reading.name} only looks: {row.reason.partition('. ')[0].rstrip('.')}"),
        Search(
            searches,
            reading.names.only,
            leaves_out_hidden=reading.names.leaves_out_hidden and not globs,
            follows_links=row.follows_links,
        ),
        ReadDetails(
            tuple(globs),
            reading.bare_globs,
            opens_nothing=row.opens_nothing or is_git,
            asks_git_in=(reading.folder or ".") if is_git else None,
            git_paths=from_top,
        ),
        needed_environment={**load_table().programs[name].environment, **row.environment, **home_for(files)},
    )


_LONGEST_PATH = 4_096
_MAGIC = compile_late(r"^(?:\([^)]*\)|[/!^]+)")


def _git_paths(files: Iterable[Word], lines_of: Iterable[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the files that words name as git has them, from the top of the repository and from the folder on.

    Git takes `HEAD:file` and `:file` from the top, `HEAD:./file` and `1,9:file` from the folder; what begins with a
    colon may be a pathspec, too, which starts from the folder.
    """
    from_top: dict[str, None] = {}
    from_folder: dict[str, None] = {}
    for text in (word.text or "" for word in files):
        for path in _behind_colons(text):
            if not path.startswith(("./", "../")):
                from_top[as_path(path)] = None
            if path.startswith(("./", "../")) or text.startswith(":"):
                from_folder[as_path(path)] = None
    from_folder |= dict.fromkeys(as_path(path) for text in lines_of for path in _behind_colons(text))
    return tuple(from_top), tuple(from_folder)


def _behind_colons(text: str) -> Iterator[str]:
    text = text[-_LONGEST_PATH:]
    behind = (text[at + 1 :] for at, letter in enumerate(text) if letter == ":")
    return filter(None, (_MAGIC.sub("", part) for part in behind))


def _other(command: SimpleCommand, name: str, refusal: str, most_wrappers: int) -> Effect:
    """Judge a program that the table has no row for, or not with these arguments."""
    arguments = command.words[1:]
    if harmless := find_exec(command, judge):
        return harmless
    if wrapped := unwrap(name, arguments):
        return _of_wrapped(command, name, wrapped, most_wrappers)
    if written := written_by(name, arguments):
        return Effect(
            command,
            name,
            tuple(paths_of(written.reads)),
            tuple(paths_of(written.writes)) or None,  # never empty: that would say that it writes nothing
            Kind(written.runs_code, uses_network=False, why=refusal or f"{name} changes files"),
            read_details=ReadDetails(
                tuple(word.pattern for word in (*written.reads, *written.writes) if word.is_glob),
                read_recursively=copied_words(name, written.reads),
            ),
            only_creates=written.only_creates,
        )
    if name == "git":
        return _of_git(command, refusal)
    if name == "find":
        return _of_find(command, refusal)
    kind = kind_of(name, [word.text or "" for word in arguments])
    never = load_table().never.get(name, "")
    if never:
        about = f"{name}: {never}"
    else:
        about = f"{name} {kind.why}" if kind.why else f"panpan does not know what {name} does here"
    runs_code = True if never else kind.runs_code
    effect = Effect(command, name, None, None, Kind(runs_code, kind.uses_network, refusal or about))
    return _with_folders(effect, name, most_wrappers)


def _with_folders(effect: Effect, name: str, most_wrappers: int) -> Effect:
    """Return an effect with the folders of which its program may hand on all that lies in them.

    A program that is not known may run the words that it is given, so those of a search count as one.
    """
    words = effect.command.words
    behind = range(1, len(words)) if most_wrappers and may_run_words(effect) else ()
    starts = islice((at for at in behind if may_show(words, at)), _MOST_SEARCHES)
    found = [_of_program(replace(effect.command, words=words[at:], redirects=()), 0) for at in starts]
    searching = [one for one in found if one.search.folders]
    only = searching[0].search if len(searching) == 1 else Search()
    folders = tuple(path for one in searching for path in one.search.folders)
    asks_git_in = next((one.read_details.asks_git_in for one in searching if one.read_details.asks_git_in), None)
    return replace(
        effect,
        search=Search(folders, only.only_names, leaves_out_hidden=only.leaves_out_hidden),
        read_details=replace(
            effect.read_details, read_recursively=words_read_recursively(name, words[1:]), asks_git_in=asks_git_in
        ),
    )


def _of_wrapped(command: SimpleCommand, name: str, wrapped: WrappedCommand, most_wrappers: int) -> Effect:
    """Judge a program that runs another one; only `timeout` is as harmless as what it runs."""
    if not wrapped.words or not most_wrappers:
        effect = _unknown(command, name, f"{name} runs a program that is not known here", runs_code=True)
        return _with_folders(effect, "", most_wrappers)
    inner = _judge(replace(command, words=wrapped.words, redirects=()), most_wrappers - 1)
    effect = replace(
        inner,
        command=command,
        program=name,
        kind=Kind(
            inner.runs_code if wrapped.is_transparent else True,
            inner.uses_network,
            f"{name} runs {inner.program or 'a program'}: {inner.why}",
        ),
    )
    if not wrapped.adds_words:
        return effect
    why = f"what {name} gives to {inner.program} is known only when it runs" if inner.is_read_only else effect.why
    return replace(effect.with_reason(why), reads=None, writes=None)


def _of_git(command: SimpleCommand, refusal: str) -> Effect:
    more = git_does_more([word.text or "" for word in command.words[1:]])
    shows = git_may_show(more.form, [word.text or "" for word in command.words])
    return Effect(
        command,
        "git",
        (more.folder,),
        (more.folder,) if more.is_known else None,
        Kind(True, more.uses_network, refusal or "this git command does more than look"),
        Search((more.folder,) if shows else ()),
        ReadDetails(
            read_recursively=command.words[1:] if shows or more.form == "clone" else (),
            asks_git_in=more.folder if shows else None,
        ),
    )


def _of_find(command: SimpleCommand, refusal: str) -> Effect:
    texts = [word.text or "" for word in command.words[1:]]
    runs = any(text in ("-exec", "-execdir", "-ok", "-okdir") for text in texts)
    return Effect(command, "find", None, None, Kind(True if runs else None, None, refusal))


def _unknown(command: SimpleCommand, program: str | None, why: str, *, runs_code: bool | None = None) -> Effect:
    return Effect(command, program, None, None, Kind(runs_code, None, why))


def _looks(why: str) -> Kind:
    return Kind(runs_code=False, uses_network=False, why=why)


def _with_redirects(effect: Effect) -> Effect:
    reads, writes = effect.reads, effect.writes
    for redirect in effect.command.redirects:
        target = paths_of([redirect.target]) if redirect.target.text or redirect.target.at_home else None
        if redirect.is_write:
            writes = None if target is None or writes is None else (*writes, *target)
        else:
            reads = None if target is None or reads is None else (*reads, *target)
    why = effect.why
    if effect.is_read_only and writes != ():
        why = f"{effect.command.source.partition(' ')[0]} is redirected into a file"
    needed = {**effect.needed_environment, **home_for([redirect.target for redirect in effect.command.redirects])}
    return replace(effect.with_reason(why), reads=reads, writes=writes, needed_environment=needed)


_MOST_REMEMBERED = 64


def analyse(line: str, start: str | None = None) -> LineFacts:
    """Return what running `line` would do in the shell that runs commands here.

    What is not known is None in it. The same line is asked about several times on its way through gate and tool, so
    the last ones are remembered.

    Args:
        line: The command line.
        start: The absolute path of the folder in which it starts, for whoever may only refuse: then words such as
            `$PWD/src` are the paths that they become. A line is never run for what is found so.

    Raises:
        TooNestedError: The line cannot be judged, and so may not run.
    """
    return analyse_for_shell(find_shell(), os.environ.get("HOME", ""), line, start)


@lru_cache(_MOST_REMEMBERED)
def analyse_for_shell(shell: str, home: str, line: str, start: str | None = None) -> LineFacts:
    """Return what running `line` would do in the shell at this path, as long as HOME is what is given.

    What is not bash may read the line in its own way.

    Raises:
        TooNestedError: As for `analyse`.
    """
    try:
        parsed = ShellParser().parse(line, start)
        if not is_bash(shell):
            parsed = replace(parsed, oddities=(*parsed.oddities, "text for a shell that is not bash"))
        return LineFacts(parsed, tuple(judge(command) for command in parsed.commands))
    except RecursionError:  # `xargs xargs xargs …`
        raise TooNestedError from None
