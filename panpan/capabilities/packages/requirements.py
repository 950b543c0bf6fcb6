"""Texts of the model that become arguments of a package manager.

The rule: what comes out of here can never be taken for an option, names no index, and what is fetched from elsewhere
than an index, or built from a folder, is known to be so.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from panpan.errors import ToolError
from panpan.python_environments.metadata import normalise_name
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from panpan.capabilities.packages.target import Installed

MAX_PACKAGES = 200
"""Most packages that one call may name."""
_MAX_CHARS = 500
# Patterns are strings, compiled when first needed, so that the start pays nothing for them.
_EXTRAS = r"(?s)(?P<path>.*?)(?P<extras>\[[\w,. -]*\])?"
_EDITABLE = r"(?s)-e\s+(?P<path>[./~].*)"
_URL = r"(?i)(?:git\+)?https://[^\s@/]+(?:/[!-~]*)?"
"""An address without a user name, which would hold a key."""
_CONDA_SPEC = (
    r"(?:(?P<channel>[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)*)::)?"
    r"(?P<name>[A-Za-z0-9_][\w.-]*)\s*(?P<versions>[=<>!~][\w.*+!,|<>=~ -]*)?"
)
"""A match specification without brackets, which could name an address."""
_ASKED = r"(?:[\w./-]+::)?(?P<name>[A-Za-z0-9][\w.-]*)(?![\w.:/+-])"
_CHANNEL = r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)*"
_NAME = r"[A-Za-z0-9](?:[\w.-]{0,62}[A-Za-z0-9_])?"
_RECORDED_NAME = r"(?a)[A-Za-z0-9_][\w.-]*"
_RECORDED_VERSION = r"(?a)[A-Za-z0-9][\w.!+-]*"
_RECORDED_BUILD = r"(?a)[\w.]*"
_ENVIRONMENT = r"\.?[A-Za-z0-9][\w.-]{0,62}"
_PYTHON = r"3\.\d{1,2}(?:\.\d{1,2})?"
_PLATFORM = r"(?:linux|osx|win|emscripten|wasi)-[a-z0-9]{2,10}"
_NO_ENVIRONMENTS = frozenset(
    {".git", ".hg", ".svn", ".panpan", ".claude", "src", "lib", "tests", "docs", "__pycache__"}
)


@dataclass(frozen=True, slots=True)
class RequestedPackage:
    """One package that is asked for."""

    argument: str
    """Argument for the package manager."""
    named: str = ""
    """Text for the user about its source, an address or a local folder; empty if an index has it."""
    path: str = ""
    """The folder or file that it is built or installed from; absolute, empty where there is none."""
    address: str = ""
    """Address that it is fetched from; empty if an index has it."""
    is_editable: bool = False
    """True if it is installed in editable mode, so that later changes of the folder take effect."""


def python_package(text: str, absolute: Callable[[str], str]) -> RequestedPackage:
    """Return the package in `text`: a requirement (PEP 508), an address, or a folder or wheel of this machine.

    `text`: as the model wrote it, such as `numpy>=2`, `./lib[extra]`, `name @ git+https://example.org/x`, or `-e ./lib`
    for a folder that is installed as it lies there.

    Raises:
        ToolError: It is none of these, or an address that is not asked over https.
    """
    if match := re.fullmatch(_EDITABLE, text.strip()):
        local = _local_package(match["path"], absolute)
        return replace(local, named=f"-e {local.named}", is_editable=True)
    text = _plain(text, "package")
    if text.startswith((".", "/", "~")):
        return _local_package(text, absolute)
    if "://" in text and "@ " not in text and " @" not in text:
        return RequestedPackage(_address(text), named=text, address=text)
    requirement = _requirement(text)
    if is_file_name(requirement.name):
        raise ToolError(f"{text!r} may be a file; write ./{text} where one is meant")
    if requirement.url:
        return RequestedPackage(str(requirement), named=text, address=_address(requirement.url))
    return RequestedPackage(str(requirement))


def is_file_name(name: str) -> bool:
    """True if pip and uv take a name for a file when a file of that name exists."""
    return re.search(r"(?i)\.(?:zip|whl|tar|tgz|tbz|txz|tlz|tar\.(?:gz|bz2|xz|lz|lzma|zst))$", name) is not None


def _local_package(text: str, absolute: Callable[[str], str]) -> RequestedPackage:
    """Return a folder or file of this machine as something to install; extras may follow it."""
    if ";" in text:  # pip and uv would parse on behind it, and use another file than the one that was checked
        raise ToolError(f"{text!r} has a ';' in it; name a path without a condition")
    match = re.fullmatch(_EXTRAS, _plain(text, "path"))
    assert match is not None, "it fits all texts"
    path = absolute(match["path"].removeprefix("./") or ".")
    return RequestedPackage(f"{path}{match['extras'] or ''}", named=path, path=path)


def package_name(text: str) -> str:
    """Return the name of a package that is to be taken away or looked at.

    Raises:
        ToolError: It is no name, or says more than that.
    """
    text = _plain(text, "package")
    if re.fullmatch(_NAME, text) is None:
        raise ToolError(f"{text!r} is not a package name; name it alone, without a version")
    return text


def names_asked(packages: Sequence[str]) -> frozenset[str]:
    """Return the normalised names in texts that ask for packages; of an address or a folder there is none."""
    found = (re.match(_ASKED, text.strip()) for text in packages)
    return frozenset(normalise_name(match["name"]) for match in found if match)


def is_channel(text: str) -> bool:
    """True if a record names a channel that can be asked again."""
    return re.fullmatch(_CHANNEL, text) is not None or re.fullmatch(_URL, text) is not None


def conda_package(text: str, *, may_name_channel: bool = True) -> str:
    """Return a package with its versions as conda takes it, such as `pytorch::pytorch>=2,<3`.

    Raises:
        ToolError: It is none.
    """
    text = _plain(text, "package")
    match = re.fullmatch(_CONDA_SPEC, text)
    if match is None or (match["channel"] and not may_name_channel):
        raise ToolError(f"{text!r} is not a package with versions, such as numpy or numpy>=2,<3")
    if match["name"].lower().endswith((".conda", ".tar.bz2")):
        raise ToolError(f"{text!r} is a file to conda; files are not installed")
    return text


def channels_named(packages: Sequence[str]) -> list[str]:
    """Return the channels that specifications of conda name, such as `pytorch` of `pytorch::pytorch>=2`."""
    return [text.partition("::")[0].strip() for text in packages if "::" in text]


def channel(text: str) -> str:
    """Return the name of a channel; an address is the user's to set. Raise ToolError if it is no name."""
    text = _plain(text, "channel")
    if re.fullmatch(_CHANNEL, text) is None:
        raise ToolError(
            f"{text!r} is not a channel name, such as conda-forge; the user's setting packages.channels "
            "names one at an address of its own"
        )
    return text


