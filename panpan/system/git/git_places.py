"""Folders from which git takes what it shows of a repository, and the files that it tracks, without asking git.

The rule: a repository may name other folders as its own: as the git folder, the common folder, further objects, or
files to include in its settings; and a link in the git folder may lead anywhere. What lies elsewhere counts as another
repository's, unless that one points back: git's own worktrees and submodules do (CVE-2026-40068 is this check missing).
What git would read in another way, or not at all, or is too much to be read, is refused. The grammar is that of
git-config(1) and of `git_parse_source` in git's config.c.
"""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below, user_home
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

_MOST_ENTRIES = 300_000
"""Most entries of a git folder that are checked for links."""
_MOST_FOLLOWED = 50
"""Most files of further objects and of settings that are read."""
_MAX_BYTES = 1_000_000
_NOT_ENTERED = frozenset({"hooks", "modules", "lfs", "annex"})
"""Folders of a git folder from which git takes nothing that it shows of this repository."""
_PLAIN_QUOTED = compile_late(r'"[^"\\]*"')
_MAYBE_NAMED = compile_late("include|worktree", re.IGNORECASE)
"""Found in the text of all settings that name a path which is looked at here; others are not read at all."""
_NOT_PLAIN = compile_late(r"~[^/]|%\(|:\(")
"""Begins a path at the home of another user, or in another place that git puts there."""


@dataclass(frozen=True, slots=True)
class GitPlace:
    """A place outside of a git folder from which git would take something."""

    path: Path
    named_by: Path
    """The file, folder or link that leads there."""
    is_link: bool = False
    """True if a link inside the git folder leads there."""


def places_elsewhere(folder: Path) -> list[GitPlace]:
    """Return what git would take from elsewhere when it is asked in a canonical folder, beside what points back.

    Raises:
        ToolError: The git folder holds too much to be looked through or what cannot be read as git reads it, or a path
            leads nowhere.
    """
    found: list[GitPlace] = []
    for top in (folder, *folder.parents):
        entry = top / ".git"
        if not os.path.lexists(entry):
            continue
        git_folder = _git_folder(entry)
        common = _common_folder(git_folder)
        if not _points_back(git_folder, common, entry):
            found += _places_of(git_folder, common, entry)
        if _is_whole(git_folder, common):  # otherwise git goes on to the folders above
            break
    return found


def folder_of_worktree(top: Path) -> Path | None:
    """Return the common folder of the repository whose worktree or submodule `top` is; None if it is none.

    One that does not point back is not counted, nor is one that cannot be read.
    """
    entry = top / ".git"
    try:
        git_folder = _git_folder(entry)
        common = _common_folder(git_folder)
        return common if _points_back(git_folder, common, entry) else None
    except (OSError, ToolError):
        return None


def common_folder(top: Path) -> Path:
    """Return the git folder that all worktrees of the repository of the work tree `top` share.

    Raises:
        ToolError: The repository cannot be read.
    """
    return _common_folder(_git_folder(top / ".git"))


def repository_around(folder: Path) -> Path | None:
    """Return the git folder that git takes in a canonical folder, a `.git` or a bare one; None if there is none."""
    for top in (folder, *folder.parents):
        if os.path.lexists(top / ".git"):
            return top / ".git"
        if _is_whole(top, top):
            return top
    return None


_PLAIN_SETTINGS = {
    "branch": {"merge", "rebase", "remote"},
    "core": {
        "autocrlf", "bare", "filemode", "ignorecase", "logallrefupdates", "precomposeunicode",
        "repositoryformatversion", "symlinks",
    },
    "extensions": {"objectformat", "partialclone", "refstorage"},
    "remote": {"fetch", "partialclonefilter", "promisor", "tagopt", "url"},
    "user": {"email", "name"},
}  # fmt: skip
"""Settings that make git run no program."""
KEPT_IN_REPOSITORY = ("config", "hooks", "commondir", "config.worktree", "modules")
"""All in a git folder through which git can be made to run a program (gitrepository-layout(5))."""


