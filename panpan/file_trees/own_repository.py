"""Repositories of panpan's own, in which it keeps the content of the user's folders.

The rule: nothing but panpan's own settings counts. No configuration of the user, the system or the folder is read, no
attribute of the folder changes a byte, no hook and no filter exists, and no repository of the user's is opened: the
index, the objects and the references are all below the panpan home.
"""

import hashlib
import os
import secrets
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from panpan.errors import ToolError
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.git.git import git_environment, git_program
from panpan.system.processes.process import capture
from panpan.system.text.terminal_text import clean_line

_SETTINGS: Mapping[str, str] = {
    "core.autocrlf": "false",
    "core.safecrlf": "false",
    "core.symlinks": "true",
    "core.fileMode": "true",
    "core.ignoreCase": "false",
    "core.precomposeUnicode": "false",
    "core.protectNTFS": "false",
    "core.protectHFS": "false",
    "core.trustctime": "true",
    "core.excludesFile": "",
    "core.looseCompression": "1",
    "core.compression": "1",
    "core.quotePath": "false",
    "core.splitIndex": "false",
    "core.logAllRefUpdates": "false",
    "core.multiPackIndex": "false",
    "index.sparse": "false",
    "index.skipHash": "true",
    "index.version": "4",
    "gc.autoDetach": "false",
    "gc.pruneExpire": "never",
    "i18n.commitEncoding": "UTF-8",
}
"""They see to it that names and bytes are kept as they are, whatever they are, and nothing is ever deleted by age."""

_ATTRIBUTES = "* -text -ident -filter !working-tree-encoding !diff !merge\n"
"""Stronger than every .gitattributes of the folder: bytes are bytes."""

_MAX_MESSAGE_CHARS = 200
_UNFINISHED_S = 86_400
"""Older than any file that some git still writes."""


class TooMuchError(ToolError):
    """git took too long or printed too much, as it does for a folder that is too large."""


