"""Files that commands have made from others, and the kind of a command, which they decide.

A tool that builds only what has changed looks at the times of sources and reads none, and a program is started without
the sources it was made of. So what a derived file was made of counts as read with it. The rule: where nobody knows what
a program was made of, all files of the workspace count.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

from panpan.receipts.digests import Content
from panpan.receipts.receipt import CommandKind, TestCounts
from panpan.receipts.workspace_files import GitFiles
from panpan.types.dataclass import dataclass

_MOST_REMEMBERED = 20_000
_TEXTS_OF_PROGRAMS = (".js", ".mjs", ".cjs", ".css", ".html", ".ts", ".py", ".c", ".cc", ".cpp", ".h", ".hpp", ".map")
"""Endings of files that programs make from sources, if git ignores them; others are data."""
_NOT_COMPILED = (
    ".py", ".pyi", ".md", ".rst", ".txt", ".toml", ".cfg", ".ini", ".json", ".yaml", ".yml", ".lock", ".html",
)  # fmt: skip
"""Endings of files that builds read, and that are no part of the programs that they make."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """Command that made a file."""

    number: int
    sha256: str
    """SHA-256 of the file."""
    inputs: Mapping[str, Content]
    knows_all: bool
    """False if it may have read other files, too."""


@dataclass(frozen=True, slots=True)
class Sources:
    """Files that derived files were made of."""

    contents: Mapping[str, Content]
    """As they were when they were read, by canonical path."""
    knows_all: bool
    """False if there may be others."""


class DerivedFiles:
    """Files that the commands of a workspace have made, with what they were made of.

    Args:
        git: Says which files git tracks and ignores.
    """

    def __init__(self, git: GitFiles) -> None:
        self._git = git
        self._origins: dict[str, _Origin] = {}
        self._commands = 0

    def remember(self, outputs: Mapping[str, Content], inputs: Mapping[str, Content], *, knows_all: bool) -> None:
        """Take note of the files that a command has made.

        Args:
            outputs: Files that it wrote, by canonical path.
            inputs: Files that it read, among them those that other derived files were made of.
            knows_all: False if it may have read other files, too.
        """
        self._commands += 1
        texts = {path: content for path, content in inputs.items() if not _is_compiled(path, content)}
        sources = {path: content for path, content in texts.items() if not path.endswith(_NOT_COMPILED)}
        for path, content in outputs.items():
            self._origins.pop(path, None)
            if content.sha256:
                while len(self._origins) >= _MOST_REMEMBERED:
                    del self._origins[next(iter(self._origins))]
                own = sources if _is_compiled(path, content) else texts
                self._origins[path] = _Origin(self._commands, content.sha256, own, knows_all)

    async def sources_of(self, inputs: Mapping[str, Content], outputs: Collection[str]) -> Sources:
        """Return what the derived files among the inputs of a command were made of.

        Of a source that several were made of, the newest content counts: tools build again what has to be.

        Args:
            inputs: Files that it read, by canonical path.
            outputs: Files that it wrote, canonical; those that it read, too, it has made of its other inputs.
        """
        known = {path: origin for path in inputs if (origin := self._origin(path, inputs[path])) is not None}
        compiled = {path for path, content in inputs.items() if _is_compiled(path, content)}
        texts = [path for path in known if path not in compiled and path.endswith(_TEXTS_OF_PROGRAMS)]
        origins = [known[path] for path in (known.keys() & compiled) | await self._git.ignored(texts)]
        strange = compiled - known.keys() - set(outputs)
        found: dict[str, Content] = {}
        for origin in sorted(origins, key=lambda origin: origin.number):
            found |= origin.inputs
        is_explained = strange <= await self._git.tracked(strange)
        return Sources(found, is_explained and all(origin.knows_all for origin in origins))

    def _origin(self, path: str, content: Content) -> _Origin | None:
        origin = self._origins.get(path)
        return origin if origin is not None and origin.sha256 == content.sha256 else None


_COMPILED = (
    b"\x7fELF",
    b"!<arch>\n",
    b"\0asm",
    b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe",  # Mach-O
)  # fmt: skip
_BY_ENDING: Mapping[bytes, tuple[str, ...]] = {
    b"\xca\xfe\xba\xbe": (".class", ".dylib", ".so", ".o", ""),  # of Java, or Mach-O for several processors
    b"MZ": (".exe", ".dll", ".pyd", ".sys"),
    b"PK\x03\x04": (".whl", ".jar", ".war", ".ear", ".apk", ".aar", ".nupkg", ".vsix"),
    b"\x1f\x8b": (".crate", ".gem", ".tgz"),
}
"""Beginnings that other files have, too, with the endings of names that settle it."""
_DOCUMENT = b"%PDF-"


def _is_compiled(path: str, content: Content) -> bool:
    """Return True if a file is a program, a library or a package that was made from sources."""
    if content.head.startswith(_COMPILED):
        return True
    ending = _ending(path)
    return any(content.head.startswith(head) and ending in endings for head, endings in _BY_ENDING.items())


def built_files(outputs: Mapping[str, Content]) -> list[str]:
    """Return the files that look like what a build makes: programs, libraries, packages and documents."""
    return [
        path for path, content in outputs.items() if _is_compiled(path, content) or content.head.startswith(_DOCUMENT)
    ]


def kind_of(
    tests: Sequence[TestCounts],
    outputs: Mapping[str, Content],
    inputs: Iterable[Content],
    *,
    only_looks: bool,
    copied: Collection[str] = (),
) -> CommandKind:
    """Return the kind of a command.

    Args:
        tests: Its test reports.
        outputs: Files that it wrote, by path.
        inputs: Files that it read and did not write; an output with the content of one is a copy, and was not built.
        only_looks: True if it is known to change nothing.
        copied: Outputs that came from elsewhere, such as those that git tracks.
    """
    if any(one.ran + one.skipped for one in tests):
        return "tests"
    known = {content.sha256 for content in inputs if content.sha256}
    if any(outputs[path].sha256 not in known and path not in copied for path in built_files(outputs)):
        return "build"
    return "look" if only_looks and not outputs else "run"


def _ending(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :] if "." in name else ""
