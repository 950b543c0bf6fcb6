"""The git runner: questions to a repository that nobody has vouched for.

The rule: nothing that the repository names is run: hooks, file system monitor, pager, external diffs, text conversions,
filters, signature programs, remote helpers, and the configuration of its submodules. Asking does not refresh the index.
Only commands whose switches are known are run, and their arguments are panpan's own, never the model's.
"""

import os
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from anyio import to_thread

from panpan.errors import ToolError
from panpan.system.environment import child_environment
from panpan.system.files.canonical import canonical_path, is_below, user_home
from panpan.system.git.git_places import places_elsewhere
from panpan.system.processes.process import Captured, capture
from panpan.types.pattern import compile_late

_NO_DIFF_PROGRAMS = ("--no-ext-diff", "--no-textconv")
_NO_SUBMODULES = ("--ignore-submodules=all",)

_SWITCHES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("branch", "cat-file", "check-ignore", "config", "describe", "for-each-ref", "ls-files", "ls-tree",
         "merge-base", "name-rev", "remote", "rev-list", "rev-parse", "shortlog", "show-ref", "symbolic-ref", "tag",
         "version"), ()
    ),
    **dict.fromkeys(("blame", "grep"), ("--no-textconv",)),
    **dict.fromkeys(("diff", "diff-files", "diff-index"), (*_NO_DIFF_PROGRAMS, *_NO_SUBMODULES)),
    **dict.fromkeys(("diff-tree", "log", "show"), _NO_DIFF_PROGRAMS),
    "status": _NO_SUBMODULES,
}  # fmt: skip
"""The commands that may be run, and what each needs to run no program of the repository's."""

_REFUSED_OPTIONS = (
    "--textconv", "--ext-diff", "--ignore-submodules=none", "--open-files-in-pager", "--show-signature",
    "--remerge-diff", "--dirty", "--help",
)  # fmt: skip
"""They would switch a helper on again, write the index (`--dirty`) or start the viewer that a repository names
(`--help`); git also takes their unambiguous beginnings."""


async def run_git(args: Sequence[str], *, cwd: Path, timeout_s: float = 5) -> Captured:
    """Ask git something about the repository that `cwd` lies in.

    `args` are a command that only asks, such as `status`, and its arguments. Options of git itself are not taken. The
    time is for each question that it takes.

    Raises:
        ToolError: git is not installed, cannot be started, or the repository says that its files are elsewhere.
        ValueError: The command is none of those whose switches are known, or an argument is refused.
    """
    return await (await git_questions(cwd, timeout_s=timeout_s))(args)


GitQuestions: TypeAlias = Callable[[Sequence[str]], Awaitable[Captured]]


async def git_questions(cwd: Path, *, timeout_s: float = 5) -> GitQuestions:
    """Return a function that asks git several things about a repository; its settings are read only once.

    The arguments and errors are those of `run_git`.
    """
    run = await _own_git(cwd, timeout_s)

    async def ask(args: Sequence[str]) -> Captured:
        _require_known(args)
        return await run([args[0], *_SWITCHES[args[0]], *args[1:]])

    return ask


async def run_own_git(
    args: Sequence[str],
    *,
    cwd: Path,
    timeout_s: float,
    env: Mapping[str, str] = MappingProxyType({}),
    max_bytes: int = 10_000_000,
) -> Captured:
    """Run any command of git in which nothing runs that a configuration names, with further variables.

    Raises:
        ToolError: git is not installed, cannot be started, or the repository says that its files are elsewhere.
    """
    return await (await _own_git(cwd, timeout_s, env, max_bytes))(args)


async def _own_git(
    cwd: Path, timeout_s: float, further: Mapping[str, str] = MappingProxyType({}), max_bytes: int = 10_000_000
) -> GitQuestions:
    program = git_program(cwd)
    await _require_own(cwd, [cwd], follows_named=False)
    named = await _named_helpers(program, cwd, timeout_s)
    if ELSEWHERE in named:
        await _top_folder(program, cwd, timeout_s)  # raises if they are elsewhere
    env = {**git_environment(named), **further}

    async def run(args: Sequence[str]) -> Captured:
        command = [program, "--no-pager", *args]
        return await capture(command, cwd=cwd, env=env, timeout_s=timeout_s, max_bytes=max_bytes)

    return run


_HELPERS = (
    r"^((filter|hook|submodule)\..*\.[a-z]+|diff\..*\.(textconv|cachetextconv|command)|diff\.external|alias\..*)$"
)


