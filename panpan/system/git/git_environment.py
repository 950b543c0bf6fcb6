"""The environment in which git runs nothing that a configuration names.

The rule: all that can be switched off is, for every command, whether panpan uses it or not. Names that are free, as of
filters, have to be given.
"""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from panpan.system.environment import child_environment
from panpan.system.files.home import user_home

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

_EXCLUDES_FILE = re.compile(r"^\s*excludesfile\s*=\s*\"?(.+?)\"?\s*$", re.IGNORECASE | re.MULTILINE)
_PLAIN_DIFF = 'f() { diff -u --label "a/$1" --label "b/$1" "$2" "$5"; :; }; f'
"""In place of a program for diffs that a configuration names, which no setting can switch off."""


def git_environment(
    named_helpers: Sequence[str] = (), settings: Mapping[str, str] = MappingProxyType({})
) -> dict[str, str]:
    """Return an environment in which git runs nothing that a repository's configuration names.

    Diffs still need `--no-ext-diff`.

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
        elif kind == "alias":  # stands for a command that this git lacks, or that git 2.52 calls deprecated
            settings[key] = ""
        elif kind == "submodule":
            settings[f"submodule.{name}.ignore"] = "all"
        elif key == "diff.external" or (kind == "diff" and key.endswith(".command")):
            settings[key] = _PLAIN_DIFF
        elif kind == "filter":
            settings |= {f"filter.{name}.{step}": "" for step in ("clean", "smudge", "process")}
            settings[f"filter.{name}.required"] = "false"
        else:
            # An empty conversion would be an error; this one converts nothing.
            settings |= {f"diff.{name}.textconv": "/bin/cat", f"diff.{name}.cachetextconv": "false"}
    env = {name: value for name, value in child_environment().items() if not name.startswith("GIT_")}
    env |= {
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_PAGER": "cat",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        # Stronger than protocol.allow, which protocol.<name>.allow of the repository would overrule.
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
