"""Material of a run in CI: the difference, and texts of strangers, as files in a private folder.

The rule: nothing that a stranger wrote is part of a prompt. It is in files that the prompt calls untrusted, and
everything in them can be seen: comments that a web page hides, and characters that show nothing.
"""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from panpan.errors import ConfigError, ToolError
from panpan.system.files.canonical import canonical_path
from panpan.system.files.folder_tree import temporary_folder
from panpan.system.files.read_file import read_users_file
from panpan.system.git.git import run_git, run_own_git
from panpan.system.processes.process import Captured
from panpan.system.text.terminal_text import escape_invisible
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

MAX_DIFF_BYTES = 2_000_000
_MAX_TEXT_BYTES = 200_000
_GIT_S = 60.0
_COMMENT = compile_late(r"(?s)<!--(.*?)(-->|\Z)")
_LINK_LABEL = compile_late(r"(?m)^\[//\]:\s*#\s*(.*)$")
_NAME = compile_late(r"[A-Za-z0-9][\w.-]{0,60}")

DIFF = "difference.patch"


class LargeChangeError(ConfigError):
    """The difference is too large to be reviewed."""


@dataclass(frozen=True, slots=True)
class Material:
    """Texts for one run."""

    diff: str
    texts: Mapping[str, str]
    """Texts of strangers, by a name such as `title`."""

    @property
    def files(self) -> Mapping[str, str]:
        """The files for the model by name, made visible; in a difference comments are code, and stay as they are."""
        texts = {f"{name}.txt": visible(text) for name, text in self.texts.items()}
        return {**({DIFF: escape_invisible(self.diff)} if self.diff else {}), **texts}

    def write_to(self, folder: Path) -> None:
        """Write the files into a new folder."""
        folder.mkdir(mode=0o700)
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8", errors="replace")


def visible(text: str) -> str:
    """Return a text of a stranger with all that pages hide: comments named as such, other characters by number."""
    text = _COMMENT.sub(lambda match: f"[hidden comment: {match[1].strip()}]", text)
    text = _LINK_LABEL.sub(lambda match: f"[hidden comment: {match[1].strip()}]", text)
    return escape_invisible(text)


def read_texts(given: Sequence[str]) -> dict[str, str]:
    """Return the texts of `--text NAME=FILE`, by name.

    Raises:
        ConfigError: The form is another one, or a file cannot be read.
    """
    found: dict[str, str] = {}
    for one in given:
        name, equals, file = one.partition("=")
        if not equals or not file or not _NAME.fullmatch(name):
            raise ConfigError(f"--text takes NAME=FILE, such as title=title.txt, and not {one[:80]!r}")
        found[name] = _read(file, _MAX_TEXT_BYTES)
    return found


def read_diff(file: str) -> str:
    """Return the difference in a file of the user, or on standard input for `-`.

    Raises:
        ConfigError: It cannot be read, or is too large.
    """
    if file != "-":
        return _read(file, MAX_DIFF_BYTES)
    data = sys.stdin.buffer.read(MAX_DIFF_BYTES + 1)
    if len(data) > MAX_DIFF_BYTES:
        raise ConfigError(f"standard input has more than {MAX_DIFF_BYTES:,} bytes; pass a part of the change")
    return data.decode(errors="replace")


def _read(file: str, max_bytes: int) -> str:
    try:
        return read_users_file(file, max_bytes=max_bytes).decode(errors="replace")
    except ToolError as error:
        raise ConfigError(str(error)) from error


async def repository_root(cwd: Path) -> Path:
    """Return the top folder of the repository around a folder.

    Raises:
        ConfigError: There is none, or git is not installed.
    """
    found = await _asked(["rev-parse", "--show-toplevel"], cwd)
    if found.exit_code != 0:
        raise ConfigError(f"{cwd} is in no git repository; run this in a checkout, or name one with --cwd")
    return canonical_path(Path(found.stdout.decode(errors="surrogateescape").removesuffix("\n")))


