"""Begin a campaign or go on with it: trusted, expanded, and frozen in `tasks.jsonl` and `state/campaign.json`.

The rule: what has begun keeps its tasks, its files and its sessions. Limits, flags and machines may change between
runs; a change that would mix two campaigns in one folder is refused.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from uuid import uuid4

from anyio import to_thread

from panpan.batch.definition.begun_here import note_begun, require_nothing_left
from panpan.batch.definition.campaign_file import LoadedCampaign, load_campaign
from panpan.batch.definition.campaign_trust import require_trust
from panpan.batch.definition.expansion import expand
from panpan.batch.store.folder import CampaignFolder
from panpan.batch.store.records import FrozenCampaign, Task
from panpan.config.file_trust import Ask
from panpan.config.keys import shown
from panpan.errors import ConfigError, ToolError
from panpan.system.git.git import run_git
from panpan.system.git.worktrees import repository_around

_GIT_S = 60.0


async def prepare(
    folder: Path,
    env: Mapping[str, str],
    *,
    on: str | None = None,
    at_once: int | None = None,
    model: str | None = None,
    trusts: bool = False,
    ask: Ask | None = None,
) -> FrozenCampaign:
    """Return the campaign of a folder, ready to run, and write what begins it.

    Changes of a campaign that has begun are not written, since another process may run it: `run_campaign` writes them.

    Args:
        folder: The folder with campaign.toml.
        env: The environment, for the panpan home.
        on: Machines, instead of `on` in the table `[where]`.
        at_once: Attempts at once on one machine, instead of `at_once` there.
        model: Model, instead of the campaign's.
        trusts: True if a flag trusts the campaign, for this run.
        ask: Asks the user whether they trust it; None without a terminal.

    Raises:
        ConfigError: The campaign is wrong, not trusted, or differs from the one that began here.
        OutputError: The folder cannot be written.
    """
    loaded = _with_options(await to_thread.run_sync(load_campaign, folder, env), on, at_once, model)
    tasks = await to_thread.run_sync(expand, loaded.campaign, loaded.folder.path, loaded.jsonl)
    await require_trust(loaded, trusts=trusts, ask=ask)
    earlier = await to_thread.run_sync(loaded.folder.frozen_or_none)
    if earlier is not None:
        return await to_thread.run_sync(_go_on, loaded, tasks, earlier)
    return await to_thread.run_sync(_begin, loaded, tasks, await _commit(loaded))


def _with_options(loaded: LoadedCampaign, on: str | None, at_once: int | None, model: str | None) -> LoadedCampaign:
    if at_once is not None and at_once < 1:
        raise ConfigError(f"no attempt can run with {at_once} at once; give 1 or more")
    where = loaded.campaign.where.model_copy(update=_given(on=on, at_once=at_once))
    return replace(loaded, campaign=loaded.campaign.model_copy(update=_given(model=model, where=where)))


def _given(**fields: object) -> Mapping[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


def _begin(loaded: LoadedCampaign, tasks: Sequence[Task], commit: str | None) -> FrozenCampaign:
    """Write the tasks and the campaign."""
    folder, data = loaded.folder, _lines(tasks)
    try:
        require_nothing_left(folder)
    except ConfigError:
        if (quicker := folder.frozen_or_none()) is not None:  # another panpan, in this moment
            return _go_on(loaded, tasks, quicker)
        raise
    found = folder.tasks_data()
    if found is None:
        folder.write_tasks(data)
    elif found != data:  # unless a crash came between the two files, somebody else wrote it
        raise ConfigError(f"{shown(folder.tasks_file)} is there, and not from this campaign; move it away")
    frozen = FrozenCampaign(
        id=str(uuid4()),
        tasks=len(tasks),
        tasks_digest=_digest(data),
        source=str(loaded.source),
        commit=commit,
        home=str(loaded.home),
        campaign=loaded.campaign,
    )
    note_begun(folder, frozen.id, loaded.users_home)  # before it begins, or a kill would make it a stranger's
    if folder.begin(frozen):
        return frozen
    quicker = folder.frozen()
    note_begun(folder, quicker.id, loaded.users_home)
    return _go_on(loaded, tasks, quicker)


def _go_on(loaded: LoadedCampaign, tasks: Sequence[Task], earlier: FrozenCampaign) -> FrozenCampaign:
    """Return the campaign that began here, with what has changed since."""
    _require_same_tasks(loaded.folder, tasks, earlier)
    home = _require_same_files(loaded, earlier)
    if loaded.campaign.attempts < earlier.campaign.attempts:
        _require_begun_attempts(loaded)
    return earlier.model_copy(update={"campaign": loaded.campaign, "home": home})


def _require_same_tasks(folder: CampaignFolder, tasks: Sequence[Task], earlier: FrozenCampaign) -> None:
    written, data = folder.tasks_data(), _lines(tasks)
    is_same = _digest(data) == earlier.tasks_digest
    if written is None and not is_same:
        raise ConfigError(
            f"{shown(folder.tasks_file)} is gone, and campaign.toml expands to other tasks now; put one of them back"
        )
    if written is None:
        folder.write_tasks(data)
    elif _digest(written) != earlier.tasks_digest:
        raise ConfigError(
            f"{shown(folder.tasks_file)} was edited or damaged; remove it, and panpan writes it from campaign.toml"
        )
    if is_same:
        return
    before, now = ({_key(task): task.id for task in all_} for all_ in (folder.tasks(), tasks))
    came, went = now.keys() - before.keys(), before.keys() - now.keys()
    changed = [key for key in now.keys() & before.keys() if now[key] != before[key]]
    if came or went or changed:
        raise ConfigError(
            f"the tasks are not those with which {shown(folder.path)} began: {len(came):,} came, {len(went):,} went, "
            f"{len(changed):,} changed; put campaign.toml and its files back, or make a new folder"
        )


def _key(task: Task) -> str:
    return json.dumps([task.name, dict(task.axes)], sort_keys=True)


def _require_same_files(loaded: LoadedCampaign, earlier: FrozenCampaign) -> str:
    """Refuse a change of the files or the home; return the home.

    The user's own home may move, as with another PANPAN_HOME: the sessions stay in the one that they began in.
    """
    campaign, before = loaded.campaign, earlier.campaign
    home = earlier.home if campaign.home is None and before.home is None else str(loaded.home)
    changes = {
        "workspace.source": (str(loaded.source), earlier.source),
        "workspace.isolation": (campaign.workspace.isolation, before.workspace.isolation),
        "workspace.commit": (campaign.workspace.commit, before.workspace.commit),
        "workspace.linked": (campaign.workspace.linked, before.workspace.linked),
        "workspace.left_out": (campaign.workspace.left_out, before.workspace.left_out),
        "home": (home, earlier.home),
    }
    for key, (now, then) in changes.items():
        if now != then:
            raise ConfigError(
                f"campaign.toml: {key} is {shown(now)}, but the campaign began with {shown(then)}; put it back, or "
                "make a new folder"
            )
    return home


def _require_begun_attempts(loaded: LoadedCampaign) -> None:
    """Refuse fewer attempts than have begun: they would be listed no more, and their money be forgotten."""
    now = loaded.campaign.attempts
    most = max((one.number for one in loaded.folder.attempts()), default=0)
    if most > now:
        raise ConfigError(
            f"campaign.toml: attempts is {now:,}, but attempt {most:,} at a task has begun; put it back, and end what "
            "you do not want with panpan batch cancel"
        )


async def _commit(loaded: LoadedCampaign) -> str | None:
    """Return the full id of the commit of the worktrees; None for copies."""
    workspace = loaded.campaign.workspace
    if workspace.isolation == "copy":
        return None
    try:
        repository = await repository_around(loaded.source)
        wanted = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{workspace.commit}^{{commit}}"]
        found = await run_git(wanted, cwd=repository.top, timeout_s=_GIT_S)
    except ToolError as error:
        raise ConfigError(
            f'campaign.toml: workspace.source: {shown(error)}; name a repository, or set workspace.isolation = "copy"'
        ) from error
    if found.exit_code != 0:
        raise ConfigError(
            f"campaign.toml: workspace.commit: {shown(repository.top)} has no commit {shown(workspace.commit)}; "
            "name a commit, branch or tag of it"
        )
    commit = found.stdout.decode("ascii").strip()
    inside = loaded.source.relative_to(repository.top).as_posix()
    folder = f"{commit}:{'' if inside == '.' else inside}"
    known = await run_git(["cat-file", "-e", folder], cwd=repository.top, timeout_s=_GIT_S)
    if known.exit_code != 0:
        raise ConfigError(
            f"campaign.toml: workspace.source: the commit {commit[:12]} has no folder {shown(inside)}; "
            "name the project, or commit the folder first"
        )
    return commit


def _lines(tasks: Sequence[Task]) -> bytes:
    return b"".join(task.model_dump_json().encode() + b"\n" for task in tasks)


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()