def environment_name(text: str) -> str:
    """Return the name of an environment that may be made: of letters, digits, `.`, `_` and `-`, 64 at most.

    Raises:
        ToolError: It is none, or is known as something else.
    """
    if re.fullmatch(_ENVIRONMENT, text) is None or text.endswith(".") or text.lower() in _NO_ENVIRONMENTS:
        raise ToolError(
            f"{text!r} is not a valid name for an environment; use letters, digits, '.', '_' and '-', such as .venv"
        )
    return text


def feature_name(text: str) -> str:
    """Return the name of a feature, environment or task of a manifest. Raise ToolError if it is none."""
    if re.fullmatch(_NAME, text) is None:
        raise ToolError(f"{text!r} is not a valid name for a feature or environment; use letters, digits and '-'")
    return text


def python_version(text: str) -> str:
    """Return a version of Python, such as 3.11. Raise ToolError if it is none."""
    if re.fullmatch(_PYTHON, text) is None:
        raise ToolError(f"{text!r} is not a Python version; write it as 3.11")
    return text


def platform(text: str) -> str:
    """Return a platform as conda names it, such as linux-64. Raise ToolError if it is none."""
    if re.fullmatch(_PLATFORM, text) is None:
        raise ToolError(f"{text!r} is not a platform, such as linux-64 or osx-arm64")
    return text


def program(command: list[str] | tuple[str, ...]) -> list[str]:
    """Return a command to be run in an environment, program first.

    Raises:
        ToolError: There is none, its program looks like an option, or an argument holds a NUL.
    """
    if not command or not command[0].strip():
        raise ToolError("name what to run in `command`: the program and its arguments, each by itself")
    if command[0].startswith("-"):
        raise ToolError(f"{command[0]!r} is an option, not a program; the program comes first in `command`")
    if any("\0" in word for word in command):
        raise ToolError("an argument of the command holds a NUL character, which no program can take")
    return list(command)


def named_packages(packages: Sequence[str]) -> list[str]:
    """Return names of packages without versions. Raise ToolError if there are none, or too many, or one is no name."""
    require_some(packages)
    return [package_name(text) for text in packages]


def require_some(packages: Sequence[str], *others: object) -> None:
    """Refuse a call that names nothing, or too much. Raise ToolError if it does."""
    if not packages and not any(others):
        raise ToolError("name at least one package in `packages`")
    if len(packages) > MAX_PACKAGES:
        raise ToolError(f"{len(packages)} packages are too many for one call; write a requirements file")


def is_plain(package: "Installed") -> bool:
    """True if a package's record can be given to a package manager; records are not written by panpan."""
    parts = ((package.name, _RECORDED_NAME), (package.version, _RECORDED_VERSION), (package.build, _RECORDED_BUILD))
    is_address = not package.address or re.fullmatch(_URL, package.address) is not None
    is_path = not package.path or (package.path.startswith("/") and package.path.isprintable())
    return is_address and is_path and all(re.fullmatch(pattern, text) for text, pattern in parts)


def _requirement(text: str) -> "Requirement":
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement as exc:
        said = " ".join(str(exc).split("\n")[0].split())
        raise ToolError(
            f"{text!r} is not a requirement ({said}); write name, name>=1,<2, ./folder or name @ https://…"
        ) from exc


def _address(url: str) -> str:
    if re.fullmatch(_URL, url) is None:
        raise ToolError(
            f"{url!r} cannot be installed from: only https:// and git+https:// addresses without a user name can"
        )
    return url


def _plain(text: str, what: str) -> str:
    text = text.strip()
    if not text or len(text) > _MAX_CHARS or not text.isprintable():
        raise ToolError(f"a {what} has to be 1 to {_MAX_CHARS} printable characters")
    if text.startswith("-"):
        raise ToolError(f"{text!r} is an option and no {what}; options cannot be given")
    return text
