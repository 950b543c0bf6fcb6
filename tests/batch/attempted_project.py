"""A project of the user's in git, and a campaign beside it; attempts are what a test does to files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from panpan.batch.attempts.workspace import changes_of, make_workspace
from panpan.batch.definition.campaign import Campaign
from panpan.batch.store.folder import AttemptFolder, CampaignFolder
from panpan.batch.store.records import AttemptState, Changes, FrozenCampaign
from tests.capabilities.subagents.worktrees.copied_project import CopiedProject

TASK = "0123456789abcdef"
FILES = {"src/a.py": b"one\ntwo\nthree\n", "src/b.py": b"b\n", "README.md": b"readme\n", ".gitignore": b"*.log\n"}


class AttemptedProject(CopiedProject):
    """A project with one commit, and a campaign of which nothing has begun.

    Args:
        base: Folder for both.
        files: Those of the commit.
        campaign: Path of the campaign's folder, relative to the base.
    """

    def __init__(self, base: Path, files: Mapping[str, bytes] = FILES, campaign: str = "campaign") -> None:
        super().__init__(base, files)
        self.campaign = CampaignFolder(base.resolve() / campaign)
        self.campaign.path.mkdir(parents=True, exist_ok=True)

    def frozen(self, source: str = "", *, commit: str | None = None, **workspace: Any) -> FrozenCampaign:
        """Return the campaign that begins now, for a folder of the project."""
        head = self.folder / ".git/refs/heads/main"
        frozen = FrozenCampaign(
            id="campaign",
            tasks=1,
            tasks_digest="",
            source=str(self.folder / source),
            commit=commit or (head.read_text().strip() if head.exists() else None),
            home=str(self.home),
            campaign=Campaign.model_validate({"workspace": workspace}),
        )
        self.campaign.write_frozen(frozen)
        return frozen

    def attempt(self, number: int = 1) -> AttemptFolder:
        attempt = self.campaign.attempt(TASK, number)
        attempt.path.mkdir(parents=True, exist_ok=True)
        return attempt


class Attempted:
    """An attempt whose workspace is there."""

    def __init__(self, frozen: FrozenCampaign, attempt: AttemptFolder, base: str) -> None:
        self.frozen = frozen
        self.folder = attempt
        self.base = base
        self.top = attempt.workspace

    def put(self, name: str, content: bytes) -> Path:
        """Write a file as the model does."""
        place = self.top / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        return place

    async def changes(self, *patterns: str) -> Changes:
        return await changes_of(self.frozen, self.folder, self.base, patterns)


async def begun(project: AttemptedProject, number: int = 1, **workspace: Any) -> Attempted:
    """Begin an attempt at the task, as a worker does."""
    frozen, attempt = project.frozen(**workspace), project.attempt(number)
    base = await make_workspace(frozen, attempt)
    attempt.write_state(AttemptState(session_id="session", base=base))
    return Attempted(frozen, attempt, base)
