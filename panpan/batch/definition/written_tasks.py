"""Tasks as the user wrote them: inline, as JSONL, or one for each file that a pattern matches.

The rule: nothing is passed over in silence. A line, file or folder that cannot be read is an error that names it.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from panpan.batch.definition.campaign import Campaign, CommandLine, InlineTask, Verify
from panpan.batch.store.folder import OWN_FILES
from panpan.config.faults import fault, first_of, suggestion
from panpan.config.keys import dotted, shown
from panpan.errors import ConfigError, ToolError
from panpan.system.files.canonical import canonical_path
from panpan.system.files.folder_tree import walk
from panpan.system.files.globs import compile_gitignore, compile_glob, expand_braces, has_magic
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass

MAX_TASKS = 100_000
MAX_JSONL_BYTES = 64_000_000
MAX_LINE_BYTES = 500_000
MAX_LOOKED_AT = 1_000_000
"""Names to look at for one pattern of files."""


@dataclass(frozen=True, slots=True)
class WrittenTask:
    """A task before the values of the axes and its file are filled in."""

    place: str
    """The place where it is written, for errors: such as `campaign.toml: task 3` or `more.jsonl:12`."""
    id: str
    prompt: str = ""
    """Empty if there is a command."""
    command: CommandLine | None = None
    files: Sequence[str] = ()
    verify: Verify | None = None
    """Instead of the campaign's."""
    file: Path | None = None
    """The file that it is for, absolute."""


def read_jsonl(names: Sequence[str], folder: Path) -> Mapping[str, bytes]:
    """Return the content of the JSONL files of `[tasks]`, by their names as the campaign has them.

    Raises:
        ConfigError: One is missing or too large, or cannot be read, or panpan itself writes a file of this name.
    """
    found = {}
    for name in names:
        if canonical_path(folder / name) in {folder / own for own in OWN_FILES}:
            raise ConfigError(
                f"campaign.toml: tasks.jsonl names {shown(name)}, which panpan itself writes; rename your file"
            )
        try:
            found[name] = read_regular_file(folder / name, max_bytes=MAX_JSONL_BYTES, follow_symlinks=True)
        except ToolError as error:
            raise ConfigError(f"campaign.toml: tasks.jsonl: {shown(error)}; correct the path or the file") from error
    return found


def written_tasks(campaign: Campaign, folder: Path, jsonl: Mapping[str, bytes]) -> Sequence[WrittenTask]:
    """Return all tasks of a campaign, in the order in which they are written.

    Args:
        campaign: The campaign.
        folder: Its folder, canonical.
        jsonl: As from `read_jsonl`.

    Raises:
        ConfigError: A task is wrong, has the id of another, or there are too many.
    """
    found: dict[str, WrittenTask] = {}
    for one in _all(campaign, folder, jsonl):
        if (other := found.setdefault(one.id, one)) is not one:
            raise ConfigError(f"{one.place} has the id {shown(one.id)} of {other.place}; give each task its own id")
        if len(found) > MAX_TASKS:
            raise ConfigError(f"{one.place} is one task too many; a campaign has at most {MAX_TASKS:,}")
    return tuple(found.values())


def _all(campaign: Campaign, folder: Path, jsonl: Mapping[str, bytes]) -> Iterator[WrittenTask]:
    for number, task in enumerate(campaign.task, 1):
        yield _written(task, f"campaign.toml: task {number}")
    for name, data in jsonl.items():
        yield from _of_lines(name, data)
    if campaign.tasks.each is not None and campaign.tasks.prompt is not None:
        for name, path in sorted(_matches(campaign.tasks.each, folder).items()):
            yield WrittenTask(shown(name), name, campaign.tasks.prompt, file=path)


def _written(task: InlineTask, place: str) -> WrittenTask:
    if problem := _problem_of(task):
        raise ConfigError(f"{place}: {problem}")
    try:
        file_matcher(task.files)
    except ConfigError as error:
        raise ConfigError(f"{place}: {error}") from error
    if task.command is None:
        return WrittenTask(place, task.id, task.prompt or "", files=task.files, verify=task.verify)
    line = CommandLine(command=task.command, timeout_s=task.timeout_s, network=task.network)
    return WrittenTask(place, task.id, command=line, files=task.files)


_OF_COMMAND = ("timeout_s", "network")


def _problem_of(task: InlineTask) -> str:
    """Return what is wrong with a task; empty if nothing is."""
    if task.command is None:
        if task.prompt is None:
            return "there is no prompt and no command; write one of the two"
        lost = [key for key in _OF_COMMAND if key in task.model_fields_set]
        return f"{lost[0]} is for a command, and the task has a prompt; remove it" if lost else ""
    if task.prompt is not None:
        return "there is a prompt and a command; make two tasks of them"
    return "verify is for a prompt, and the exit code decides about a command; remove it" if task.verify else ""


