"""The files in which users write hooks. Looking for them takes some microseconds at the start of each session."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from panpan.config.trust import ProjectTrust
from panpan.errors import ToolError
from panpan.system.files.canonical import user_home
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass

HOOKS_FILE = "hooks.json"
"""Name of the file of hooks in the panpan home and in a project's `.panpan`."""
_OF_PROJECT = (".claude/settings.json", ".claude/settings.local.json", f".panpan/{HOOKS_FILE}")
MAX_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class HookFile:
    """A file that may hold hooks, and who wrote it."""

    name: str
    data: bytes
    is_users: bool

    @property
    def is_shared(self) -> bool:
        """True if it is also for Claude Code, which has more events."""
        return not self.name.endswith(HOOKS_FILE)


def hook_files(home: Path, trust: ProjectTrust, warn: Callable[[str], None]) -> Iterator[HookFile]:
    """Yield the files that count and are there, the user's first; `warn` is told of one that cannot be read."""
    for path in (user_home() / ".claude" / "settings.json", home / HOOKS_FILE):
        if not path.exists():
            continue
        try:
            data = read_regular_file(path, max_bytes=MAX_BYTES, follow_symlinks=True)
        except ToolError as error:
            warn(f"{path}: none of its hooks runs: {error}")
            continue
        yield HookFile(str(path), data, is_users=True)
    for name in _OF_PROJECT:
        if name in trust.believed:
            yield HookFile(name, trust.believed[name], is_users=False)


def untrusted_files(trust: ProjectTrust) -> Sequence[str]:
    """Return the files of a project that may hold hooks, and do not count since the project is not trusted."""
    found = trust.files.content
    return [name for name in _OF_PROJECT if name not in trust.believed and b'"hooks"' in found.get(name, b"")]
