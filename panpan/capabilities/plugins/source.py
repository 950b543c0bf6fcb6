"""Sources of plug-ins, as users and catalogues write them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from panpan.errors import ConfigError
from panpan.system.files.archive import is_archive
from panpan.system.git.fetching import GIT_SCHEMES, GITHUB, SCP, checked_address, git_address
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

SourceKind: TypeAlias = Literal["folder", "archive", "url", "git", "npm"]

_NPM = compile_late(r"(?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*")
_REF = compile_late(r"\w[\w./+@-]*")
_HASH = compile_late(r"[0-9a-f]{64}")
_COMMIT = compile_late(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Source:
    """Place that a plug-in, or a catalogue of plug-ins, is fetched from."""

    kind: SourceKind
    location: str
    """Path, address, or name of a package."""
    ref: str = ""
    """Branch, tag or commit; version of a package."""
    path: str = ""
    """Folder in it; empty for the whole."""
    pinned: str = ""
    """Commit or SHA-256 that it must have; empty for any."""
    registry: str = ""
    """Registry of a package, if it is another one than usual."""
    is_users: bool = False
    """True if the user wrote it, so that it may lead into their own network."""


def parse_source(text: str, cwd: Path) -> Source:
    """Return the source that a user wrote: a folder, an archive, a git repository, or `npm:NAME`.

    Raises:
        ConfigError: It is none of these.
    """
    return replace(_parsed(text, cwd), is_users=True)


def _parsed(text: str, cwd: Path) -> Source:
    if text.startswith("npm:"):
        return _package(text.removeprefix("npm:"))
    path = cwd / Path(text).expanduser()
    if text and path.exists():
        if path.is_dir():
            return Source("folder", str(path.absolute()))
        if is_archive(path.name):
            return Source("archive", str(path.absolute()))
        raise ConfigError(f"{text} is neither a folder nor an archive; give the folder of the plug-in")
    written = text.partition("#")[0]
    if written.startswith(("https://", "http://")) and is_archive(written):
        return Source("url", written)
    if (address := git_address(text)) is not None:
        return Source("git", address.location, address.ref)
    raise ConfigError(
        f"{text} is not there, and no source; give a folder, an archive, the address of a git repository, "
        "OWNER/NAME on GitHub, or npm:NAME"
    )


def _git(location: str, ref: str) -> Source:
    address = checked_address(location, ref)
    return Source("git", address.location, address.ref)


def _package(text: str) -> Source:
    at = text.find("@", 1)
    name, version = (text[:at], text[at + 1 :]) if at > 0 else (text, "")
    if not _NPM.fullmatch(name) or (version and not _REF.fullmatch(version)):
        raise ConfigError(f"npm:{text} names no package; write npm:NAME or npm:NAME@VERSION")
    return Source("npm", name, version)


def source_of_entry(given: Any, catalogue: Source) -> Source:
    """Return the source of an entry of a catalogue: below the catalogue itself, or elsewhere.

    Raises:
        ConfigError: It cannot be used.
    """
    if isinstance(given, str):
        return replace(catalogue, path=_below(catalogue.path, given))
    if not isinstance(given, Mapping):
        raise ConfigError("the catalogue gives no source for it")
    texts = {key: value for key, value in given.items() if isinstance(value, str)}
    ref, commit = texts.get("ref", ""), texts.get("sha", texts.get("commit", "")).lower()
    if commit and not _COMMIT.fullmatch(commit):
        raise ConfigError(f"the commit {commit[:60]} in the catalogue is none")
    path = _below("", texts.get("path", ""))
    match texts.get("source", texts.get("type")):
        case "local" | "path":
            return replace(catalogue, path=_below(catalogue.path, texts.get("path", "")))
        case "github" if GITHUB.fullmatch(repository := texts.get("repo", "")):
            return replace(_git(f"https://github.com/{repository}", ref), path=path, pinned=commit)
        case "url" | "git" | "git-subdir" if "url" in texts:
            address = _repository(texts["url"], catalogue)
            return replace(_git(address, ref), path=path, pinned=commit)
        case "npm" if "package" in texts:
            version = texts.get("version", "")
            source = _package(f"{texts['package']}@{version}" if version else texts["package"])
            registry = texts.get("registry", "")
            if registry and not registry.startswith("https://"):
                raise ConfigError(f"the registry {registry[:100]} in the catalogue has no https")
            return replace(source, registry=registry)
        case "archive" if is_archive(texts.get("url", "")):
            digest = texts.get("sha256", "").lower()
            if not texts["url"].startswith("https://") or not _HASH.fullmatch(digest):
                raise ConfigError("an archive of a catalogue needs an address with https and its sha256")
            return Source("url", texts["url"], path=path, pinned=digest)
        case "command":
            raise ConfigError("the catalogue fetches it by a command, which panpan does not run")
    raise ConfigError("the catalogue gives a source for it that panpan does not know")


def _repository(address: str, catalogue: Source) -> str:
    """Return the address of a repository in a catalogue; raise `ConfigError` for one that may not stand there."""
    full = f"https://github.com/{address}" if GITHUB.fullmatch(address) else address
    is_here = catalogue.kind in ("folder", "archive") or catalogue.location.startswith("file:")
    if full.startswith(("file:", "git+file:")) and not is_here:
        raise ConfigError("a catalogue from elsewhere may not name files of this machine")
    if not full.startswith(("https://", *GIT_SCHEMES)) and not SCP.fullmatch(full):
        raise ConfigError(f"the address {address[:100]} in the catalogue is none of a git repository")
    return full.removeprefix("git+")


def _below(folder: str, path: str) -> str:
    parts = [part for part in (*folder.split("/"), *path.replace("\\", "/").split("/")) if part not in ("", ".")]
    if ".." in parts or path.startswith(("/", "~")):
        raise ConfigError(f"the folder {path[:100]} leads out of the catalogue")
    return "/".join(parts)