def file_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells if a path is one of the files that a task is about; without patterns, all are.

    Patterns are as in .gitignore: `*.py` at any depth, `src/**` from the project's folder, `docs` with all below. They
    may have braces, as in `{src,tests}/**`.

    Raises:
        ConfigError: One is no pattern.
    """
    try:
        plain = [one for pattern in patterns for one in expand_braces(pattern)]
        compiled = [compile_gitignore(one.removeprefix("./")) for one in plain]
    except ToolError as error:
        raise ConfigError(f"files: {shown(error)}") from error
    return lambda path: not compiled or any(one.fullmatch(path) for one in compiled)


def _of_lines(name: str, data: bytes) -> Iterator[WrittenTask]:
    tasks = 0
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        place = f"{shown(name)}:{number}"
        if not line.strip():
            continue
        if len(line) > MAX_LINE_BYTES:
            raise ConfigError(f"{place}: the line has {len(line):,} bytes; a task has at most {MAX_LINE_BYTES:,}")
        tasks += 1
        yield _written(_task_in(line, place), place)
    if not tasks:
        raise ConfigError(f"{shown(name)} has no task; write one JSON object a line, or take it out of tasks.jsonl")


def _task_in(line: bytes, place: str) -> InlineTask:
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{place}: is not UTF-8; save the file as UTF-8") from error
    try:
        return InlineTask.model_validate_json(line)
    except ValidationError as error:
        first = first_of(error.errors(include_url=False))
        path = tuple(part for part in first["loc"] if isinstance(part, str))
        if first["type"] == "extra_forbidden":
            known = [(key,) for key in InlineTask.model_fields]
            raise ConfigError(f"{place}: a task has no {dotted(path)}{suggestion(path, known)}") from error
        if not path:
            raise ConfigError(f"{place}: is no JSON object; write a task, such as {_EXAMPLE}") from error
        is_item = isinstance(first["loc"][-1], int)
        raise ConfigError(f"{place}: {dotted(path)} {fault(first, is_item=is_item)}") from error


_EXAMPLE = '{"id": "first", "prompt": "..."}'


def _matches(pattern: str, folder: Path) -> Mapping[str, Path]:
    """Return the files that a pattern matches, by their paths from the folder.

    Hidden files and folders match only a pattern that names a hidden one; links to folders are not followed.
    """
    try:
        plain = expand_braces(pattern)
        found = {name: path for one in plain for name, path in _matches_of_one(one, folder)}
    except ToolError as error:
        raise ConfigError(f"campaign.toml: tasks.each: {shown(error)}") from error
    if not found:
        raise ConfigError(f"campaign.toml: tasks.each: no file matches {shown(pattern)}; correct the pattern")
    return found


def _matches_of_one(pattern: str, folder: Path) -> Iterator[tuple[str, Path]]:
    prefix, rest = _parts(pattern)
    base = canonical_path(folder / prefix)
    is_wanted = compile_glob(rest, is_anchored=True).fullmatch
    for name in _names_below(base, rest, folder):
        if is_wanted(name):
            path = base / name
            if not path.is_dir():
                _require_readable(path)
                yield _readable_name(PurePosixPath(prefix, name)), path


def _parts(pattern: str) -> tuple[PurePosixPath, str]:
    """Return the folder with which a pattern without braces begins, and the rest of the pattern."""
    parts = PurePosixPath(pattern).parts
    if not parts or pattern.endswith("/"):
        raise ToolError(f"{pattern} names no files; write a pattern such as papers/*.pdf")
    fixed = next((number for number, part in enumerate(parts) if has_magic(part)), len(parts) - 1)
    if ".." in parts[fixed:]:
        raise ToolError(f"{pattern} has .. behind a wildcard; begin the pattern with it")
    return PurePosixPath(*parts[:fixed]), "/".join(parts[fixed:])


def _names_below(base: Path, rest: str, folder: Path) -> Iterator[str]:
    """Yield the paths from `base` of what could match, without what panpan itself keeps in the campaign's folder."""
    names = rest.split("/")
    most = None if "**" in names else len(names) - 1
    with_hidden = any(name.startswith((".", "[.")) for name in names)
    own = {str(folder / name) for name in OWN_FILES}
    looked_at = 0
    for here, folders, others in walk(base, _unreadable):
        looked_at += len(folders) + len(others)
        if looked_at > MAX_LOOKED_AT:
            raise ToolError(f"there are more than {MAX_LOOKED_AT:,} files in {base}; name a narrower pattern")
        above = PurePosixPath(here).relative_to(base)
        if most is not None and len(above.parts) >= most:
            folders.clear()
        folders[:] = [name for name in folders if _counts(here, name, own, with_hidden=with_hidden)]
        for name in others:
            if _counts(here, name, own, with_hidden=with_hidden):
                yield str(above / name)


def _counts(here: str, name: str, own: set[str], *, with_hidden: bool) -> bool:
    return (with_hidden or not name.startswith(".")) and f"{here}/{name}" not in own


def _unreadable(error: OSError) -> None:
    if isinstance(error, FileNotFoundError):
        raise ToolError(f"there is no folder {error.filename}; correct the pattern")
    raise ToolError(f"{error.filename} cannot be read: {error.strerror}; name a narrower pattern")


def _require_readable(path: Path) -> None:
    try:
        is_regular = stat.S_ISREG(path.stat().st_mode)
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}; remove it, or name a narrower pattern") from error
    if not is_regular:
        raise ToolError(f"{path} is no regular file; remove it, or name a narrower pattern")
    if not os.access(path, os.R_OK):
        raise ToolError(f"{path} cannot be read: Permission denied; remove it, or name a narrower pattern")


def _readable_name(path: PurePosixPath) -> str:
    name = str(path)
    try:
        name.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(f"the name of {path} is not UTF-8; rename the file") from error
    return name
