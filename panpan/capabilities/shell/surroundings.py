"""Surroundings of a command: its environment and its bounds.

A command that runs without a question because it only looks gets an environment in which its words mean what was
judged. The shell starts without functions, options and start files, programs are not found in the workspace, and no
environment variable makes a program do more. If the command assigns such a variable anyway, the shell refuses it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from panpan.core.tool import ToolContext
from panpan.shell_analysis.facts import LineFacts
from panpan.system.files.paths import PathResolver, without_workspace
from panpan.system.git.git import harmless_git_variables
from panpan.system.sandbox.command_sandbox import Bounds
from panpan.types.pattern import compile_late
from panpan.types.permission import SandboxUse

_CHANGES_SHELL = compile_late(
    r"BASH_FUNC_.*|BASH_ENV|ENV|BASHOPTS|SHELLOPTS|CDPATH|OLDPWD|GLOBIGNORE|POSIXLY_CORRECT|_POSIX2_VERSION"
)
"""Functions, start files and options of bash, and what changes the meaning of `cd`, of patterns and of flags."""


_NAME = compile_late(r"[A-Za-z_][A-Za-z0-9_]*")
_SET_BY_BASH = frozenset({"COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "_"})
_OF_BASH = (
    "BASH_ALIASES", "BASH_CMDS", "BASH_ENV", "CDPATH", "ENV", "GLOBIGNORE", "HOME", "IFS", "PATH", "POSIXLY_CORRECT",
)  # fmt: skip
"""Variables by which bash finds programs, places and the ends of words, set or not."""


def fixed_names(environment: Mapping[str, str]) -> list[str]:
    """Return the variables to which a line that only looks must not assign, when it runs in `environment`.

    Beside those of bash these are all that a program of the line would find changed, but for what may be set for it.
    """
    from panpan.shell_analysis.plain_line import is_harmless_name  # not needed before the first command

    names = (name for name in environment if _NAME.fullmatch(name) and not is_harmless_name(name))
    return sorted({*_OF_BASH, *names} - _SET_BY_BASH)


async def read_only_environment(
    facts: LineFacts, environment: Mapping[str, str], cwd: Path, paths: PathResolver
) -> dict[str, str]:
    """Return `environment` as a line that starts in `cwd` needs it to be as harmless as was judged.

    Raises:
        ToolError: git is asked, and is not installed or could not be made harmless.
    """
    changed = {name: value for name, value in environment.items() if not _CHANGES_SHELL.fullmatch(name)}
    changed["PATH"] = without_workspace(changed.get("PATH", ""), paths)
    for name, value in facts.needed_environment.items():
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = value
    if folders := facts.git_folders:
        changed = {name: value for name, value in changed.items() if not name.startswith("GIT_")}
        changed |= await harmless_git_variables([cwd / folder for folder in folders], roots=paths.roots)
    return changed


def bounds_of(use: SandboxUse, facts: LineFacts, ctx: ToolContext, report: Path | None) -> Bounds:
    """Return the bounds of a command that may run, in the sandbox as far as `use` allows.

    A command that is known only to look, or has the box for that, changes nothing; any other works in the workspace,
    without the network and without the rest of the machine, unless the user has opened more to it. The shell writes
    into `report` where it ended.
    """
    hosts: Sequence[str] = ()
    if ctx.opening is not None:
        use, hosts = ctx.opening.use, ctx.opening.hosts
    is_read_only = use == "on" and (facts.is_read_only or ctx.box == "looking")
    return Bounds(
        is_read_only=is_read_only,
        shown=ctx.paths.approved | frozenset(ctx.paths.readable_roots),
        hides_home=is_read_only or (use == "on" and ctx.box == "unasked"),
        roots=ctx.paths.roots,
        opened=_opened_to_write(facts, ctx.paths),
        own_files=() if report is None else (report,),
        has_network=use == "network" and not hosts,
        hosts=hosts,
        is_outside=use == "off",
    )


def _opened_to_write(facts: LineFacts, paths: PathResolver) -> frozenset[Path]:
    """Return the places that the user has opened to the call, without those that it is known only to read."""
    if not paths.approved:
        return frozenset()
    read, written = ({paths.decided_location(text).path for text in texts} for texts in (facts.reads, facts.writes))
    return paths.approved - (read - written)
