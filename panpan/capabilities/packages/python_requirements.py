"""Requirements for pip and uv, checked, with all that a question has to name of them."""

import codecs
import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from panpan.capabilities.packages.plan import Plan
from panpan.capabilities.packages.requirements import environment_name, is_file_name, python_package
from panpan.capabilities.packages.target import Target
from panpan.core.effects import PathUse
from panpan.errors import ToolError
from panpan.python_environments.requirement_files import (
    NESTED,
    requirement_lines,
    without_comments,
    without_hashes,
    without_login,
)
from panpan.python_environments.sources import UNKNOWN_HOST, addresses_in, hosts_of
from panpan.system.files.paths import PathResolver
from panpan.system.files.read_file import read_regular_file
from panpan.system.text.terminal_text import escape_invisible
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

# Parse the file as text, and run nothing of it. Report every line that an index cannot answer. Report a file that
# cannot be read, too, and assume that it may contact any host. The format is pip's ("Requirements File Format", pip's
# documentation); of conda's environment.yml each line is checked.

_MAX_FILES = 20
_MAX_BYTES = 2_000_000
_MAX_NAMED = 20
_OTHER_CODINGS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_CODING = compile_late(rb"#.*coding[:=]\s*([-\w.]+)")
"""Comment in one of the first two lines that sets the encoding in which pip reads the file."""
_OF_CONDA = compile_late(r"(?a)(?:-\s+)*(?:[A-Za-z0-9_][\w.<>=!~*+,|\[\] -]*(?:::?[\w.<>=!~*+,|\[\] -]*)?)?")
"""A line of environment.yml that says no more than names and versions, in no way of writing that could hide more."""
_PLAIN_CODINGS = frozenset({b"utf-8", b"utf8", b"ascii", b"us-ascii"})
_LOCAL = compile_late(r"(?:-e|--editable)(?:\s*=?\s*)(?P<path>\S.*)")


@dataclass(frozen=True, slots=True)
class RequirementFile:
    """Contents of one file, with all files that it includes."""

    named: tuple[str, ...] = ()
    """Its options, addresses and folders, as written."""
    hosts: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    """The files and folders that it includes; absolute."""
    digests: tuple[str, ...] = ()
    """SHA-256 of the files that were read, in hex."""
    has_pip: bool = False
    """True if an environment.yml also has packages of Python's index."""


def read_requirement_file(path: str, paths: PathResolver) -> RequirementFile:
    """Return the contents of a requirements file that do not come from an index alone.

    `paths`: knows what may be read; what only an answer opens is not looked at.

    Raises:
        ToolError: A path in it is none.
    """
    named: list[str] = []
    hosts: list[str] = []
    reads: list[str] = []
    digests: list[str] = []
    pending = [paths.absolute(path)]
    seen: set[Path] = set()
    has_pip = False
    while pending:
        name = pending.pop(0)
        location = paths.locate(name)
        if location.path in seen:
            continue
        seen.add(location.path)
        data = _data(location.path) if location.is_readable and not location.is_secret else None
        if data is None or _is_coded(data) or len(seen) > _MAX_FILES:
            named.append(f"what {name} says could not be looked at")
            hosts.append(UNKNOWN_HOST)
            continue
        digests.append(sha256(data).hexdigest())
        text = data.removeprefix(codecs.BOM_UTF8).decode(errors="replace")
        lines = [line for _, line in requirement_lines(text)]
        if location.path.suffix in (".yml", ".yaml"):
            lines = [line for _, line in without_comments(enumerate(text.splitlines()))]
            named += [_shown(line) for line in lines if _OF_CONDA.fullmatch(line) is None]
            hosts += hosts_of([address for line in lines for address in addresses_in(line)])
            has_pip = has_pip or any(line.replace(" ", "") == "-pip:" for line in lines)
            continue
        folder = location.path.parent
        for line in lines:
            if nested := NESTED.fullmatch(line):
                if "://" in nested["path"]:
                    named.append(without_login(line))
                    hosts.append(UNKNOWN_HOST)
                else:
                    pending.append(str(folder / nested["path"]))
                    reads.append(str(folder / nested["path"]))
            elif not _is_plain(line):
                named.append(_shown(line))
                hosts += hosts_of(addresses_in(line))
                reads += _folders(line, folder)
    shown = [*named[:_MAX_NAMED], *([f"and {len(named) - _MAX_NAMED} more"] if len(named) > _MAX_NAMED else [])]
    return RequirementFile(tuple(shown), tuple(dict.fromkeys(hosts)), tuple(reads), tuple(digests), has_pip)


