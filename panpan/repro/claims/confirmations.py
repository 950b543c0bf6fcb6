"""Confirmations of claims: the user has said that the paper says so, and that the command is the right one.

The rule: they are kept in the panpan home, which no command and no model can change. Each belongs to one folder and to
the exact content of a claim, so that a claim which changes waits again. `confirmed = true` in a claims.toml is the word
of whoever wrote the file. Each confirmation is a file of its own, so that two runs never overwrite each other.
"""

import json
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from panpan.config.keys import shown
from panpan.config.locations import PROJECTS_FOLDER, project_slug
from panpan.errors import ConfigError, ToolError
from panpan.repro.claims.claim import Claim
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.files.read_file import read_regular_file

_FOLDER = "confirmed-claims"
_MAX_BYTES = 200_000
_MAX_FILES = 20_000


class Confirmations:
    """The user's confirmations of claims in one folder.

    Args:
        folder: Folder with claims.toml, canonical.
        home: The panpan home.
    """

    def __init__(self, folder: Path, home: Path) -> None:
        self._root = str(folder)
        self._folder = home / PROJECTS_FOLDER / project_slug(folder) / _FOLDER

    def confirms(self, claim: Claim) -> bool:
        """True if the user has confirmed the claim as it is."""
        return self._read(self._folder / self._name(claim)) == _without_word(claim)

    def waiting(self, claims: Iterable[Claim]) -> tuple[Claim, ...]:
        """Return the claims that the user has not confirmed as they are."""
        return tuple(claim for claim in claims if not self.confirms(claim))

    def confirmed_before(self, claim_id: str) -> tuple[Claim, ...]:
        """Return the claims of an id as they were when the user confirmed them."""
        return tuple(claim for claim in self._all() if claim.id == claim_id)

    def keep(self, claims: Iterable[Claim]) -> None:
        """Keep that the user has confirmed the claims as they are.

        Raises:
            ConfigError: It cannot be written.
        """
        try:
            make_private_folder(self._folder)
            for claim in claims:
                kept = {"version": 1, "root": self._root, "claim": _facts(claim)}
                data = json.dumps(kept, ensure_ascii=False, indent=1).encode() + b"\n"
                write_atomic(self._folder / self._name(claim), data, mode=0o600, follow_symlinks=True)
        except ToolError as error:
            raise ConfigError(f"your confirmation could not be kept: {shown(error)}") from error

    def remove(self, claim: Claim) -> None:
        """Forget that the user has confirmed the claim."""
        with suppress(OSError):
            (self._folder / self._name(claim)).unlink()

    def _name(self, claim: Claim) -> str:
        facts = json.dumps([self._root, _facts(claim)], sort_keys=True)
        return f"{sha256(facts.encode('utf-8', 'surrogateescape')).hexdigest()}.json"

    def _all(self) -> Iterator[Claim]:
        try:
            with os.scandir(self._folder) as entries:
                names = sorted(entry.name for entry in islice(entries, _MAX_FILES))
        except OSError:
            return
        for name in names:
            if (claim := self._read(self._folder / name)) is not None:
                yield claim

    def _read(self, path: Path) -> Claim | None:
        """Return the claim of a file that only the user can have written; None if it is missing or is none."""
        try:
            status = path.lstat()
            is_ours = status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if not stat.S_ISREG(status.st_mode) or not is_ours:
                return None
            kept = json.loads(read_regular_file(path, max_bytes=_MAX_BYTES, follow_symlinks=True))
            if not isinstance(kept, dict) or kept.get("version") != 1 or kept.get("root") != self._root:
                return None
            return Claim.model_validate_json(json.dumps(kept.get("claim")))
        except (OSError, ToolError, ValueError, ValidationError, RecursionError):
            return None


def _facts(claim: Claim) -> dict[str, Any]:
    return claim.model_dump(mode="json", by_alias=True, exclude={"confirmed"}, exclude_defaults=True)


def _without_word(claim: Claim) -> Claim:
    """Return the claim without the word of its author that it is confirmed."""
    return claim.model_copy(update={"confirmed": False})
