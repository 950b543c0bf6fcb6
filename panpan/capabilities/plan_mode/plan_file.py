"""The file of a plan: below the panpan home, with a name that people can say, and never in the place of another.

Synchronous: it waits for the disk.
"""

import os
import re
import secrets
import stat
from pathlib import Path

from panpan.core.tool import SeenFiles, digest_of
from panpan.errors import ConfigError, ToolError
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.canonical import canonical_path
from panpan.system.files.folder_tree import make_private_folder, open_private_file
from panpan.system.files.read_file import read_regular_file

MAX_BYTES = 1_000_000
_TRIES = 20
"""Names that are tried before one gets a number."""

_ADJECTIVES = (
    "amber brisk calm candid clear cosy deft eager early even fair fond gentle glad green honest humble keen kind late "
    "light lively lucid mellow merry mild misty neat nimble patient plain quick quiet ready rosy round sharp silver "
    "slow snug soft sound spare steady still sunny swift tidy warm wise"
)
_VERBS = (
    "baking bending binding brewing carving chasing climbing counting drifting drawing folding forging gliding grazing "
    "hiking humming joining knitting landing leaping lifting mapping mending mixing mooring nesting packing painting "
    "pacing planting pouring resting roaming rowing sailing sewing shaping sifting singing skating sorting sowing "
    "spinning stacking strolling tracing tuning turning wading weaving winding"
)
_NOUNS = (
    "acorn alder anchor badger beacon birch bramble brook canal cedar chapel clover comet coral crane creek delta "
    "ember fern finch fjord garnet grove heron hazel island ivy kettle lantern larch ledger linnet maple marten meadow "
    "mill moss orchard otter pebble pine plover quarry raven reed river robin sparrow spruce teal thicket thistle "
    "willow wren"
)
_NAME = re.compile(r"[a-z]+-[a-z]+-[a-z]+(-[0-9]+)?\.md")


def new_plan_file(folder: Path) -> Path:
    """Make an empty file for a plan, private as its folder is, and return its canonical path.

    Raises:
        ToolError: It cannot be made.
    """
    try:
        make_private_folder(folder)
        folder = canonical_path(folder)
        for number in range(1, 1_000_000):
            words = "-".join(secrets.choice(words.split()) for words in (_ADJECTIVES, _VERBS, _NOUNS))
            path = folder / (f"{words}.md" if number <= _TRIES else f"{words}-{number}.md")
            try:
                os.close(open_private_file(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            return path
    except (ConfigError, OSError) as error:
        raise ToolError(f"the plan file cannot be made: {getattr(error, 'strerror', None) or error}") from error
    raise ToolError(f"the plan file cannot be made: {folder} is full of plans")


def known_plan_file(folder: Path, name: str) -> Path | None:
    """Return the plan of this name; None where there is none.

    Args:
        folder: That of the plans.
        name: What a log says, which may be anything.
    """
    if not _NAME.fullmatch(name):
        return None
    try:
        path = canonical_path(folder) / name
        return path if stat.S_ISREG(path.lstat().st_mode) else None
    except (ToolError, OSError):
        return None


def read_plan(file: Path, seen_files: SeenFiles) -> str:
    """Return what stands in the file.

    Raises:
        ToolError: It cannot be read, or is no text.
    """
    _require_no_link(file)
    data = read_regular_file(file, max_bytes=MAX_BYTES)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ToolError(f"the plan file {file} is not UTF-8; write the plan anew") from error
    seen_files.saw(file, data)  # what is put to the user in the model's name, it may replace
    return text


def write_plan(file: Path, text: str, seen_files: SeenFiles | None) -> None:
    """Make a plan the content of its file, also where that was deleted.

    Args:
        file: Of the plan.
        text: The plan.
        seen_files: What the model knows, where it is the author; None: the user is, who may replace what he likes.

    Raises:
        ToolError: It could not be written; or the file holds what its author, the model, has not read.
    """
    _require_no_link(file)
    data = f"{text}\n".encode("utf-8", "replace")
    before = read_regular_file(file, max_bytes=MAX_BYTES) if file.exists() else None
    if before is None:
        write_atomic(file, data, mode=0o600, must_not_exist=True)
    elif before != data:
        if seen_files is not None and digest_of(before) != seen_files.digest(file):
            raise ToolError(
                f"the plan file {file} holds what you have not read, maybe the user's changes: Read it, then call "
                "ExitPlanMode with the plan as it shall be"
            )
        write_atomic(file, data, mode=0o600, expected_digest=digest_of(before))
    if seen_files is not None:
        seen_files.saw(file, data)


def _require_no_link(file: Path) -> None:
    if canonical_path(file) != file:
        raise ToolError(f"the plan file {file} has become a link to another file; nothing was read or written")