def runs_nothing(git_folder: Path) -> bool:
    """True if git, asked in the work tree of this `.git`, runs no program that the repository brings.

    That of a new clone does not, with the hooks that git lays there as samples.
    """
    return not git_folder.is_symlink() and _is_whole(git_folder, git_folder) and not running_parts(git_folder)


def running_parts(git_folder: Path) -> Sequence[Path]:
    """Return the parts of a git folder through which git runs a program, or may, since they cannot be read."""
    parts = [git_folder / name for name in KEPT_IN_REPOSITORY]
    return [part for part in parts if os.path.lexists(part) and (part.is_symlink() or not _is_harmless(part))]


def _is_harmless(part: Path) -> bool:
    if part.name == "hooks":
        return all(hook.name.endswith(".sample") for hook in part.glob("*"))
    try:
        return part.name == "config" and all(_is_plain(*setting) for setting in read_settings(_text(part)))
    except (ToolError, ValueError):
        return False


def _is_plain(section: str, subsection: str | None, key: str, value: str | None) -> bool:
    return key in _PLAIN_SETTINGS.get(section, ()) and "::" not in (value or "")  # `::` names a program for an address


def _places_of(git_folder: Path, common: Path, entry: Path) -> Iterator[GitPlace]:
    """Yield the places outside of `entry`, the `.git` of a work tree, that its repository leads to."""
    if git_folder != entry:
        yield GitPlace(git_folder, entry)
    if not is_below(common, git_folder):
        yield GitPlace(common, git_folder / "commondir")
    for own in dict.fromkeys((git_folder, common)):
        yield from _links_out(own, entry.parent)
        yield from _included([own / "config", own / "config.worktree"])
    yield from _further_objects(common / "objects")


def _git_folder(entry: Path) -> Path:
    if entry.is_file():
        text = _text(entry)
        if text.startswith("gitdir:"):
            return canonical_path(entry.parent / text.removeprefix("gitdir:").strip())
    return canonical_path(entry)


def _common_folder(git_folder: Path) -> Path:
    named = _text(git_folder / "commondir").strip()
    return canonical_path(git_folder / named) if named else git_folder


def _is_whole(git_folder: Path, common: Path) -> bool:
    return os.path.lexists(git_folder / "HEAD") and (common / "objects").is_dir() and (common / "refs").is_dir()


def _points_back(git_folder: Path, common: Path, entry: Path) -> bool:
    """True if the git folder is one that git made elsewhere for just this work tree."""
    if entry.is_symlink() or not entry.is_file():
        return False
    if git_folder.parent == common / "worktrees":
        named = _text(git_folder / "gitdir").strip()
        return bool(named) and canonical_path(git_folder / named) == canonical_path(entry)
    if common == git_folder:  # the folder of a submodule
        trees = _paths_in(git_folder / "config", lambda *setting: setting == ("core", None, "worktree"))
        return [canonical_path(git_folder / value) for value in trees] == [canonical_path(entry.parent)]
    return False


def _links_out(git_folder: Path, top: Path) -> Iterator[GitPlace]:
    """Yield the links in a git folder that lead out of it and of its work tree."""
    waiting = [git_folder]
    seen = 0
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as scan:
                entries = list(islice(scan, _MOST_ENTRIES))
        except OSError:
            continue
        seen += len(entries)
        if seen >= _MOST_ENTRIES:
            raise ToolError(
                f"{git_folder} holds too many files to be looked through, so git did not run; run git yourself"
            )
        for one in entries:
            if here == git_folder and one.name in _NOT_ENTERED:
                continue
            if one.is_symlink():
                target = canonical_path(Path(one.path))
                if not (is_below(target, git_folder) or is_below(target, top)):
                    yield GitPlace(target, Path(one.path), is_link=True)
            elif one.is_dir(follow_symlinks=False):
                waiting.append(Path(one.path))


