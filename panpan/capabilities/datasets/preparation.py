"""Making the plan of a download: what servers tell, what is there already, and whether it fits onto the disk.

The rule: nothing is downloaded here, and nothing is changed.
"""

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from anyio import to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from panpan.capabilities.datasets.download_job import checksum_of
from panpan.capabilities.datasets.download_plan import (
    TIMEOUT_S,
    DataConfig,
    DownloadPlan,
    PlannedFile,
    RemoteFile,
)
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.system.files.archive import folder_name, is_archive
from panpan.system.text.terminal_text import size_text
from panpan.system.web.download import OF_NOTHING, sent_range, size_of, validator_of
from panpan.system.web.network import Allow, GuardedClient
from panpan.system.web.url_guard import read_url
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

if TYPE_CHECKING:
    from panpan.system.web.exchange import GuardedResponse


# Ask with HEAD. Some servers do not answer HEAD, or answer with a length of 0 for generated content; ask those for the
# first byte.

_UNPLAIN = compile_late(r"[^\w.+@=,()\[\] -]")
"""Characters that are not used in file names."""
# A data set repository on the Hugging Face hub: its files, their sizes and its licence. Interface:
# https://huggingface.co/docs/hub/api, `GET /api/datasets/{repo_id}/revision/{revision}?blobs=true`, and
# `/datasets/{repo_id}/resolve/{revision}/{path}` for a file. The hub's own library is not used, since every connection
# must pass the URL guard.

_MAX_NAME_BYTES = 200
"""Most bytes of a file name. The partial file's name is longer by some letters, and file systems take 255."""
_DISPOSITION = compile_late(r'filename\*?=(?:UTF-8\'[^\']*\')?(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))', re.IGNORECASE)
"""RFC 6266, section 4."""
_CODINGS = ("gzip", "deflate", "br", "zstd")
"""Content codings that a server may send unrequested, since some keep their files compressed."""


async def inspect_file(client: GuardedClient, url: str, allow: Allow, *, name: str = "") -> RemoteFile:
    """Return a server's facts about a file, called `name` or else as the server or the address calls it.

    Raises:
        ToolError: It cannot be had, or may not be asked for.
    """
    url = read_url(url).url  # as it is requested and shown, with an ASCII host
    plain = {"accept-encoding": "identity"}
    async with client.stream("HEAD", url, headers=plain, timeout_s=TIMEOUT_S, allow=allow) as response:
        if response.status == 200 and (
            size_of(response.headers) or "chunked" in response.headers.get("transfer-encoding", "").lower()
        ):
            return _told(response, url, size_of(response.headers), name)
        is_refused = response.status in (401, 403, 404, 410)
    if not is_refused:
        first = {"range": "bytes=0-0", **plain}
        async with client.stream("GET", url, headers=first, timeout_s=TIMEOUT_S, allow=allow) as response:
            if response.status == 206 and (sent := sent_range(response.headers)) is not None:
                return _told(response, url, sent[1], name)
            if response.status == 200:
                return _told(response, url, size_of(response.headers), name)
            if response.status == 416 and response.headers.get("content-range", "").strip() == OF_NOTHING:
                return _told(response, url, 0, name)
    raise ToolError(f"{url} cannot be downloaded: its server answers {response.status}{_why(response.status)}")


def _told(response: "GuardedResponse", url: str, size: int | None, name: str) -> RemoteFile:
    headers = response.headers
    return RemoteFile(
        url=url,
        path=name or _file_name(headers.get("content-disposition", ""), response.url, url),
        size=size,
        validator=validator_of(headers),
        can_resume=response.status == 206 or headers.get("accept-ranges", "").strip().lower() == "bytes",
        redirect_url=response.url if response.history else "",
        coding=coding if (coding := headers.get("content-encoding", "").strip().lower()) in _CODINGS else "",
    )


