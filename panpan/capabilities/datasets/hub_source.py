"""A repository of a hub for data sets: which files it has, how large they are, and under which licence.

Interface: https://huggingface.co/docs/hub/api, `GET /api/datasets/{repo_id}/revision/{revision}?blobs=true`, and
`/datasets/{repo_id}/resolve/{revision}/{path}` for a file. It is asked here and not through the hub's own library,
since all that opens a connection passes the URL guard.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from panpan.capabilities.datasets.download_plan import RemoteFile
from panpan.capabilities.datasets.plain_source import TIMEOUT_S
from panpan.errors import ToolError
from panpan.system.web.guarded_client import Allow, GuardedClient
from panpan.types.dataclass import dataclass

MAX_FILES = 10_000
_MAX_LICENCE_CHARS = 200
_MAX_SIZE = 10**18
"""Bytes of one file that a hub may tell of."""
_MAX_ANSWER_BYTES = 50_000_000
_SOURCE = re.compile(
    r"hf://(?P<kind>datasets|models)/(?P<repo>[\w.-]{1,96}(?:/[\w.-]{1,96})?)(?:@(?P<revision>[\w./-]{1,200}))?"
)
_MAX_NAME_BYTES = 230
"""Of a file or folder: what it grows under is longer by some letters, and file systems take 255."""
_PATH = re.compile(r"[^/\0\\]+(?:/[^/\0\\]+)*")


class _Large(BaseModel):
    """A file that is kept apart from the repository."""

    model_config = ConfigDict(frozen=True)

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size: int = Field(ge=0, le=_MAX_SIZE)


class _Sibling(BaseModel):
    model_config = ConfigDict(frozen=True, populate_by_name=True)

    path: str = Field(alias="rfilename", min_length=1, max_length=1000)
    size: int | None = Field(default=None, ge=0, le=_MAX_SIZE)
    blob: str = Field(default="", alias="blobId")
    lfs: _Large | None = None


class _Card(BaseModel):
    model_config = ConfigDict(frozen=True)

    license: str | list[str] | None = None


class _Repository(BaseModel):
    """What the hub answers, as far as it matters here."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    sha: str = Field(pattern=r"^[0-9a-f]{40}$")
    gated: bool | str = False
    card: _Card | None = Field(default=None, alias="cardData")
    siblings: list[_Sibling] = Field(default_factory=list, max_length=MAX_FILES)


@dataclass(frozen=True, slots=True)
class HubFiles:
    """What of a repository is to be downloaded."""

    files: tuple[RemoteFile, ...]
    licence: str
    notes: tuple[str, ...]


def is_hub_source(source: str) -> bool:
    """Return whether a source names a repository of the hub."""
    return source.startswith("hf://")


async def look_at_repository(
    client: GuardedClient, hub: str, source: str, patterns: Sequence[str], allow: Allow, *, token: str = ""
) -> HubFiles:
    """Return which files a repository has.

    Args:
        client: Asks the hub.
        hub: Its address.
        source: Such as `hf://datasets/owner/name@revision`.
        patterns: Shell patterns of paths, of which one has to fit; none: all files.
        allow: Asked before each address, redirects included.
        token: Of the user, for what is not open to all.

    Raises:
        ToolError: There is no such repository or file, or it is not open to the user.
    """
    found = _SOURCE.fullmatch(source)
    if found is None or ".." in source:
        raise ToolError(
            f"{source} names no repository; write it like hf://datasets/owner/name, or with @revision behind"
        )
    hub = hub.rstrip("/")
    revision = quote(found["revision"] or "main", safe="")
    url = f"{hub}/api/{found['kind']}/{found['repo']}/revision/{revision}?blobs=true"
    repository = await _asked(client, url, source, allow, token)
    prefix = "datasets/" if found["kind"] == "datasets" else ""
    base = f"{hub}/{prefix}{found['repo']}/resolve/{repository.sha}"
    files = tuple(_file(base, one, needs_token=bool(token)) for one in repository.siblings if _fits(one.path, patterns))
    if not files:
        wanted = f" that fits {', '.join(patterns)}" if patterns else ""
        raise ToolError(f"{source} has no file{wanted}{_first_of(repository)}")
    licence = repository.card.license if repository.card is not None else None
    told = licence if isinstance(licence, str) else ", ".join(licence or ())
    notes = (f"revision: {repository.sha}", *(["the owner asks who downloads it"] if repository.gated else []))
    return HubFiles(files, told[:_MAX_LICENCE_CHARS], notes)


async def _asked(client: GuardedClient, url: str, source: str, allow: Allow, token: str) -> _Repository:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with client.stream("GET", url, headers=headers, timeout_s=TIMEOUT_S, allow=allow) as response:
        status = response.status
        body = await response.read(_MAX_ANSWER_BYTES)
    if status in (401, 403):
        raise ToolError(
            f"{source} does not exist or is not open to all; the user may ask its owner for access and put a token "
            "into the variable that the setting data.hub_token_env names"
        )
    if status == 404:
        raise ToolError(f"there is no {source}; look whether owner, name and revision are right")
    if status != 200:
        raise ToolError(f"the hub answers {status} for {source}; try again later")
    try:
        return _Repository.model_validate_json(body)
    except ValidationError as error:
        raise ToolError(f"the hub's answer for {source} cannot be read: {error.errors()[0]['msg']}") from None


def _fits(path: str, patterns: Sequence[str]) -> bool:
    is_plain = path.isprintable() and all(len(part.encode()) <= _MAX_NAME_BYTES for part in path.split("/"))
    if not is_plain or _PATH.fullmatch(path) is None or any(part in (".", "..") for part in path.split("/")):
        raise ToolError(
            f"the repository has a file {path!r}, whose name leads elsewhere or is none; nothing of it is downloaded"
        )
    return not patterns or any(fnmatchcase(path, pattern) for pattern in patterns)


def _file(base: str, one: _Sibling, *, needs_token: bool) -> RemoteFile:
    return RemoteFile(
        url=f"{base}/{quote(one.path)}",
        path=one.path,
        size=one.lfs.size if one.lfs is not None else one.size,
        can_go_on=True,
        sha256=one.lfs.sha256 if one.lfs is not None else "",
        git_sha1=one.blob if one.lfs is None and re.fullmatch(r"[0-9a-f]{40}", one.blob) else "",
        needs_token=needs_token,
    )


def _first_of(repository: _Repository) -> str:
    names = [one.path for one in repository.siblings[:10]]
    return f"; it has {', '.join(names)}{' and others' if len(repository.siblings) > 10 else ''}" if names else ""