def _further_objects(objects: Path) -> Iterator[GitPlace]:
    """Yield the folders with objects of others that a folder of objects names, and those that these name."""
    waiting, seen = [objects], {objects}
    while waiting:
        here = waiting.pop()
        alternates = here / "info" / "alternates"
        _require_few(seen, alternates)
        for line in _text(alternates).split("\n"):
            if line.startswith('"') and not _PLAIN_QUOTED.fullmatch(line):
                raise ToolError(f"{alternates} has escapes in it, so git did not run; write its paths without quotes")
            name = line.strip('"') if line.startswith('"') else line
            if name and not name.startswith("#"):
                place = canonical_path(here / name)
                if place not in seen:
                    seen.add(place)
                    waiting.append(place)
                    yield GitPlace(place, alternates)


def _included(files: Sequence[Path]) -> Iterator[GitPlace]:
    waiting, seen = list(files), set(files)
    while waiting:
        file = waiting.pop()
        _require_few(seen, file)
        for value in _paths_in(file, _is_include):
            if _NOT_PLAIN.match(value):
                raise ToolError(f"{file} has a path that is not plain, so git did not run; write it in full")
            place = canonical_path(file.parent / _at_home(value))
            if place not in seen:
                seen.add(place)
                waiting.append(place)
                yield GitPlace(place, file)


def _require_few(seen: Collection[Path], file: Path) -> None:
    if len(seen) >= _MOST_FOLLOWED:
        raise ToolError(f"{file} and others name too many files, so git did not run; keep below {_MOST_FOLLOWED}")


def _paths_in(file: Path, is_meant: Callable[[str, str | None, str], bool]) -> Iterator[str]:
    text = _text(file)
    if not _MAYBE_NAMED.search(text):
        return
    try:
        for section, subsection, key, value in read_settings(text):
            if value is not None and is_meant(section, subsection, key):
                yield value
    except ValueError as exc:
        raise ToolError(f"{file} cannot be read, so git did not run; {exc}") from exc


def _is_include(section: str, subsection: str | None, key: str) -> bool:
    is_conditional = section.partition(".")[0] == "includeif"
    return key == "path" and (is_conditional or (section == "include" and subsection is None))


def _at_home(value: str) -> str:
    return str(user_home() / value[2:]) if value == "~" or value.startswith("~/") else value


def _text(file: Path) -> str:
    try:
        if not file.is_file():
            return ""
        with file.open("rb") as opened:
            content = opened.read(_MAX_BYTES + 1)
    except OSError:
        return ""
    if len(content) > _MAX_BYTES:
        raise ToolError(f"{file} is too large to be read, so git did not run; keep it below {_MAX_BYTES:,} bytes")
    return os.fsdecode(content)


_SPACE = compile_late(r"(?:[ \t\r\n]|[#;][^\n]*)*")
_HEADER = compile_late(r'\[([A-Za-z0-9.-]*)(?:[ \t\r]+"((?:[^"\\\n]|\\[^\n])*)")?\]')
_KEY = compile_late(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=|(?=\n))")
_VALUE = compile_late(r'((?:[^"\\\n#;]|\\["\\btn\n]|"(?:[^"\\\n]|\\["\\btn\n])*")*)(?:[#;][^\n]*)?\n')
_PART = compile_late(r'"((?:[^"\\]|\\.)*)"|((?:\\.)+)|([ \t\r]+)|([^"\\ \t\r]+)', re.DOTALL)
_ESCAPE = compile_late(r"\\(.)", re.DOTALL)
_ESCAPED = {"b": "\b", "n": "\n", "t": "\t", "\n": ""}