def _file_name(disposition: str, *urls: str) -> str:
    """Return the name of a file in one folder, whatever a server says."""
    found = _DISPOSITION.search(disposition)
    named = [unquote(found[1] or found[2])] if found else []
    named += [unquote(urlsplit(url).path) for url in urls]
    names = (_UNPLAIN.sub("_", text.replace("\\", "/").rstrip("/").rpartition("/")[2]).strip(" .") for text in named)
    return next((_with_its_end(name) for name in names if name.strip("_")), "download")


def _with_its_end(name: str) -> str:
    """Return a name with no more bytes than a file system takes; its end says what it is, and stays."""
    return name.encode()[-_MAX_NAME_BYTES:].decode(errors="ignore").strip(" .")


def _why(status: int) -> str:
    reasons = {
        401: ", which asks for a login",
        403: ", which forbids it; perhaps it asks for a login",
        404: ", which has no such file; look whether the address is right",
        429: ", which wants fewer requests; try again later",
    }
    return reasons.get(status, "; try again later" if status >= 500 else "")


MAX_FILES = 10_000
_MAX_LICENCE_CHARS = 200
_MAX_SIZE = 10**18
"""Bytes of one file that a hub may tell of."""
_MAX_ANSWER_BYTES = 50_000_000
_SOURCE = compile_late(
    r"hf://(?P<kind>datasets|models)/(?P<repo>[\w.-]{1,96}(?:/[\w.-]{1,96})?)(?:@(?P<revision>[\w./-]{1,200}))?"
)
_MAX_PATH_BYTES = 230
"""Most bytes of the name of a file or folder. The partial file's name is longer, and file systems take 255."""
_PATH = compile_late(r"[^/\0\\]+(?:/[^/\0\\]+)*")


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
    """Fields of the hub's answer that are used here."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    sha: str = Field(pattern=r"^[0-9a-f]{40}$")
    gated: bool | str = False
    card: _Card | None = Field(default=None, alias="cardData")
    siblings: list[_Sibling] = Field(default_factory=list, max_length=MAX_FILES)


@dataclass(frozen=True, slots=True)
class HubFiles:
    """Files of a repository to download, with their licence."""

    files: tuple[RemoteFile, ...]
    licence: str
    notes: tuple[str, ...]


def is_hub_source(source: str) -> bool:
    """Return True if a source names a repository of the hub."""
    return source.startswith("hf://")


async def inspect_repository(
    client: GuardedClient, hub: str, source: str, patterns: Sequence[str], allow: Allow, *, token: str = ""
) -> HubFiles:
    """Return the files of a repository such as `hf://datasets/owner/name@revision` whose paths fit one of the patterns.

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
            f"{source} does not exist or is not open to all",
            advice="the user may ask its owner for access and put a token "
            "into the variable that the setting data.hub_token_env names",
        )
    if status == 404:
        raise ToolError(f"there is no {source}; check owner, name and revision")
    if status != 200:
        raise ToolError(f"the hub answers {status} for {source}; try again later")
    try:
        return _Repository.model_validate_json(body)
    except ValidationError as error:
        raise ToolError(f"the hub's answer for {source} cannot be read: {error.errors()[0]['msg']}") from None


def _fits(path: str, patterns: Sequence[str]) -> bool:
    is_plain = path.isprintable() and all(len(part.encode()) <= _MAX_PATH_BYTES for part in path.split("/"))
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
        can_resume=True,
        sha256=one.lfs.sha256 if one.lfs is not None else "",
        git_sha1=one.blob if one.lfs is None and re.fullmatch(r"[0-9a-f]{40}", one.blob) else "",
        needs_token=needs_token,
    )


def _first_of(repository: _Repository) -> str:
    names = [one.path for one in repository.siblings[:10]]
    return f"; it has {', '.join(names)}{' and others' if len(repository.siblings) > 10 else ''}" if names else ""


