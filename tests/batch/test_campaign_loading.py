"""Freezing a campaign: the tasks and the commit stay, limits may change, and a crash loses nothing."""

import shutil
from pathlib import Path

import pytest

from panpan.batch.definition.begun_here import is_from_elsewhere
from panpan.batch.definition.loading import prepare
from panpan.batch.store.folder import CampaignFolder, append_line
from panpan.batch.store.records import Answer, FrozenCampaign
from panpan.errors import ConfigError, OutputError
from tests.batch.campaign_files import result_of, task_of
from tests.fakes.campaign import ONE_TASK, git, make_campaign

SEEDS = f"{ONE_TASK}[axes]\nseed = [1, 2, 3]\n"


async def prepared(folder: CampaignFolder, home: str = "home") -> FrozenCampaign:
    env = {"HOME": str(folder.path.parent), "PANPAN_HOME": str(folder.path.parent / home)}
    return await prepare(folder.path, env, trusts=True)


async def refusal(folder: CampaignFolder) -> str:
    with pytest.raises(ConfigError) as caught:
        await prepared(folder)
    return str(caught.value)


def edit(folder: CampaignFolder, old: str, new: str) -> None:
    text = folder.campaign_file.read_text()
    assert old in text
    folder.campaign_file.write_text(text.replace(old, new))


async def test_campaign_begins_with_tasks_and_commit(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, SEEDS)
    frozen = await prepared(folder)
    project = (tmp_path / "project").resolve()
    assert frozen == folder.frozen()
    assert frozen.source == str(project)
    assert frozen.commit == git(project, "rev-parse", "HEAD").strip()
    assert frozen.home == str((tmp_path / "home").resolve())
    assert frozen.tasks == len(folder.tasks()) == 3


async def test_later_run_keeps_id_commit_and_home(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, SEEDS)
    first = await prepared(folder)
    git(tmp_path / "project", "commit", "-q", "--allow-empty", "-m", "second")
    written = (folder.state / "campaign.json").stat().st_mtime_ns
    assert await prepared(folder, home="other-home") == first
    assert (folder.state / "campaign.json").stat().st_mtime_ns == written


async def test_limits_and_machines_may_change(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, SEEDS)
    first = await prepared(folder)
    edit(folder, "[axes]", '[attempt]\nmax_usd = 2\nflags = ["--yes"]\n[budget]\nusd = 9\n[where]\nat_once = 4\n[axes]')
    second = await prepared(folder)
    assert (second.id, second.tasks_digest) == (first.id, first.tasks_digest)
    assert second.campaign.budget.usd == 9
    assert folder.frozen() == first  # another process may run it


async def test_named_commit_is_found(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, f'{ONE_TASK}[workspace]\nsource = "../project/src"\ncommit = "v1"\n')
    first = git(tmp_path / "project", "rev-parse", "HEAD").strip()
    assert "has no commit v1; name a commit" in await refusal(folder)
    git(tmp_path / "project", "tag", "-a", "v1", "-m", "v1")
    git(tmp_path / "project", "commit", "-q", "--allow-empty", "-m", "second")
    assert (await prepared(folder)).commit == first


async def test_source_that_is_not_committed_begins_nothing(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, f'{ONE_TASK}[workspace]\nsource = "../project/runs"\n')
    (tmp_path / "project" / "runs").mkdir()
    assert "has no folder runs; name the project, or commit the folder first" in await refusal(folder)
    assert folder.tasks_data() is None
    edit(folder, "project/runs", "project/src")
    assert (await prepared(folder)).tasks == 1


async def test_source_without_repository_needs_copies(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, f'{ONE_TASK}[workspace]\nsource = "../plain"\n')
    (tmp_path / "plain").mkdir()
    assert "is in no git repository" in (message := await refusal(folder))
    assert message.endswith('name a repository, or set workspace.isolation = "copy"')
    edit(folder, "[workspace]", '[workspace]\nisolation = "copy"')
    assert (await prepared(folder)).commit is None


async def test_other_tasks_are_refused_with_their_numbers(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, f'verify = "make"\n{SEEDS}')
    await prepared(folder)
    edit(folder, "[1, 2, 3]", "[2, 3, 4, 5]")
    assert "2 came, 1 went, 0 changed; put campaign.toml and its files back, or make a new folder" in await refusal(
        folder
    )
    edit(folder, '"make"', '"make check"')
    assert "2 came, 1 went, 2 changed" in await refusal(folder)