async def harmless_git_variables(
    folders: Sequence[Path], *, roots: Sequence[Path] = (), timeout_s: float = 5
) -> dict[str, str]:
    """Return the variables with which a form of git that only asks runs nothing that a repository names.

    They are for commands of others, to which no switch can be added. All other variables whose names
    begin with `GIT_` must be missing.

    Links in a git folder may lead to the `roots`, which are canonical. The time is for each question that it takes.

    Raises:
        ToolError: git is not installed, or a repository names things that cannot be switched off, or a link in its
            git folder leads elsewhere.
    """
    named: dict[str, None] = {}
    for folder in folders:
        if folder.is_dir():
            program = git_program(folder)
            await _require_own(folder, roots, follows_named=True)
            named |= dict.fromkeys(await _named_helpers(program, folder, timeout_s, _HELPERS))
            named |= dict.fromkeys(await _submodules(program, folder, timeout_s))
    variables = {name: value for name, value in git_environment(tuple(named)).items() if name.startswith("GIT_")}
    return variables | {"GIT_EDITOR": NO_PROGRAM}


async def _submodules(program: str, folder: Path, timeout_s: float) -> list[str]:
    top = await _top_folder(program, folder, timeout_s)
    if top is None:
        return []

    async def asked(*args: str) -> Captured:
        return await capture([program, "--no-pager", *args], cwd=folder, env=git_environment(), timeout_s=timeout_s)

    listing = ("--null", "--name-only", "--get-regexp", r"^submodule\..*\.[a-z]+$")
    if (top / ".gitmodules").exists():
        lists = [await asked("config", "--file", str(top / ".gitmodules"), *listing)]
    else:
        lists = [await asked("config", "--blob", f"{tree}:.gitmodules", *listing) for tree in ("", "HEAD")]
    return [key for one in lists for key in one.stdout.decode(errors="surrogateescape").split("\0") if key]


async def _top_folder(program: str, folder: Path, timeout_s: float) -> Path | None:
    """Return the folder that a repository's files lie in; None if there is no repository, or a bare one.

    Raises:
        ToolError: The repository says that they lie around or outside the folder that holds it.
    """
    command = [program, "--no-pager", "rev-parse", "--show-toplevel", "--absolute-git-dir"]
    found = await capture(command, cwd=folder, env=git_environment(), timeout_s=timeout_s)
    places = found.stdout.decode(errors="surrogateescape").splitlines()
    if found.exit_code != 0 or len(places) != 2:
        return None
    top, git_folder = (canonical_path(Path(place)) for place in places)
    if not is_below(canonical_path(folder), top) or (is_below(git_folder, top) and git_folder != top / ".git"):
        raise ToolError(
            f"the repository {git_folder} says that its files are in {top}, so git did not run; correct its "
            "core.worktree, or work in that folder"
        )
    return top


async def _require_own(folder: Path, roots: Sequence[Path], *, follows_named: bool) -> None:
    """Refuse a repository that takes from elsewhere than `roots` what it shows.

    With `follows_named`, it may be taken from what the repository names: the user was asked about that.

    Raises:
        ToolError: It is so.
    """
    here = canonical_path(folder)
    for place in await to_thread.run_sync(places_elsewhere, here):
        if (place.is_link or not follows_named) and not any(is_below(place.path, root) for root in (*roots, here)):
            raise ToolError(
                f"{place.named_by} leads to {place.path}, outside the workspace, so git did not run; work in the "
                "repository that it leads to, or remove it"
            )


def _require_known(args: Sequence[str]) -> None:
    if not args or args[0] not in _SWITCHES:
        raise ValueError(f"git {' '.join(args[:1])} is not among the commands that are known to be safe")
    for argument in args[1:]:
        if argument == "--":
            return
        if argument.startswith("-O") or (
            len(argument) > len("--e") and any(option.startswith(argument) for option in _REFUSED_OPTIONS)
        ):
            raise ValueError(f"git {args[0]} {argument} could run what the repository names or write its index")


_CONVERTERS = r"^((filter|hook)\..*\.[a-z]+|diff\..*\.(textconv|cachetextconv)|core\.worktree)$"


async def _named_helpers(program: str, cwd: Path, timeout_s: float, pattern: str = _CONVERTERS) -> list[str]:
    """Return the keys of helpers whose names are free in all configuration files; reading them runs nothing."""
    command = [program, "--no-pager", "config", "--null", "--name-only", "--get-regexp", pattern]
    found = await capture(command, cwd=cwd, env=git_environment(), timeout_s=timeout_s)
    if found.timed_out or found.is_truncated:
        raise ToolError(
            "git could not list the helpers that the repository names, so it was not asked; run git yourself"
        )
    return [key for key in found.stdout.decode(errors="surrogateescape").split("\0") if key]


def git_program(cwd: Path) -> str:
    """Return the absolute path of git; one that lies in the folder it is asked about is passed over."""
    here = canonical_path(cwd)
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("git", path=entry) if Path(entry).is_absolute() else None
        if found is not None and not is_below(canonical_path(Path(entry)), here):
            return found
    raise ToolError("git is not installed, or is not on the PATH; install it")


