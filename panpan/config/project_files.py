"""Files of a project that could configure panpan or run code in it, read once and within limits.

The rule: code that uses one of these files takes its bytes from here and never reads the disk again. Then panpan uses
exactly the content that the user was asked about, even if the file changes meanwhile.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import blake2b
from itertools import islice
from pathlib import Path

from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below, user_home
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass

MAX_FILES = 4_000
MAX_BYTES = 20_000_000
MAX_DEPTH = 12
"""Levels of folders below one that is listed."""
_MAX_ENTRIES = 10_000
"""Names to read in one folder."""
_MAX_PROBLEMS = 20
"""Problems after which the search stops: one is enough to refuse trust."""

PROJECT_SETTINGS = ".panpan/settings.toml"


@dataclass(frozen=True, slots=True)
class ExecutableSetting:
    """One kind of file by which a project could run or configure panpan."""

    path: str
    """Path from the root of the project; the last name may have wildcards."""
    reason: str
    """Effect of the file, as the end of the sentence "it …"."""
    is_folder: bool = False
    """True if a folder of this name counts, with everything below it."""
    names: str = "*"
    """Names of the files that count in a folder. One with a file of an exact name is read no further."""
    begins: bytes = b""
    """Beginning of a file that counts."""
    is_secret: bool = False
    """True if its values are neither kept nor shown."""
    max_bytes: int = 1_000_000
    """Limit on the size of one file."""


_AGENTS = "holds agents, which tell subagents what to do and with which tools"
_COMMANDS = "holds slash commands, which tell the model what to do and can run programs"
_STYLES = "holds output styles, which tell the model how to speak"
_SKILLS = "holds skills, which tell the model what to do and can run programs"

EXECUTABLE_SETTINGS = (
    ExecutableSetting(PROJECT_SETTINGS, "says how panpan works and what runs without a question", max_bytes=256_000),
    ExecutableSetting(".panpan/hooks*", "names commands that run by themselves", is_folder=True),
    ExecutableSetting(".claude/settings*.json", "may hold hooks, which run by themselves, and rules that allow calls"),
    ExecutableSetting(".panpan/agents", _AGENTS, is_folder=True, names="*.md"),
    ExecutableSetting(".claude/agents", _AGENTS, is_folder=True, names="*.md"),
    ExecutableSetting(".agents/agents", _AGENTS, is_folder=True, names="*.md"),
    ExecutableSetting(".opencode/agents", _AGENTS, is_folder=True, names="*.md"),
    ExecutableSetting(".gemini/agents", _AGENTS, is_folder=True, names="*.md"),
    ExecutableSetting("agents/*.md", "may say what a subagent does and with which tools", names="*.md", begins=b"---"),
    ExecutableSetting(".panpan/commands", _COMMANDS, is_folder=True, names="*.md"),
    ExecutableSetting(".claude/commands", _COMMANDS, is_folder=True, names="*.md"),
    ExecutableSetting(".panpan/skills", _SKILLS, is_folder=True, names="SKILL.md"),
    ExecutableSetting(".claude/skills", _SKILLS, is_folder=True, names="SKILL.md"),
    ExecutableSetting(".agents/skills", _SKILLS, is_folder=True, names="SKILL.md"),
    ExecutableSetting(".panpan/output-styles", _STYLES, is_folder=True, names="*.md"),
    ExecutableSetting(".claude/output-styles", _STYLES, is_folder=True, names="*.md"),
    ExecutableSetting(".panpan/capabilities", "is code that would run as part of panpan", is_folder=True),
    ExecutableSetting(".panpan/plugins", "is code that would run as part of panpan", is_folder=True),
    ExecutableSetting(".mcp.json", "names servers that would be started or spoken to"),
    ExecutableSetting(".env", "sets variables for programs that are started", is_secret=True),
)
"""All executable settings. A feature that reads a file of the project has a row here and takes the bytes from
`ProjectFiles`."""


def setting_of(name: str) -> ExecutableSetting | None:
    """Return the row for a file, given its path from the root of the project; None if no row matches."""
    parts = name.split("/")
    for setting in EXECUTABLE_SETTINGS:
        depth = setting.path.count("/") + 1
        if fnmatchcase("/".join(parts[:depth]).casefold(), setting.path) and (setting.is_folder or len(parts) == depth):
            return setting
    return None


@dataclass(frozen=True)
class ProjectFiles:
    """The executable settings of a project, with their content at the time of reading."""

    root: Path
    """Canonical root of the project."""
    content: Mapping[str, bytes] = field(default_factory=dict)
    """Content of each file, by its path from the root."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """Reasons why files or folders could not be read whole, by their paths; such a project cannot be trusted."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Reasons why files do not count, by their paths, where the rest of the project can be trusted without them."""
    is_shown: bool = False
    """True if the text of all files may be kept and shown; else values in files for secrets, and in files that are not
    listed, are not."""

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """Digest of each file, by its path from the root."""
        return {name: blake2b(data, digest_size=32).hexdigest() for name, data in self.content.items()}


