"""Rules of a campaign that concern more than one key.

The rule: what cannot work, or would work against the campaign, is found before the first attempt costs anything.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import TypeAlias

from panpan.batch.definition.campaign import Campaign
from panpan.config.keys import KeyPath, shown

Problem: TypeAlias = tuple[KeyPath, str]
"""The key at fault, and a sentence with what to do."""


def problems_of(campaign: Campaign) -> Iterator[Problem]:
    """Yield all problems of a campaign."""
    for rule in _RULES:
        yield from rule(campaign)


_OF_FILE = ("{file}", "{text}")


def _tasks(campaign: Campaign) -> Iterator[Problem]:
    tasks = campaign.tasks
    if tasks.each is not None and tasks.prompt is None:
        yield ("tasks", "each"), "tasks.each needs tasks.prompt; write a prompt with {file} or {text} in it"
    if tasks.each is not None and tasks.prompt is not None and not any(name in tasks.prompt for name in _OF_FILE):
        yield (
            ("tasks", "prompt"),
            "tasks.prompt is the same for all files; write {file} for the path, or {text} for the content",
        )
    if tasks.prompt is not None and tasks.each is None:
        yield ("tasks", "prompt"), "tasks.prompt is for the files of tasks.each; add that, or write a [[task]]"
    if not campaign.task and not tasks.jsonl and tasks.each is None:
        yield (), "there are no tasks; write a [[task]], or tasks.jsonl or tasks.each"


_NAMES_IN_USE = ("file", "text", "id")


def _axes(campaign: Campaign) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for name, values in campaign.axes.items():
        if name in _NAMES_IN_USE:
            yield ("axes", name), f"axes.{name} has a name that means something else; choose another name"
        if (other := seen.setdefault(name.casefold(), name)) != name:
            yield ("axes", name), f"axes.{name} differs from axes.{other} in case alone; choose another name"
        if name == "model" and not all(isinstance(value, str) and value.strip() for value in values):
            yield ("axes", name), "axes.model has an item that names no model; write names in quotes"


_NEEDED_LIMITS: Mapping[str, Sequence[str]] = {
    "usd": ("max_usd",),
    "tokens": ("max_tokens",),
    "seconds": ("max_seconds",),
    "gpu_seconds": ("max_seconds", "gpu"),
}
"""Limits of an attempt that a limit of the campaign is made of."""


def _budget(campaign: Campaign) -> Iterator[Problem]:
    for name, needed in _NEEDED_LIMITS.items():
        budget = getattr(campaign.budget, name)
        if budget is None:
            continue
        limits = {key: getattr(campaign.attempt, key) for key in needed}
        if missing := [f"attempt.{key}" for key, limit in limits.items() if not limit]:
            yield (
                ("budget", name),
                f"budget.{name} needs {' and '.join(missing)}, since an attempt begins only if its own limit fits "
                "into the rest; add it",
            )
            continue
        one = 1
        for limit in limits.values():
            one *= limit
        if one > budget:
            yield (
                ("budget", name),
                f"budget.{name} = {budget:g} is less than one attempt may take ({one:g}), so none would begin; "
                f"raise it, or lower attempt.{needed[0]}",
            )


def _workspace(campaign: Campaign) -> Iterator[Problem]:
    workspace = campaign.workspace
    if workspace.python is not None and workspace.environment == "none":
        yield ("workspace", "python"), 'workspace.python is for environments of uv; set workspace.environment = "uv"'
    if workspace.commit != "HEAD" and workspace.isolation == "copy":
        yield (
            ("workspace", "commit"),
            "workspace.commit is for worktrees, and a copy has the files as they are; remove one of the two",
        )
    if workspace.commit.startswith("-"):
        yield ("workspace", "commit"), "workspace.commit begins with a dash; name a commit, branch or tag"


def _shared_files(campaign: Campaign) -> Iterator[Problem]:
    workspace = campaign.workspace
    for key, paths in (("linked", workspace.linked), ("left_out", workspace.left_out)):
        for path in paths:
            if not is_path_inside(path):
                yield (
                    ("workspace", key),
                    f"workspace.{key} has {shown(path)}, which is no path in the project; write one such as data/raw",
                )
    if workspace.left_out and workspace.isolation == "worktree":
        yield (
            ("workspace", "left_out"),
            "workspace.left_out is for copies, and a worktree has all of its commit; remove it",
        )


def is_path_inside(path: str) -> bool:
    """True if a path names a file or folder of the project in which it is written."""
    parts = PurePosixPath(path).parts
    return bool(parts) and not path.startswith("/") and ".." not in parts and ".git" not in parts and path.isprintable()


def _machines(campaign: Campaign) -> Iterator[Problem]:
    # each is part of a line of the job's script, and a line feed would begin a command that no question shows
    for name in ("memory", "walltime", "queue", "account"):
        text = getattr(campaign.where.slurm, name)
        if text is not None and not text.isprintable():
            yield ("where", "slurm", name), f"where.slurm.{name} has a character that cannot be seen; remove it"
    gpus = campaign.where.gpus
    if gpus is not None and campaign.attempt.gpu > len(gpus):
        yield (
            ("attempt", "gpu"),
            f"attempt.gpu = {campaign.attempt.gpu} is more than the {len(gpus)} of where.gpus; lower it",
        )


_SESSION = "each attempt has a session of its own"
OWN_FLAGS: Mapping[str, str] = {
    "--print": "the prompt is that of the task",
    "--output-format": "panpan reads the output itself",
    "--input-format": "panpan reads the output itself",
    "--end-with-parent": "panpan adds it itself",
    "--await-initialize": "nobody answers on standard input",
    "--permission-prompt-tool": "nobody answers on standard input",
    "--help": "it does no work",
    "--version": "it does no work",
    "--": "the prompt is that of the task",
    **dict.fromkeys(
        ("--session-id", "--session", "--continue", "--resume", "--fork-session", "--resume-session-at",
         "--resume-drops-turn", "--no-session-persistence"), _SESSION
    ),
    "--cwd": "set workspace.source",
    "--model": "set model, or the axis model",
    "--max-budget-usd": "set attempt.max_usd",
    "--max-tokens": "set attempt.max_tokens",
    "--max-seconds": "set attempt.max_seconds",
    "--max-turns": "set attempt.max_turns",
    "--when-asked": "set attempt.when_asked",
    "--unfinished": "set attempt.unfinished",
}  # fmt: skip
"""Flags that a campaign gives itself, and the advice instead."""
_SHORT = {
    "p": "--print", "f": "--output-format", "c": "--continue", "r": "--resume", "h": "--help", "V": "--version",
}  # fmt: skip
_OWN_SETTINGS = {
    "model": "--model",
    "max_rounds": "--max-turns",
    "max_budget_usd": "--max-budget-usd",
    "max_tokens": "--max-tokens",
    "max_seconds": "--max-seconds",
}
"""Settings that `--set` may not set, and the flags that are the same."""


def _flags(campaign: Campaign) -> Iterator[Problem]:
    words = campaign.attempt.flags
    if words and not words[0].startswith("-"):
        yield ("attempt", "flags"), f"attempt.flags begins with {shown(words[0])}; begin with a flag, such as --yes"
    for before, word in zip(("", *words), words, strict=False):
        flag = _own_flag(before, word)
        if flag is not None:
            yield (
                ("attempt", "flags"),
                f"attempt.flags has {shown(word)}, which a campaign sets for itself; remove it ({OWN_FLAGS[flag]})",
            )


def _own_flag(before: str, word: str) -> str | None:
    """Return the flag that a word gives and that is the campaign's own; None if it gives none."""
    if before == "--set" or word.startswith("--set="):
        return _OWN_SETTINGS.get(word.removeprefix("--set=").partition("=")[0].strip())
    if word.startswith("--"):
        name = word.partition("=")[0]
        return name if name in OWN_FLAGS else None
    letters = word[1:] if word.startswith("-") else ""
    # In -yp the second letter is a flag, too; y, q and v are those that take no value.
    return _SHORT.get(letters.lstrip("yqv")[:1])


_RULES: Sequence[Callable[[Campaign], Iterator[Problem]]] = (
    _tasks,
    _axes,
    _budget,
    _workspace,
    _shared_files,
    _machines,
    _flags,
)