async def difference(root: Path, *, base: str | None = None, index: str | None = None) -> str:
    """Return the difference of `HEAD` to where it left a base, or the staged one without a base.

    Args:
        root: Top folder of the repository.
        base: Commit or branch.
        index: Index with what is staged, as git names it to its hooks: `git commit -a` has one of its own.

    Raises:
        LargeChangeError: The difference is too large.
        ConfigError: The base is not there, or git cannot show the difference.
    """
    if base is None:
        return await _diff(["--cached"], root, {} if index is None else {"GIT_INDEX_FILE": str(root / index)})
    known = await _asked(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}"], root)
    if known.exit_code != 0:
        branch = base.removeprefix("origin/")
        raise ConfigError(
            f"there is no commit {base}; fetch it first, as with `git fetch origin {branch}` or fetch-depth: 0"
        )
    commit = known.stdout.decode().strip()
    merge_base = await _asked(["merge-base", commit, "HEAD"], root)
    if merge_base.exit_code != 0:
        raise ConfigError(f"{base} and HEAD have no commit in common here; fetch more history, as with fetch-depth: 0")
    begin = merge_base.stdout.decode().strip()
    head = (await _asked(["rev-parse", "--verify", "HEAD^{commit}"], root)).stdout.decode().strip()
    kept = await _asked(["rev-parse", "--path-format=absolute", "--show-object-format", "--git-path", "objects"], root)
    form, objects = kept.stdout.decode(errors="surrogateescape").removesuffix("\n").split("\n", 1)
    with temporary_folder("panpan-ci-diff-") as folder:
        # an empty repository has no attributes, by which files of the checkout could be called binary, and hidden
        await _own(["init", "--bare", "-q", "--template=", f"--object-format={form}", "."], folder)
        return await _diff([begin, head], folder, {"GIT_DIR": str(folder), "GIT_OBJECT_DIRECTORY": objects})


_DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=dirty", "--no-color",
         "--src-prefix=a/", "--dst-prefix=b/")  # fmt: skip


async def _diff(args: Sequence[str], root: Path, env: Mapping[str, str] = MappingProxyType({})) -> str:
    found = await _own([*_DIFF, *args, "--"], root, env)
    if found.is_truncated or len(found.stdout) > MAX_DIFF_BYTES:
        raise LargeChangeError(
            f"the difference has more than {MAX_DIFF_BYTES:,} bytes, which is too much; pass a part with --diff"
        )
    if found.exit_code != 0:
        raise ConfigError(f"git cannot show the difference: {found.stderr.decode(errors='replace').strip()[:200]}")
    return found.stdout.decode(errors="replace")


async def _own(args: Sequence[str], folder: Path, env: Mapping[str, str] = MappingProxyType({})) -> Captured:
    try:
        return await run_own_git(args, cwd=folder, timeout_s=_GIT_S, env=env)
    except ToolError as error:
        raise ConfigError(str(error)) from error


async def _asked(args: Sequence[str], folder: Path) -> Captured:
    try:
        return await run_git(args, cwd=folder, timeout_s=_GIT_S)
    except ToolError as error:
        raise ConfigError(str(error)) from error


_HEADER = "diff --git "


def files_not_shown(diff: str) -> Sequence[str]:
    """Return the files whose change a difference does not show as text, as git names them there."""
    found, header = [], ""
    for line in diff.split("\n"):  # those of files begin with a sign or a blank, and the others are git's own
        if line.startswith(_HEADER):
            header = line.removeprefix(_HEADER)
        elif line == "GIT binary patch" or (line.startswith("Binary files ") and line.endswith(" differ")):
            found.append(_name_in(header))
    return found


def _name_in(header: str) -> str:
    """Return the file of `a/NAME b/NAME`; both names if they differ."""
    old, new = (side.strip('"')[2:] for side in (header[: len(header) // 2], header[len(header) // 2 + 1 :]))
    return new if old == new else header


class WorkingTree:
    """The files of a repository at two times, and the patch between them; nothing is written to the repository.

    Args:
        root: Top folder of the repository.
        scratch: Private folder for the index and the objects.
    """

    def __init__(self, root: Path, scratch: Path) -> None:
        self._root = root
        self._scratch = scratch
        self._before = ""

    async def remember(self) -> None:
        """Take the files as they are as the beginning.

        Raises:
            ToolError: git cannot read them.
        """
        (self._scratch / "objects").mkdir()
        self._before = await self._tree()

    async def patch(self) -> str:
        """Return what has changed since, with new files that git does not ignore.

        Raises:
            ToolError: git cannot read them.
        """
        after = await self._tree()
        done = await self._git(["diff-tree", "-p", "--binary", "--no-ext-diff", "--no-textconv", self._before, after])
        return done.stdout.decode(errors="replace")

    async def _tree(self) -> str:
        await self._git(["add", "--all"])
        return (await self._git(["write-tree"])).stdout.decode().strip()

    async def _git(self, args: Sequence[str]) -> Captured:
        common = await _asked(["rev-parse", "--path-format=absolute", "--git-path", "objects"], self._root)
        own = {
            "GIT_INDEX_FILE": str(self._scratch / "index"),
            "GIT_OBJECT_DIRECTORY": str(self._scratch / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": common.stdout.decode(errors="surrogateescape").strip(),
        }
        done = await run_own_git(args, cwd=self._root, timeout_s=_GIT_S, env=own)
        if done.exit_code != 0:
            raise ToolError(f"git {args[0]} failed: {done.stderr.decode(errors='replace').strip()[:200]}")
        return done