def _is_coded(data: bytes) -> bool:
    """True if pip reads the file in another encoding than UTF-8."""
    codings = (match[1].lower() for line in data.split(b"\n")[:2] if (match := _CODING.match(line)))
    return data.startswith(_OTHER_CODINGS) or next(codings, b"utf-8") not in _PLAIN_CODINGS


def _shown(line: str) -> str:
    for address in re.findall(r"\S+://\S+", line):
        line = line.replace(address, without_login(address))
    return escape_invisible(line)[:200]


def _is_plain(line: str) -> bool:
    """True if a line is a requirement that an index answers."""
    from packaging.requirements import InvalidRequirement, Requirement

    text = without_hashes(line)
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return False
    return not requirement.url and not is_file_name(requirement.name) and "${" not in text


def _folders(line: str, folder: Path) -> Sequence[str]:
    match = _LOCAL.fullmatch(line)
    text = match["path"] if match else line
    text = re.sub(r"\[[\w,. -]*\]$", "", text.partition(";")[0].strip())
    if "://" in text or not text.startswith((".", "/")):
        return ()
    return (str(folder / text),)


def _data(path: Path) -> bytes | None:
    try:
        return read_regular_file(path, max_bytes=_MAX_BYTES)
    except ToolError:
        return None


@dataclass(frozen=True, slots=True)
class PythonRequirements:
    """Requirements, files and folders to install."""

    arguments: tuple[str, ...]
    """Requirements, as they are passed on."""
    file: str | None
    """A file of requirements; absolute."""
    editable: tuple[str, ...]
    """Folders that are installed as they lie there; absolute, maybe with extras."""
    named: tuple[str, ...]
    hosts: tuple[str, ...]
    """Hosts beside those of an index."""
    uses: tuple[PathUse, ...]
    digests: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        """Options for pip and uv, which come before the operands."""
        file = ["--requirement", self.file] if self.file else []
        return [*file, *(word for folder in self.editable for word in ("--editable", folder))]

    @property
    def operands(self) -> list[str]:
        """The requirements, after the `--` that ends the options."""
        return ["--", *self.arguments] if self.arguments else []

    def added_to(self, plan: Plan) -> Plan:
        """Return a plan with what is known of these."""
        return replace(
            plan,
            hosts=tuple(dict.fromkeys((*plan.hosts, *self.hosts))),
            named=(*plan.named, *self.named),
            uses=(*plan.uses, *self.uses, *([PathUse(plan.wheels, "read")] if plan.wheels else [])),
            digests=self.digests,
        )


def python_requirements(packages: Sequence[str], file: str | None, paths: PathResolver) -> PythonRequirements:
    """Return the checked requirements of a call. Raise ToolError if one cannot be installed."""
    wanted = [python_package(text, paths.absolute) for text in packages]
    said = RequirementFile() if file is None else read_requirement_file(file, paths)
    reads = [*([paths.absolute(file)] if file else []), *(one.path for one in wanted if one.path), *said.reads]
    uses = [PathUse(path, "read") for path in reads]
    uses += [PathUse(one.path, "write") for one in wanted if one.is_editable]  # a build leaves its metadata there
    return PythonRequirements(
        arguments=tuple(one.argument for one in wanted if not one.is_editable),
        file=None if file is None else str(paths.locate(file).path),
        editable=tuple(one.argument for one in wanted if one.is_editable),
        named=(*(one.named for one in wanted if one.named), *said.named),
        hosts=(*hosts_of([one.address for one in wanted]), *said.hosts),
        uses=tuple(uses),
        digests=said.digests,
    )


def wheels_folder(text: str | None, paths: PathResolver) -> str | None:
    """Return the folder of wheels that is named, absolute. Raise ToolError if it is no folder."""
    if text is None:
        return None
    place = paths.locate(text).path
    if not place.is_dir():
        raise ToolError(f"{text} is not a folder; name one with wheels")
    return str(place)


def new_environment(text: str | None, paths: PathResolver) -> Target:
    """Return the environment that is to be made: `.venv` where none is named.

    Raises:
        ToolError: Its name is none, or there is something already.
    """
    text = text or ".venv"
    prefix = paths.locate(text).path
    environment_name(prefix.name)
    if prefix.exists() and (not prefix.is_dir() or any(prefix.iterdir())):
        raise ToolError(f"{prefix} exists already; use it as it is, or choose another name")
    return Target(prefix, "venv", why="it is to be made")