class OwnRepository:
    """A repository of panpan's own below the panpan home, made by `prepare`, for the canonical folder `work_tree`."""

    def __init__(self, folder: Path, work_tree: Path) -> None:
        self.folder = folder
        self.work_tree = work_tree
        self._program = ""
        self._base: dict[str, str] = {}
        """Environment but for the index; looked up once, since a snapshot runs git several times."""
        self._is_leisurely: Callable[[], bool] = lambda: False

    def prepare(self) -> None:
        """Make it where it is missing, without asking git: what it needs is little, and nothing else belongs there.

        Raises:
            OSError: It cannot be made.
            ConfigError: Its folder cannot be made private.
        """
        make_private_folder(self.folder)
        for part in ("objects", "refs", "info", "indexes"):
            (self.folder / part).mkdir(mode=0o700, exist_ok=True)
        for name, text in (("info/attributes", _ATTRIBUTES), ("HEAD", "ref: refs/heads/none\n")):
            if not (self.folder / name).is_file():
                self._write(name, text.encode("ascii"))
        for place in (self.folder / "objects" / "pack").glob("tmp_*"):  # left by a killed git
            with suppress(FileNotFoundError):  # a git that has just finished
                if place.stat().st_mtime < time.time() - _UNFINISHED_S:
                    place.unlink()

    @property
    def gives_way(self) -> bool:
        """True if nobody waits for git, so that other programs come first."""
        return self._is_leisurely()

    @contextmanager
    def giving_way(self, is_leisurely: Callable[[], bool]) -> Iterator[None]:
        """Let other programs come before each long git that begins in the block while `is_leisurely` says so."""
        self._is_leisurely = is_leisurely
        try:
            yield
        finally:
            self._is_leisurely = lambda: False

    def point(self, reference: str, oid: str) -> None:
        """Let a reference lead to an object; git itself takes a process for it."""
        self._write(reference, f"{oid}\n".encode("ascii"))

    def add_object(self, kind: str, content: bytes) -> str:
        """Add an object of a kind such as `commit`, and return its id; git itself takes a process for it."""
        data = f"{kind} {len(content)}\0".encode("ascii") + content
        oid = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        place = self.folder / "objects" / oid[:2] / oid[2:]
        if not place.exists():
            self._write(f"objects/{oid[:2]}/{oid[2:]}", zlib.compress(data, 1), mode=0o444)
        return oid

    def read_loose(self, kind: str, oid: str) -> bytes | None:
        """Return the content of an object that `add_object` added; None if git has packed it, or there is none."""
        with suppress(OSError, ValueError, zlib.error):
            data = zlib.decompress((self.folder / "objects" / oid[:2] / oid[2:]).read_bytes())
            head, _, content = data.partition(b"\0")
            return content if head == f"{kind} {len(content)}".encode("ascii") else None
        return None

    def add_tree(self, files: Mapping[str, tuple[str, str]]) -> str:
        """Add the tree of files, given by path with git's mode and the id of each, and return its id."""
        # what is in each folder, as git writes it, behind the name that it is sorted by
        inside: dict[str, list[tuple[bytes, bytes]]] = {"": []}
        for path, (mode, oid) in files.items():
            folder, _, name = path.rpartition("/")
            raw = os.fsencode(name)
            entry = b"%b %b\0%b" % (mode.encode("ascii"), raw, bytes.fromhex(oid))
            inside.setdefault(folder, []).append((raw, entry))
        waiting = [folder for folder in inside if folder]
        for folder in waiting:
            above = folder.rpartition("/")[0]
            if above not in inside:
                inside[above] = []
                waiting.append(above)
        for folder in sorted(waiting, key=lambda path: path.count("/"), reverse=True):
            above, _, name = folder.rpartition("/")
            raw = os.fsencode(name)
            entry = b"40000 %b\0%b" % (raw, bytes.fromhex(self._add_folder(inside[folder])))
            inside[above].append((raw + b"/", entry))  # git sorts a folder as if its name ended with a slash
        return self._add_folder(inside[""])

    def _add_folder(self, entries: Sequence[tuple[bytes, bytes]]) -> str:
        return self.add_object("tree", b"".join(entry for _, entry in sorted(entries)))

    def read_reference(self, reference: str) -> str | None:
        """Return the object that a reference leads to; None if there is no such reference."""
        try:
            return (self.folder / reference).read_text(encoding="ascii").strip() or None
        except (FileNotFoundError, NotADirectoryError):
            pass
        try:
            packed = (self.folder / "packed-refs").read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            return None
        lines = (line.split(" ") for line in packed.splitlines() if not line.startswith(("#", "^")))
        return next((line[0] for line in lines if line[1:] == [reference]), None)

    async def run(
        self,
        *args: str,
        index: Path | None = None,
        work_tree: Path | None = None,
        stdin: bytes = b"",
        settings: Sequence[str] = (),
        timeout_s: float = 60,
        max_bytes: int = 100_000_000,
        note_warnings: Callable[[bytes], object] = lambda _: None,
        is_long: bool = False,
    ) -> bytes:
        """Run git on it and return what it printed.

        Args:
            args: The command and its arguments, panpan's own.
            index: The index to use; that of the repository if not given.
            work_tree: Another folder than that of the repository, below it.
            stdin: What git reads.
            settings: Such as `core.bigFileThreshold=0`, for this command.
            timeout_s: Seconds, after which it is ended.
            max_bytes: Most that it may print.
            note_warnings: Gets its warnings, if it succeeds.
            is_long: True if it works so long that it may have to give way.

        Raises:
            TooMuchError: It took too long or printed too much.
            ToolError: git is missing or failed.
        """
        folder = work_tree or self.work_tree
        options = [part for setting in settings for part in ("-c", setting)]
        self._program = self._program or git_program(self.work_tree)
        command = [self._program, "--no-pager", "--literal-pathspecs", *options, *args]
        env = self._environment(folder, index)
        try:
            with TemporaryFile() as file:
                file.write(stdin)
                file.seek(0)
                done = await capture(
                    command,
                    cwd=folder,
                    env=env,
                    timeout_s=timeout_s,
                    max_bytes=max_bytes,
                    stdin=file,
                    gives_way=is_long and self.gives_way,
                )
        except OSError as error:
            raise ToolError(f"git {args[0]} could not be given its input: {error.strerror}") from error
        if done.timed_out:
            raise TooMuchError(f"git {args[0]} took longer than {timeout_s:g} s")
        if done.is_truncated:
            raise TooMuchError(f"git {args[0]} printed more than {max_bytes:,} bytes")
        if done.exit_code != 0:
            raise ToolError(f"git {args[0]} failed: {_reason(done.stderr) or f'exit code {done.exit_code}'}")
        note_warnings(done.stderr)
        return done.stdout

    async def write_tree(self, index: Path) -> str:
        """Keep what an index lists as a tree, and return its id."""
        return (await self.run("write-tree", index=index)).decode().strip()

    async def changed_tree(self, tree: str, files: Mapping[str, tuple[str, str] | None]) -> str:
        """Return a tree in which files, given by path with git's mode and the id of each, are others; None: gone."""
        index = self.folder / "indexes" / f"plan-{os.getpid()}.plan"
        nothing = ("0", "0" * 40)
        entries = ((path, file or nothing) for path, file in files.items())
        lines = b"".join(f"{mode} {oid}\t".encode() + os.fsencode(path) + b"\0" for path, (mode, oid) in entries)
        try:
            await self.run("read-tree", tree, index=index)
            if lines:
                await self.run("update-index", "-z", "--index-info", index=index, stdin=lines)
            return await self.write_tree(index)
        finally:
            index.unlink(missing_ok=True)

    def _write(self, name: str, data: bytes, *, mode: int = 0o600) -> None:
        """Write a file of the repository, whole or not at all, even if another thread or machine writes it now."""
        place = self.folder / name
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # a name that git never takes for a reference
        new = place.with_name(f"{place.name}.{secrets.token_hex(8)}.lock")
        try:
            new.write_bytes(data)
            new.chmod(mode)
            new.replace(place)
        finally:
            new.unlink(missing_ok=True)

    def _environment(self, work_tree: Path, index: Path | None) -> dict[str, str]:
        self._base = self._base or {
            **git_environment(settings=_SETTINGS),
            "GIT_DIR": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "LC_ALL": "C",
        }
        env = {**self._base, "GIT_WORK_TREE": str(work_tree)}
        if index is not None:
            env["GIT_INDEX_FILE"] = str(index)
        return env


def _reason(stderr: bytes) -> str:
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("fatal:", "error:"))]
    return clean_line(" ".join((errors or lines)[-2:]))[:_MAX_MESSAGE_CHARS]