async def make_plan(
    setup: DataConfig,
    ctx: ToolContext,
    allow: Allow,
    *,
    source: str,
    folder: str,
    patterns: Sequence[str] = (),
    sha256: str = "",
    unpack: bool = False,
) -> DownloadPlan:
    """Return the plan of a download from an address or a repository of the hub.

    Raises:
        ToolError: It cannot be had, may not go there, or does not fit.
    """
    place = ctx.paths.resolve(folder, access="write")
    if is_hub_source(source):
        if sha256:
            raise ToolError("the hub has checksums of its own; leave sha256 out")
        found = await inspect_repository(setup.client, setup.hub, source, patterns, allow, token=setup.token)
        files, licence, notes = found.files, found.licence, found.notes
    else:
        if patterns:
            raise ToolError("only repositories (hf://…) take a choice of files; an address is one file")
        remote = await inspect_file(setup.client, source, allow)
        files, licence, notes = (replace(remote, sha256=sha256),), "", ()
    _require_small(files, setup)
    planned = [await to_thread.run_sync(_planned, one, place, ctx, unpack, abandon_on_cancel=True) for one in files]
    plan = DownloadPlan(
        source=source,
        folder=place,
        folder_label=ctx.paths.shown(place),
        files=tuple(planned),
        free_bytes=await to_thread.run_sync(_free_bytes, place),
        licence=licence,
        notes=notes,
    )
    require_space(plan)
    return plan


def require_space(plan: DownloadPlan) -> None:
    """Raise `ToolError` if the download does not fit onto the disk."""
    if plan.needed_bytes is not None and plan.needed_bytes > plan.free_bytes:
        raise ToolError(
            f"{plan.folder_label} has {size_text(plan.free_bytes)} free, and the download needs "
            f"{size_text(plan.needed_bytes)} with a tenth to spare; make room, choose another folder, or fewer files"
        )


def still_free(plan: DownloadPlan) -> DownloadPlan:
    """Return the plan with what is free on the disk now."""
    return replace(plan, free_bytes=_free_bytes(plan.folder))


def _require_small(files: Sequence[RemoteFile], setup: DataConfig) -> None:
    size = sum(one.size or 0 for one in files)
    if size > setup.max_bytes:
        raise ToolError(
            f"it has {size_text(size)}, and the setting data.max_gb lets {size_text(setup.max_bytes)} come at once",
            advice="choose fewer files, or ask the user to raise it",
        )


def _planned(remote: RemoteFile, folder: Path, ctx: ToolContext, unpack: bool) -> PlannedFile:
    """Return a file with its place, and what is there of it."""
    target = ctx.paths.resolve(str(folder / remote.path), access="write")
    if folder not in target.parents:
        raise ToolError(f"{remote.path} would be outside {ctx.paths.shown(folder)}; a link there leads elsewhere")
    unpacked = _unpacked(target, ctx) if unpack and is_archive(target.name) else None
    part = target.with_name(f".{target.name}.{remote.key}.part")
    if target.exists():
        if not _is_same(target, remote):
            raise ToolError(
                f"{ctx.paths.shown(target)} exists and may be another file",
                advice="choose another folder, or let the user move it away",
            )
        return PlannedFile(remote, target, part, 0, is_there=True, unpacked=unpacked)
    received_bytes = part.stat().st_size if part.is_file() else 0
    return PlannedFile(remote, target, part, received_bytes, is_there=False, unpacked=unpacked)


def _unpacked(archive: Path, ctx: ToolContext) -> Path:
    """Return the folder that an archive is unpacked into: a new one beside it."""
    folder = archive.with_name(folder_name(archive.name))
    if ctx.paths.resolve(str(folder), access="write") != folder:
        raise ToolError(f"{archive.name} would not be unpacked beside itself, as a link there leads elsewhere")
    if os.path.lexists(folder):
        raise ToolError(
            f"{ctx.paths.shown(folder)} exists, and {archive.name} would be unpacked into it; choose another "
            "folder, or prepare it without unpack"
        )
    return folder


def _is_same(target: Path, remote: RemoteFile) -> bool:
    is_known = bool(remote.sha256 or remote.git_sha1) and remote.size is not None
    if not is_known or not target.is_file() or target.stat().st_size != remote.size:
        return False
    return checksum_of(target, remote).is_right


def _free_bytes(folder: Path) -> int:
    there = next(place for place in (folder, *folder.parents) if place.is_dir())
    return shutil.disk_usage(there).free