NO_PROGRAM = "/usr/bin/false"
ELSEWHERE = "core.worktree"
"""The key with which a repository says that its files are in another folder."""

_SETTINGS: Mapping[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": "/dev/null",
    "core.pager": "cat",
    "core.editor": NO_PROGRAM,
    "core.sshCommand": NO_PROGRAM,
    "core.gitProxy": "",
    "core.askPass": NO_PROGRAM,
    "core.alternateRefsCommand": NO_PROGRAM,
    "core.checkStat": "default",
    "blame.ignoreRevsFile": "",
    "diff.orderFile": "/dev/null",
    "format.signatureFile": "/dev/null",
    "gpg.ssh.allowedSignersFile": "/dev/null",
    "gpg.ssh.revocationFile": "/dev/null",
    "mailmap.blob": "",
    "mailmap.file": "/dev/null",
    "credential.helper": "",
    "diff.autoRefreshIndex": "false",
    "diff.ignoreSubmodules": "all",
    "diff.submodule": "short",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
    "log.showSignature": "false",
    "log.diffMerges": "separate",
    "merge.verifySignatures": "false",
    "sequence.editor": NO_PROGRAM,
    "interactive.diffFilter": "cat",
    "uploadpack.packObjectsHook": NO_PROGRAM,
    "gc.recentObjectsHook": NO_PROGRAM,
    "gpg.program": NO_PROGRAM,
    "gpg.openpgp.program": NO_PROGRAM,
    "gpg.x509.program": NO_PROGRAM,
    "gpg.ssh.program": NO_PROGRAM,
    "gpg.ssh.defaultKeyCommand": "",
    "protocol.allow": "never",
    "safe.bareRepository": "explicit",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "color.ui": "false",
    "column.ui": "never",
}
"""Laid over every configuration file of the repository, the user and the system: what runs a program in any command,
what makes asking change or fetch something, and what has git read a file that may lie anywhere (git-config(1))."""

_EXCLUDES_FILE = compile_late(r"^\s*excludesfile\s*=\s*\"?(.+?)\"?\s*$", re.IGNORECASE | re.MULTILINE)
_PLAIN_DIFF = 'f() { diff -u --label "a/$1" --label "b/$1" "$2" "$5"; :; }; f'
"""Replacement for a program for diffs that a configuration names, which no setting can switch off."""


def git_environment(
    named_helpers: Sequence[str] = (), settings: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Return an environment in which git runs nothing that a repository's configuration names.

    All that can be switched off is, for every command, whether panpan uses it or not. Diffs still need `--no-ext-diff`.

    Args:
        named_helpers: Keys such as `filter.lfs.clean` and `diff.pdf.textconv` that some configuration file sets. Their
            names are free, and git has no way to switch off all of them.
        settings: Further settings of git, by key.
    """
    settings = {**settings, **_SETTINGS, "core.excludesFile": _users_excludes()}
    for key in named_helpers:
        kind, _, rest = key.partition(".")
        name = rest.rpartition(".")[0]
        if key == ELSEWHERE:
            continue
        if kind == "hook":  # git 2.54 takes hooks from configuration files, too
            settings |= {f"hook.{name}.enabled": "false", f"hook.{name}.event": ""}
        elif kind == "alias":  # a command that this git lacks, or that git 2.52 calls deprecated
            settings[key] = ""
        elif kind == "submodule":
            settings[f"submodule.{name}.ignore"] = "all"
        elif key == "diff.external" or (kind == "diff" and key.endswith(".command")):
            settings[key] = _PLAIN_DIFF
        elif kind == "filter":
            settings |= {f"filter.{name}.{step}": "" for step in ("clean", "smudge", "process")}
            settings[f"filter.{name}.required"] = "false"
        else:
            # An empty conversion would be an error; cat converts nothing.
            settings |= {f"diff.{name}.textconv": "/bin/cat", f"diff.{name}.cachetextconv": "false"}
    env = {name: value for name, value in child_environment().items() if not name.startswith("GIT_")}
    env |= {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        # Stronger than protocol.allow, which the repository's protocol.<name>.allow would override.
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_CONFIG_COUNT": str(len(settings)),
    }
    for number, (key, value) in enumerate(settings.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return env


def _users_excludes() -> str:
    """Return the file with what the user never tracks, whatever a repository calls so (gitignore(5))."""
    own = Path(os.environ.get("XDG_CONFIG_HOME") or user_home() / ".config") / "git"
    for file in (user_home() / ".gitconfig", own / "config"):
        with suppress(OSError):
            if named := _EXCLUDES_FILE.findall(file.read_text(errors="surrogateescape")):
                return str(user_home() / named[-1].removeprefix("~/"))
    return str(own / "ignore")