def read_project_files(root: Path, panpan_home: Path) -> ProjectFiles:
    """Read the executable settings of a project; open only regular files.

    Args:
        root: The canonical root of the project.
        panpan_home: The canonical panpan home; if it is the `.panpan` of the project, its files are the user's own. So
            are those for all agents if the project is the user's home.
    """
    reader = _Reader(root)
    users_own: tuple[str, ...] = ()
    if canonical_or_same(root / ".panpan") == panpan_home:
        users_own = (".panpan/",)
    if root == canonical_or_same(user_home()):
        users_own = (*users_own, ".claude/", ".agents/")
    for setting in EXECUTABLE_SETTINGS:
        if not setting.path.startswith(users_own):
            reader.read(setting)
    return ProjectFiles(root, reader.content, reader.problems, reader.left_out)


def canonical_or_same(path: Path) -> Path:
    """Return the canonical form of an absolute path, or the path itself if it has none, as in a loop of links."""
    try:
        return canonical_path(path)
    except ToolError:
        return path


class _Reader:
    """Reads files until a limit is reached; a file that cannot be read whole becomes a problem."""

    def __init__(self, root: Path) -> None:
        self.content: dict[str, bytes] = {}
        self.problems: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        self._root = root
        self._bytes_left = MAX_BYTES

    def read(self, setting: ExecutableSetting) -> None:
        folder, _, pattern = setting.path.rpartition("/")
        if "*" not in pattern:
            self._take(setting.path, setting)
            return
        for name in self._names(folder):
            if fnmatchcase(name.casefold(), pattern):
                self._take(f"{folder}/{name}", setting)

    def _names(self, folder: str) -> Iterator[str]:
        """Yield the names in a folder, sorted; none if it does not exist."""
        try:
            with os.scandir(self._root / folder) as entries:
                names = sorted(entry.name for entry in islice(entries, _MAX_ENTRIES + 1))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as exc:
            self.problems[folder] = exc.strerror or "it cannot be read"
            return
        if len(names) > _MAX_ENTRIES:
            self.problems[folder] = f"it holds more than {_MAX_ENTRIES:,} files"
            return
        yield from names

    def _take(self, name: str, setting: ExecutableSetting, depth: int = 0) -> None:
        """Take a file, or a folder with everything below it."""
        path = self._root / name
        try:
            is_folder = stat.S_ISDIR(path.stat().st_mode)
            if is_folder and not setting.is_folder:
                return  # such as a virtual environment that is called .env; nothing reads it
            canonical = canonical_path(path)
            if not is_below(canonical, self._root):
                leads_out = "it is a link that leads out of the project"
                if setting.names == "*":
                    raise ToolError(leads_out)
                self.left_out[name] = leads_out
            elif is_folder:
                if depth and is_below(path.parent.resolve(), canonical):
                    raise ToolError("it is a link to a folder that it is in")
                self._take_folder(name, setting, depth)
            elif fnmatchcase(path.name, setting.names) or not setting.is_folder:
                self._take_file(name, canonical, setting)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as exc:
            self.problems[name] = exc.strerror or "it cannot be read"
        except ToolError as exc:
            self.problems[name] = str(exc)

    def _take_file(self, name: str, canonical: Path, setting: ExecutableSetting) -> None:
        if len(self.content) >= MAX_FILES:
            raise ToolError(f"there are more than {MAX_FILES:,} such files")
        data = read_regular_file(canonical, max_bytes=min(setting.max_bytes, self._bytes_left))
        if not data.startswith(setting.begins):
            return
        self._bytes_left -= len(data)
        self.content[name] = data

    def _take_folder(self, name: str, setting: ExecutableSetting, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise ToolError("it is nested too deeply")
        children = list(self._names(name))
        if setting.names in children:  # what else is there belongs to that file, and is read when it is needed
            children = [setting.names]
        for child in children:
            if len(self.problems) > _MAX_PROBLEMS:
                return
            self._take(f"{name}/{child}", setting, depth + 1)
