"""The environment of a command line that runs because it only looks: in which its words mean what was judged.

The rule: the shell starts without functions, options and start files of its own, programs are not found in the
workspace, and nothing that a program reads from its environment makes it do more.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from panpan.system.git import harmless_git_variables
from panpan.system.paths import PathResolver
from panpan.tools.shell.analysis.facts import LineFacts
from panpan.tools.shell.safe_path import without_workspace

_CHANGES_SHELL = re.compile(r"BASH_FUNC_.*|BASH_ENV|ENV|BASHOPTS|SHELLOPTS|CDPATH|OLDPWD|GLOBIGNORE|POSIXLY_CORRECT")
"""Functions, start files and options of bash, and what changes the meaning of `cd`, of patterns and of flags."""


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
        changed |= await harmless_git_variables([cwd / folder for folder in folders])
    return changed
