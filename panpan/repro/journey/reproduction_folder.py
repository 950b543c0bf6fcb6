"""The folder of a reproduction: its files, and the state from which it goes on after a kill.

    NAME-reproduction/
        source/             the repository: a clone, or a link to the user's folder
        paper.pdf           the paper, if one was given; or paper.html, paper.md
        claims.toml         the claims; a person may edit it at any time
        draft/claims.toml   the copy that a model edits
        state.json          where the work is
        files-before.json   the files of the repository before a model worked in it
        prepare.jsonl  explain.jsonl   output of the model's runs, and ask-….jsonl
        campaign/           the runs
        check.json          the result of the check
        report.md  report.html
        kit/                everything that others need to check the result
        lease/              the process that works in the folder

The rule: each file comes by a rename and whole. What is done is seen by its file, so that a kill costs one step.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from panpan.batch.store.folder import write_whole
from panpan.batch.store.records import Needs
from panpan.errors import ConfigError, ToolError
from panpan.receipts.receipt import utc_now
from panpan.repro.claims.places import STATE_FILE, STATE_MARK
from panpan.repro.journey.given import PAPER_SUFFIXES
from panpan.system.files.read_file import read_regular_file
from panpan.types.dataclass import dataclass

_MAX_BYTES = 16_000_000


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ModelWork(_Record):
    """The work of a model at one step: one session, over all its runs."""

    session_id: str
    """On the disk before the session begins."""
    model: str = ""
    """As its provider names it; empty if it is not known yet."""
    about: str = ""
    """Digest of what it was asked about, so that something else is asked anew."""
    prompts: tuple[str, ...] = ()
    """Messages for the model so far, the last one perhaps not sent yet."""
    flags: tuple[str, ...] = ()
    """Further flags, which the user's answers brought."""
    failures: int = 0
    needs: Needs | None = None
    """Question for the user; None if there is none."""
    has_ended: bool = False
    text: str = ""
    """Its last words."""
    usd: float | None = 0.0
    """Spent so far, in US dollars; None if it is not known."""


class JourneyState(_Record):
    """`state.json`."""

    what: str = STATE_MARK
    """First, so that the file is known by its head."""
    version: Literal[1] = 1
    began_at: str = Field(default_factory=utc_now)
    source: str = ""
    """Address or folder of the repository, as the user gave it."""
    commit: str = ""
    """Commit of the clone; empty for a link."""
    paper: str = ""
    """Address or file of the paper, as the user gave it; empty if there is none."""
    claims_from: str = ""
    """Origin of the claims, as a sentence for people."""
    work: Mapping[str, ModelWork] = Field(default_factory=dict)
    """By the name of the step."""


@dataclass(frozen=True, slots=True)
class ReproductionFolder:
    """The folder, by its canonical path."""

    path: Path

    @property
    def source(self) -> Path:
        return self.path / "source"

    @property
    def claims_file(self) -> Path:
        return self.path / "claims.toml"

    @property
    def draft(self) -> Path:
        """Folder that a model may write into."""
        return self.path / "draft"

    @property
    def draft_file(self) -> Path:
        return self.draft / "claims.toml"

    @property
    def state_file(self) -> Path:
        return self.path / STATE_FILE

    @property
    def check_file(self) -> Path:
        return self.path / "check.json"

    @property
    def lease(self) -> Path:
        return self.path / "lease"

    @property
    def kit(self) -> Path:
        return self.path / "kit"

    @property
    def paper(self) -> Path | None:
        """The paper; None if there is none."""
        return next((path for suffix in PAPER_SUFFIXES if (path := self.path / f"paper{suffix}").is_file()), None)

    def state(self) -> JourneyState | None:
        """Return the state; None if nothing has begun here.

        Raises:
            ConfigError: It is damaged.
        """
        if not self.state_file.exists():
            return None
        try:
            return JourneyState.model_validate_json(read_regular_file(self.state_file, max_bytes=_MAX_BYTES))
        except (ToolError, ValidationError) as error:
            said = str(error).splitlines()[0]
            raise ConfigError(f"{self.state_file} is damaged ({said}); remove it to begin again") from error

    def write_state(self, state: JourneyState) -> None:
        """Write the state. Raise `OutputError` if that is not possible."""
        write_whole(self.state_file, state.model_dump_json(indent=1).encode() + b"\n")
