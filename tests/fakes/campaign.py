"""Campaigns for tests: a folder with `campaign.toml` beside a small git repository, and records of it."""

import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from panpan.batch.definition.campaign import Campaign
from panpan.batch.definition.expansion import digest_of
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.records import FrozenCampaign, Task

ONE_TASK = """
[[task]]
id = "first"
prompt = "Write done into answer.txt."
"""

CAMPAIGN_ID = "11111111-1111-4111-8111-111111111111"


def make_campaign(
    folder: Path, text: str = ONE_TASK, *, files: Mapping[str, str] | None = None, is_repository: bool = True
) -> CampaignFolder:
    """Write `folder/campaign/campaign.toml` beside the repository `folder/project`, its source.

    Args:
        folder: An empty folder.
        text: The whole campaign.toml; `[workspace] source` is added if it has no such table.
        files: Further files of the campaign's folder, such as `more.jsonl`.
        is_repository: False if the source is an empty folder, for tests that need no git.
    """
    if is_repository:
        make_repository(folder / "project")
    else:
        (folder / "project").mkdir()
    campaign = folder.resolve() / "campaign"
    campaign.mkdir()
    rest = "" if "[workspace]" in text else '\n[workspace]\nsource = "../project"\n'
    for name, content in {**(files or {}), "campaign.toml": text + rest}.items():
        path = campaign / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return CampaignFolder(campaign)


def make_repository(folder: Path, files: Mapping[str, str] | None = None) -> str:
    """Make a git repository with one commit, and return the commit's id."""
    folder.mkdir(parents=True)
    for name, content in (files or {"README.md": "A project.\n", "src/numbers.txt": "1\n2\n3\n"}).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "first")
    return git(folder, "rev-parse", "HEAD").strip()


def git(folder: Path, *words: str) -> str:
    """Run git in a folder as a user who has a name, and return its output."""
    user = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *user, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def task_of(name: str = "first", prompt: str = "Write done into answer.txt.", **fields: Any) -> Task:
    """Return a task; `fields` are further ones of it, such as `axes` and `verify`."""
    task = Task(id="0" * 16, name=name, prompt=prompt, **fields)
    lines = {"verify": task.verify, "command": task.command}
    as_json = {key: None if line is None else line.model_dump(exclude_defaults=True) for key, line in lines.items()}
    id_ = digest_of(name, prompt, axes=task.axes, model=task.model, files=task.files, **as_json)
    return task.model_copy(update={"id": id_})


def frozen_of(folder: CampaignFolder, tasks: Sequence[Task] | None = None, **fields: Any) -> FrozenCampaign:
    """Begin the campaign without its trust and its expansion: write `tasks.jsonl` and `state/campaign.json`.

    Args:
        folder: As from `make_campaign`.
        tasks: The tasks; one if not given.
        fields: Instead of those that it has else, such as `home` and `commit`.
    """
    campaign = Campaign.model_validate(tomllib.loads(folder.campaign_file.read_text(encoding="utf-8")))
    all_tasks = [task_of()] if tasks is None else tasks
    data = b"".join(task.model_dump_json().encode() + b"\n" for task in all_tasks)
    folder.tasks_file.write_bytes(data)
    source = (folder.path / campaign.workspace.source).resolve()
    usual = {
        "id": CAMPAIGN_ID,
        "tasks": len(all_tasks),
        "tasks_digest": blake2b(data, digest_size=16).hexdigest(),
        "source": str(source),
        "commit": git(source, "rev-parse", "HEAD").strip() if campaign.workspace.isolation == "worktree" else None,
        "home": str(folder.path.parent / "home"),
        "campaign": campaign,
    }
    frozen = FrozenCampaign(**{**usual, **fields})
    folder.write_frozen(frozen)
    return frozen
