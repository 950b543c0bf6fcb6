"""Making the plan of a download: what servers tell, what is there already, and whether it fits onto the disk.

The rule: nothing is downloaded here, and nothing is changed.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from anyio import to_thread

from panpan.capabilities.datasets.archive import folder_name, is_archive
from panpan.capabilities.datasets.download_plan import DataSetup, DownloadPlan, PlannedFile, RemoteFile, size_text
from panpan.capabilities.datasets.partial_file import checksum_of
from panpan.capabilities.datasets.plain_source import is_hub_source, look_at, look_at_repository
from panpan.core.tool import ToolContext
from panpan.errors import ToolError
from panpan.system.web.guarded_client import Allow


async def prepared(
    setup: DataSetup,
    ctx: ToolContext,
    allow: Allow,
    *,
    source: str,
    folder: str,
    patterns: Sequence[str] = (),
    sha256: str = "",
    unpack: bool = False,
) -> DownloadPlan:
    """Return the plan of a download.

    Args:
        setup: How the outside is asked.
        ctx: The context of the call.
        allow: Asked before each address, redirects included.
        source: An address, or a repository of the hub.
        folder: Where it goes, as the model wrote it.
        patterns: Of a repository, which files.
        sha256: Of the one file, as the model knows it; empty: it does not.
        unpack: Whether archives are unpacked.

    Raises:
        ToolError: It cannot be had, may not go there, or does not fit.
    """
    place = ctx.paths.resolve(folder, access="write")
    if is_hub_source(source):
        if sha256:
            raise ToolError("the hub has checksums of its own; leave sha256 out")
        found = await look_at_repository(setup.client, setup.hub, source, patterns, allow, token=setup.token)
        files, licence, notes = found.files, found.licence, found.notes
    else:
        if patterns:
            raise ToolError("files are chosen of repositories alone (hf://…); an address is one file")
        remote = await look_at(setup.client, source, allow)
        files, licence, notes = (replace(remote, sha256=sha256),), "", ()
    _require_small(files, setup)
    planned = [await to_thread.run_sync(_planned, one, place, ctx, unpack, abandon_on_cancel=True) for one in files]
    plan = DownloadPlan(
        source=source,
        folder=place,
        shown_folder=ctx.paths.shown(place),
        files=tuple(planned),
        free_bytes=await to_thread.run_sync(_free_bytes, place),
        licence=licence,
        notes=notes,
    )
    require_space(plan)
    return plan


def require_space(plan: DownloadPlan) -> None:
    """Refuse what does not fit onto the disk.

    Raises:
        ToolError: It does not.
    """
    if plan.needed_bytes is not None and plan.needed_bytes > plan.free_bytes:
        raise ToolError(
            f"{plan.shown_folder} has {size_text(plan.free_bytes)} free, and the download needs "
            f"{size_text(plan.needed_bytes)} with a tenth to spare; make room, choose another folder, or fewer files"
        )


def still_free(plan: DownloadPlan) -> DownloadPlan:
    """Return the plan with what is free on the disk now."""
    return replace(plan, free_bytes=_free_bytes(plan.folder))


def _require_small(files: Sequence[RemoteFile], setup: DataSetup) -> None:
    size = sum(one.size or 0 for one in files)
    if size > setup.max_bytes:
        raise ToolError(
            f"it has {size_text(size)}, and the setting data.max_gb lets {size_text(setup.max_bytes)} come at once; "
            "choose fewer files, or ask the user to raise it"
        )


def _planned(remote: RemoteFile, folder: Path, ctx: ToolContext, unpack: bool) -> PlannedFile:
    """Return a file with its place, and what is there of it."""
    target = ctx.paths.resolve(str(folder / remote.path), access="write")
    if folder not in target.parents:
        raise ToolError(f"{remote.path} would not lie in {ctx.paths.shown(folder)}, as a link there leads elsewhere")
    unpacked = _unpacked(target, ctx) if unpack and is_archive(target.name) else None
    part = target.with_name(f".{target.name}.{remote.key}.part")
    if target.exists():
        if not _is_same(target, remote):
            raise ToolError(
                f"{ctx.paths.shown(target)} exists and is another file, or nobody knows that it is the same; choose "
                "another folder, or let the user move it away"
            )
        return PlannedFile(remote, target, part, 0, is_there=True, unpacked=unpacked)
    arrived = part.stat().st_size if part.is_file() else 0
    return PlannedFile(remote, target, part, arrived, is_there=False, unpacked=unpacked)


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