async def test_order_of_tasks_may_change(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, SEEDS)
    await prepared(folder)
    before = folder.tasks_file.read_bytes()
    edit(folder, "[1, 2, 3]", "[3, 2, 1]")
    await prepared(folder)
    assert folder.tasks_file.read_bytes() == before


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"../project"', '"../other"', "workspace.source"),
        ('"../project"', '"../project"\nisolation = "copy"', "workspace.isolation"),
        ('"../project"', '"../project"\ncommit = "main"', "workspace.commit"),
        ('"../project"', '"../project"\nlinked = ["data"]', "workspace.linked"),
        ("[[task]]", 'home = "../elsewhere"\n[[task]]', "home"),
    ],
)
async def test_other_files_are_refused(tmp_path: Path, old: str, new: str, key: str) -> None:
    (tmp_path / "other").mkdir()
    folder = make_campaign(tmp_path)
    await prepared(folder)
    edit(folder, old, new)
    message = await refusal(folder)
    assert message.startswith(f"campaign.toml: {key} is ")
    assert message.endswith("put it back, or make a new folder")


async def test_edited_tasks_are_refused_and_missing_ones_return(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, SEEDS)
    frozen = await prepared(folder)
    whole = folder.tasks_file.read_bytes()
    folder.tasks_file.write_bytes(whole.replace(b"done", b"other"))
    assert "was edited or damaged; remove it" in await refusal(folder)
    folder.tasks_file.unlink()
    assert await prepared(folder) == frozen
    assert folder.tasks_file.read_bytes() == whole
    folder.tasks_file.unlink()
    edit(folder, "[1, 2, 3]", "[1]")
    assert "is gone, and campaign.toml expands to other tasks" in await refusal(folder)


async def test_begin_goes_on_after_a_crash_between_its_files(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, SEEDS)
    await prepared(folder)
    shutil.rmtree(folder.state)
    assert (await prepared(folder)).tasks == 3


async def test_foreign_tasks_file_is_not_overwritten(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, SEEDS)
    folder.tasks_file.write_text("mine\n")
    assert "is there, and not from this campaign; move it away" in await refusal(folder)
    assert folder.tasks_file.read_text() == "mine\n"


async def test_only_the_first_of_two_begins(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path)
    frozen = await prepared(folder)
    assert not folder.begin(frozen.model_copy(update={"id": "other"}))
    assert folder.frozen() == frozen


async def test_untrusted_campaign_writes_nothing(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path)
    with pytest.raises(ConfigError, match="is not trusted"):
        await prepare(folder.path, {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home")})
    assert sorted(path.name for path in folder.path.iterdir()) == ["campaign.toml"]


@pytest.mark.parametrize(
    "name", ["state/kept/config", "state/0123456789abcdef/attempt-1/attempt.json", "results.jsonl"]
)
async def test_files_from_before_the_campaign_are_refused(tmp_path: Path, name: str) -> None:
    folder = make_campaign(tmp_path, files={name: "of somebody else"})

    assert "is there, and not from this campaign; move it away" in await refusal(folder)
    assert folder.frozen_or_none() is None


async def test_state_is_the_users_alone(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path)
    await prepared(folder)

    assert folder.state.stat().st_mode & 0o777 == 0o700


async def test_begun_campaign_is_the_users(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path)
    await prepared(folder)

    assert not is_from_elsewhere(folder, tmp_path / "home")
    assert is_from_elsewhere(folder, tmp_path / "other-home")


async def test_fewer_attempts_than_have_begun_are_refused(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, f"attempts = 3\n{ONE_TASK}")
    await prepared(folder)
    task = folder.tasks()[0]
    folder.attempt(task.id, 2).path.mkdir(parents=True)
    edit(folder, "attempts = 3", "attempts = 2")
    await prepared(folder)
    edit(folder, "attempts = 2", "attempts = 1")
    assert "attempts is 1, but attempt 2 at a task has begun; put it back" in await refusal(folder)


async def test_link_in_place_of_the_tasks_is_not_written_through(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path)
    folder.tasks_file.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OutputError, match=r"tasks\.jsonl"):
        await prepared(folder)
    assert not (tmp_path / "elsewhere").exists()


def test_link_in_place_of_a_file_of_lines_is_not_added_to(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("as it was")
    (tmp_path / "lines.jsonl").symlink_to(mine)

    with pytest.raises(OutputError, match="cannot be written"):
        append_line(tmp_path / "lines.jsonl", Answer())
    assert mine.read_text() == "as it was"


def test_result_of_another_attempt_is_not_believed(tmp_path: Path) -> None:
    folder = CampaignFolder(tmp_path)
    task = task_of("table")
    folder.attempt(task.id, 1).write_result(result_of(task))
    shutil.copytree(folder.attempt(task.id, 1).path, folder.attempt(task.id, 2).path)

    with pytest.raises(ConfigError, match="is of attempt 1 at task"):
        folder.attempt(task.id, 2).result()


def test_folder_that_is_no_attempt_is_passed_over(tmp_path: Path) -> None:
    folder = CampaignFolder(tmp_path)
    for name in ("attempt-2", "attempt-\u00b2", "attempt-x"):
        (folder.state / "0123456789abcdef" / name).mkdir(parents=True)

    assert [one.number for one in folder.attempts()] == [2]
