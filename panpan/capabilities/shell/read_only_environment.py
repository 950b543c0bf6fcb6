"""The environment of a command line that runs because it only looks: in which its words mean what was judged.

The rule: the shell starts without functions, options and start files of its own, programs are not found in the
workspace, and nothing that a program reads from its environment makes it do more. Should a command assign in spite of
what was judged, the shell refuses it.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from panpan.shell_analysis.facts import LineFacts
from panpan.system.files.paths import PathResolver
from panpan.system.files.safe_path import without_workspace
from panpan.system.git.git import harmless_git_variables

_CHANGES_SHELL = re.compile(
    r"BASH_FUNC_.*|BASH_ENV|ENV|BASHOPTS|SHELLOPTS|CDPATH|OLDPWD|GLOBIGNORE|POSIXLY_CORRECT|_POSIX2_VERSION"
)
"""Functions, start files and options of bash, and what changes the meaning of `cd`, of patterns and of flags."""


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SET_BY_BASH = frozenset({"COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "_"})
_OF_BASH = (
    "BASH_ALIASES", "BASH_CMDS", "BASH_ENV", "CDPATH", "ENV", "GLOBIGNORE", "HOME", "IFS", "PATH", "POSIXLY_CORRECT",
)  # fmt: skip
"""Variables by which bash finds programs, places and the ends of words, set or not."""


def fixed_names(environment: Mapping[str, str]) -> list[str]:
    """Return the variables to which a line that only looks must not assign, when it runs in `environment`.

    Beside those of bash these are all that a program of the line would find changed, but for what may be set for it.
    """
    from panpan.shell_analysis.assignments import is_harmless_name  # no session needs it before its first command

    names = (name for name in environment if _NAME.fullmatch(name) and not is_harmless_name(name))
    return sorted({*_OF_BASH, *names} - _SET_BY_BASH)


async def read_only_environment(
    facts: LineFacts, environment: Mapping[str, str], cwd: Path, paths: PathResolver
) -> dict[str, str]:
    """Return `environment` as the line needs it to be as harmless as was judged.

    Args:
        facts: What is known of the line.
        environment: What commands get otherwise.
        cwd: Where the line starts.
        paths: Knows the workspace.

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
