"""What the server of the embedded model is told, and the file of what it has read."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, field
from hashlib import blake2b, file_digest
from pathlib import Path
from typing import Any, Self

from panpan.errors import ConfigError
from panpan.system.files.folder_tree import open_private_file
from panpan.types.dataclass import dataclass

# What the server of the embedded model is told: one line, from the process that starts it to the one that serves.
#
# It goes through the child's input, since it holds the key: the arguments of a process are shown to everybody.


@dataclass(frozen=True, slots=True)
class WarmUp:
    """What the server reads before it is ready."""

    request: dict[str, Any]
    """A chat completion."""
    key: str
    """What tells its beginning from others, for the file in which it is kept."""


@dataclass(frozen=True, slots=True)
class Order:
    """What to serve, and how."""

    weights: str
    """Path of the GGUF file."""
    name: str
    """What the server calls the model."""
    template: str
    """Its chat template."""
    context_tokens: int
    port: int
    """0: any free one."""
    api_key: str = field(repr=False)
    """What clients have to send."""
    warm_up: WarmUp | None = None

    def line(self) -> bytes:
        """Return the order as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def of_line(cls, line: str) -> Self:
        """Return the order that `line` made."""
        told = json.loads(line)
        warm_up = told.pop("warm_up")
        return cls(**told, warm_up=None if warm_up is None else WarmUp(**warm_up))


# What the server read of the beginning of every conversation, kept in a file beside the weights.
#
# The rule: the name of such a file holds two hashes, of what was to be read and of what is in the file. One that is
# not what its name says, or that another user owns, is removed and never given to the runtime, which would believe it.

_DIGEST_BYTES = 16
_ROOT = 0


def prefix_files(folder: Path) -> Iterator[Path]:
    """Yield all that is kept in a folder, also what a server left that was killed while it saved."""
    return folder.glob("prefix-*.bin")


def intact_prefix(folder: Path, key: str) -> str | None:
    """Return the name of the file with this beginning; None where there is none. Damaged ones are removed.

    Args:
        folder: Where the weights are.
        key: What tells the beginning from others, see `warm_up.prefix_key`.
    """
    intact = None
    for path in folder.glob(f"prefix-{key}-*.bin"):
        digest = _digest(path)
        if digest is not None and path.name == _name(key, digest):
            intact = path.name
        else:
            with suppress(OSError):
                path.unlink()
    return intact


def unnamed_prefix() -> str:
    """Return the name under which this process has its beginning saved before `keep_prefix`."""
    return f"prefix-new-{os.getpid()}.bin"


def keep_prefix(folder: Path, key: str) -> None:
    """Give what was saved as `unnamed_prefix` its name, and remove what was kept of other beginnings.

    Raises:
        OSError: It cannot be read, or the folder cannot be written.
    """
    saved = folder / unnamed_prefix()
    digest = _digest(saved)
    if digest is None:
        raise FileNotFoundError(saved)
    kept = saved.replace(folder / _name(key, digest))
    for old in prefix_files(folder):
        if old != kept:
            old.unlink(missing_ok=True)


def _name(key: str, digest: str) -> str:
    return f"prefix-{key}-{digest}.bin"


def _digest(path: Path) -> str | None:
    """Return the hash of a file; None of one that cannot be read, or that another user could have written."""
    try:
        with os.fdopen(open_private_file(path, os.O_RDONLY), "rb") as file:
            if os.fstat(file.fileno()).st_uid not in (os.geteuid(), _ROOT):
                return None
            return file_digest(file, lambda: blake2b(digest_size=_DIGEST_BYTES)).hexdigest()
    except (OSError, ConfigError):
        return None