def read_settings(text: str) -> Iterator[tuple[str, str | None, str, str | None]]:
    """Yield each setting in its order: section and key in lower case, subsection and value as git takes them.

    A subsection that is not given is None, and so is a value behind no `=`.

    Raises:
        ValueError: Git cannot read the file, or not every version of git reads it alike; the text says which line.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n") + "\n\n"  # the end of the file ends a line
    section, subsection = "", None
    position = 0
    while (position := _end(_SPACE.match(text, position))) < len(text):
        if header := _HEADER.match(text, position):
            section, subsection = header[1].lower(), header[2] and _ESCAPE.sub(r"\1", header[2])
            position = header.end()
            continue
        key = _KEY.match(text, position)
        value = _VALUE.match(text, key.end()) if key and key[2] else None
        if key is None or (key[2] and value is None) or "\0" in text:
            raise ValueError(f"line {text.count(chr(10), 0, position) + 1} is not one that git reads")
        yield section, subsection, key[1].lower(), _unquoted(value[1]) if value else None
        position = _end(value or key)


def _end(match: re.Match[str] | None) -> int:
    return match.end() if match is not None else 0


def _unquoted(written: str) -> str:
    value = blanks = ""
    for quoted, escapes, blank, plain in _PART.findall(written):
        if blank:
            blanks = blank if value else ""
            continue
        if blanks.strip(" "):
            raise ValueError(f"the value {written.strip()!r} has a tab inside; put it in quotes")
        value += blanks + _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), quoted or escapes) + plain
        blanks = ""
    return value


def git_branch(root: Path) -> str:
    """Return the branch of the repository whose top is `root`; empty if there is none or HEAD is detached."""
    try:
        folder = root / ".git"
        if folder.is_file():  # a worktree or submodule: the file names the folder
            folder = (
                root
                / read_regular_file(folder, max_bytes=4096, follow_symlinks=True)
                .decode()
                .removeprefix("gitdir:")
                .strip()
            )
        head = read_regular_file(folder / "HEAD", max_bytes=4096, follow_symlinks=True).decode()
    except (OSError, ToolError, UnicodeDecodeError):
        return ""
    return head.removeprefix("ref: refs/heads/").strip() if head.startswith("ref: refs/heads/") else ""


MAX_INDEX_BYTES = 64_000_000
_LONGEST_NAME = 0xFFF
"""Length from which on an entry does not say how long its name is."""
_HEADER_BYTES = 12
_BEFORE_NAME = 62
"""Bytes of an entry before its name, the last two with the length of that; two more where a bit in these says so."""
_IS_LONGER = 0x4000


class GitIndex:
    """The index of the repository whose `.git` lies in the folder `top` (gitformat-index(5))."""

    def __init__(self, top: Path, content: bytes) -> None:
        self.top = top
        self._content = content

    @classmethod
    def around(cls, folder: Path) -> "GitIndex | None":
        """Return the index of the repository that the canonical `folder` lies in; None if it cannot be read."""
        for top in (folder, *folder.parents):
            index = top / ".git" / "index"
            with suppress(OSError):
                if index.is_file() and index.stat().st_size <= MAX_INDEX_BYTES:
                    return cls(top, index.read_bytes())
        return None

    def has(self, path: Path) -> bool:
        """True if git is known to track the file at the canonical `path`."""
        if not path.is_relative_to(self.top):
            return False
        name = str(path.relative_to(self.top)).encode(errors="surrogateescape")
        # An entry ends with two bytes for the length of the name, the name, and a NUL.
        length = len(name)
        return length < _LONGEST_NAME and length.to_bytes(2, "big") + name + b"\0" in self._content

    def names(self) -> Sequence[str] | None:
        """Return the names of all files that git tracks, from the top on."""
        content = self._content
        if content[:4] != b"DIRC" or content[4:8] not in (b"\0\0\0\2", b"\0\0\0\3"):
            return None
        found: list[str] = []
        at = _HEADER_BYTES
        for _ in range(int.from_bytes(content[8:_HEADER_BYTES], "big")):
            start = at
            flags = int.from_bytes(content[at + _BEFORE_NAME - 2 : at + _BEFORE_NAME], "big")
            begin = at + _BEFORE_NAME + (2 if flags & _IS_LONGER else 0)
            end = content.find(b"\0", begin)
            length = flags & _LONGEST_NAME
            if end <= begin or length not in (end - begin, _LONGEST_NAME):
                return None
            found.append(content[begin:end].decode(errors="surrogateescape"))
            at += (end - start + 8) & ~7  # at least one NUL, up to a multiple of eight
        # An index whose entries are partly in another file continues with this.
        return None if content[at : at + 4] == b"link" else found
