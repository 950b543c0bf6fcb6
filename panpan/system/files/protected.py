"""Files that stay closed in every mode: writing them would run code later, loosen panpan, or touch credentials.

The rule: a place is protected by its name, whether it exists or not, and so is everything below it. Names are compared
as the most careless file system would: without regard to case, invisible characters, trailing dots or streams.

What is run only by somebody who builds, tests or runs the project is source, and not protected: Makefile, conftest.py,
package.json, build.rs, .rspec, settings of linters. Nor is what only chooses among things that the user has set up, or
among released versions: .gitattributes, whose drivers are in git's configuration, .nvmrc, .python-version. Protected
is what a shell, an editor or a tool's launcher takes up by itself, and what makes one name run another program: a path
in .tool-versions or rust-toolchain.toml, an address in .bazeliskrc or gradle/wrapper.
"""

import os
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ProtectedGroup:
    """Names that are protected for one reason."""

    reason: str
    """End of the sentence "it is protected, since it …"."""
    names: tuple[str, ...]
    """One or more components, each with shell wildcards; a leading `/` ties the name to the root of the file system."""
    is_never_workspace: bool = False
    """True if it stays protected when the workspace itself lies in it."""
    is_secret: bool = False
    """True if it is closed to reading, too."""
    is_only_as_named: bool = False
    """True if it is closed only to calls that are known to write this very file. Programs get such files all day, and
    installers make them: a call that only mentions one, deletes its folder or works in the sandbox is not held up."""


PROTECTED_GROUPS = (
    ProtectedGroup(
        "holds git's own configuration and hooks, which run commands",
        (".git", "git~1", ".gitconfig", ".gitmodules", ".config/git"),
        is_never_workspace=True,
    ),
    ProtectedGroup(
        "holds credentials",
        (
            ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker/config.json", ".config/gcloud", ".config/gh",
            ".config/glab-cli", ".netrc", "_netrc", ".git-credentials", ".pgpass", ".my.cnf", ".npmrc", ".yarnrc",
            ".yarnrc.yml", ".curlrc", "_curlrc", ".wgetrc", ".config/rclone", ".htpasswd", ".pypirc", ".config/pip",
            ".pip", "pip.conf", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".vault-token",
            ".boto", ".s3cfg", ".terraformrc", ".terraform.d", ".password-store", ".kaggle", ".huggingface",
            ".cache/huggingface/token", ".cache/huggingface/stored_tokens", ".config/hub", ".modal.toml", ".wandb-key",
            ".local/share/keyrings", "Library/Keychains", ".mozilla", ".config/google-chrome", "id_rsa", "id_dsa",
            "id_ecdsa", "id_ed25519", "id_ecdsa_sk", "id_ed25519_sk", "id_xmss", "ssh_host_rsa_key", "ssh_host_dsa_key",
            "ssh_host_ecdsa_key", "ssh_host_ed25519_key", "authorized_keys", "authorized_keys2", ".env", ".env.*",
            "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh",
        ),
        is_never_workspace=True,
        is_secret=True,
    ),
    ProtectedGroup(
        "shows the memory, variables and open files of a process, keys among them",
        (
            "/proc/self", "/proc/thread-self", "/proc/*/auxv", "/proc/*/cwd", "/proc/*/environ", "/proc/*/exe",
            "/proc/*/fd", "/proc/*/fdinfo", "/proc/*/map_files", "/proc/*/mem", "/proc/*/root", "/proc/*/task",
        ),
        is_never_workspace=True,
        is_secret=True,
    ),
    ProtectedGroup(
        "holds keys or certificates, by which others are trusted",
        ("*.key", "*.pem", "*.p12", "*.pfx", "*.ppk"),
        is_only_as_named=True,
    ),
    ProtectedGroup(
        "steers a coding agent, its permissions or the servers it starts",
        (
            ".panpan", ".config/panpan", ".claude", ".claude.json", ".mcp.json", ".codex", ".gemini", ".opencode",
            ".config/opencode", "opencode.json", "opencode.jsonc", ".crush", ".crush.json", "crush.json", ".kimi",
            ".vibe", ".agents", ".aider.conf.yml", ".continue", ".roo", ".roomodes", ".clinerules", ".cursor",
            ".windsurf", ".kiro", ".qwen", ".goosehints", ".config/goose", ".cursorrules", ".windsurfrules", ".amazonq",
            ".junie", ".trae", ".github/copilot-instructions.md", ".github/instructions",
        ),
    ),
    ProtectedGroup(
        "configures an editor, which can run tasks when a folder or file is opened",
        (
            ".vscode", ".vscode-server", "*.code-workspace", ".vscode-insiders", ".idea", ".zed", ".config/zed",
            ".fleet", ".nova", "*.sublime-project", ".vim", ".vimrc", ".gvimrc", ".exrc", ".nvimrc", ".nvim.lua",
            ".config/nvim", ".emacs", ".emacs.d", ".config/emacs", ".dir-locals.el", ".dir-locals-2.el", ".projectile",
            ".helix", ".luarc.json", ".luarc.jsonc",
        ),
    ),
    ProtectedGroup(
        "is run when a shell or a session starts",
        (
            ".profile", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".zshrc", ".zshenv",
            ".zprofile", ".zlogin", ".zlogout", ".oh-my-zsh", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login",
            ".logout", ".config/fish", ".config/nushell", ".inputrc", ".xprofile", ".xinitrc", ".xsession",
            ".xsessionrc", ".bashrc.d", ".bashrc.local", ".zshrc.d", ".zshrc.local", ".config/zsh", ".pam_environment",
            ".tmux.conf", ".config/tmux", ".screenrc", ".config/environment.d", "/etc/profile", "/etc/profile.d",
            "/etc/environment", "/etc/bash.bashrc", "/etc/bashrc", "/etc/zsh", "/etc/zshrc", "/etc/zshenv",
            "/etc/zprofile", "/etc/ld.so.preload",
        ),
    ),
    ProtectedGroup(
        "is run by other programs without being asked for",
        (
            ".envrc", ".direnv", ".config/direnv", ".autoenv", ".autoenv.zsh", ".mise.toml", "mise.toml",
            ".mise.local.toml", "mise.local.toml", ".mise", ".config/mise", ".tool-versions", "rust-toolchain",
            "rust-toolchain.toml", ".bazelrc", ".bazeliskrc", ".bazelversion", ".mvn", "gradle/wrapper",
            ".gradle/init.gradle", "flake.nix", "shell.nix", ".jvmopts", ".sbtopts", "bunfig.toml", ".bunfig.toml",
            ".bundle/config", ".husky", ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.yml",
            ".lefthook.yml", ".lintstagedrc", ".lintstagedrc.js", ".lintstagedrc.cjs", ".lintstagedrc.mjs",
            ".lintstagedrc.ts", ".lintstagedrc.json", ".lintstagedrc.yaml", ".lintstagedrc.yml",
            "lint-staged.config.js", "lint-staged.config.cjs", "lint-staged.config.mjs", "lint-staged.config.ts",
            ".overcommit.yml", ".github/workflows", ".github/actions", ".gitlab-ci.yml", ".circleci", "Jenkinsfile",
            ".travis.yml", "azure-pipelines.yml", "azure-pipelines.yaml", "bitbucket-pipelines.yml", "appveyor.yml",
            ".appveyor.yml", ".drone.yml", ".drone.star", ".drone.jsonnet", ".woodpecker", ".woodpecker.yml",
            ".woodpecker.yaml", ".cirrus.yml", ".cirrus.star", ".buildkite", ".forgejo/workflows", ".forgejo/actions",
            ".gitea/workflows", ".gitea/actions", ".semaphore", ".teamcity", ".builds", ".build.yml", "buildspec.yml",
            "cloudbuild.yaml", "cloudbuild.yml", ".gitpod.yml", ".gitpod.Dockerfile", ".devcontainer",
            ".devcontainer.json", ".config/autostart", ".config/systemd", "Library/LaunchAgents",
            "Library/LaunchDaemons", ".local/bin", ".cargo/config", ".cargo/config.toml", ".pnpmfile.cjs", ".ripgreprc",
            ".gdbinit", ".lldbinit", ".pdbrc", ".pythonrc", ".pythonrc.py", "sitecustomize.py", "usercustomize.py",
            ".ipython", ".jupyter", ".Rprofile", ".Renviron", ".julia/config", ".hg/hgrc", ".hgrc", ".jj", ".svn",
            ".irbrc", ".pryrc", ".ghci", ".ocamlinit", ".iex.exs", ".octaverc", ".pnpmfile.mjs", ".psqlrc", ".sqliterc",
            "/etc/crontab", "/etc/cron.*", "/etc/systemd", "/var/spool/cron",
        ),
    ),
    ProtectedGroup(
        "is run whenever Python or yarn starts",
        # Only there .pth belongs to Python: elsewhere it is often a trained network.
        (
            "site-packages/*.pth", "dist-packages/*.pth", ".yarn/plugins", ".yarn/releases", ".pnp.cjs",
            ".pnp.loader.mjs",
        ),
        is_only_as_named=True,
    ),
)  # fmt: skip
"""All that is protected, with the reason for each group."""

_PROCESSES = next(group for group in PROTECTED_GROUPS if "/proc/self" in group.names)
"""The group whose names all count for panpan's own process."""
_NAMES_OF_PROCESSES = frozenset(name.rpartition("/")[2] for name in _PROCESSES.names if "*" in name)
_OF_EVERY_PROCESS = "oom_score_adj"
"""File in the folder of each process and of each of its threads, and hardly anywhere else."""
_TEMPLATES = frozenset({".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults"})
"""Names that look like credentials and are made to be shared."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    parts: tuple[str, ...]
    is_anchored: bool
    """True if it is at the root of the file system only; component 0 of an absolute path is the slash."""
    group: ProtectedGroup

    def fits(self, folded: Sequence[str], start: int) -> bool:
        end = start + len(self.parts)
        if end > len(folded) or (self.is_anchored and start != 1):
            return False
        return all(fnmatchcase(part, wanted) for part, wanted in zip(folded[start:end], self.parts, strict=True))


def protections(path: Path) -> Iterator[tuple[ProtectedGroup, Path]]:
    """Yield every group that protects the absolute `path`, with the protected place that it is or lies in."""
    parts = path.parts
    if parts[1:3] == ("proc", str(os.getpid())):
        yield _PROCESSES, Path(*parts[:3])
    elif (place := _place_in_other_proc(path)) is not None:
        yield _PROCESSES, place
    folded = [_fold(part) for part in parts]
    for start, name in enumerate(folded):
        if name in _TEMPLATES:
            continue
        for pattern in _PATTERNS_BY_FIRST.get(name, _WILD_PATTERNS if _IN_ALL_WILD in name else ()):
            if pattern.fits(folded, start):
                yield pattern.group, Path(*parts[: start + len(pattern.parts)])


def _place_in_other_proc(path: Path) -> Path | None:
    """Return the protected place of a process in another mount of /proc, such as that of a host; None elsewhere."""
    for place in (path, path.parent):
        if place.name in _NAMES_OF_PROCESSES and os.path.lexists(place.with_name(_OF_EVERY_PROCESS)):
            return place
    return None


def holds_secrets(path: Path) -> bool:
    """True if the absolute `path` is, or lies in, a place for credentials."""
    return any(group.is_secret for group, _ in protections(path))


def may_name_secrets(name: str) -> bool:
    """True if a file or folder of this name may be a place for credentials; quick, and no for most."""
    return _SECRET_LAST_NAMES.may_have(_fold(name))


def may_be_protected(name: str) -> bool:
    """True if a file or folder of this name may be protected; quick, and no for most."""
    return _LAST_NAMES.may_have(_fold(name))


def plain_names() -> Iterator[tuple[str, ProtectedGroup]]:
    """Yield the names that hold no wildcard and may be in any folder, each with its group."""
    for group in PROTECTED_GROUPS:
        for name in group.names:
            if not name.startswith("/") and "*" not in name:
                yield name, group


def _fold(name: str) -> str:
    """Return the form in which names are compared.

    HFS+ ignores invisible characters, NTFS trailing dots and blanks and what follows a colon (git's CVE-2014-9390 and
    CVE-2019-1352 tell what came of that).
    """
    if not name.isascii():
        name = "".join(char for char in unicodedata.normalize("NFKC", name) if unicodedata.category(char) != "Cf")
    return name.casefold().partition(":")[0].rstrip(". ")


class _Names:
    """Folded names, with `*` as a wildcard, of which it is quickly told that another one is not among them."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._names = frozenset(patterns)
        wild = [name for name in self._names if "*" in name]
        self._beginnings = tuple(name.partition("*")[0] for name in wild if not name.startswith("*"))
        self._ends = tuple(name.rpartition("*")[2] for name in wild if name.startswith("*"))

    def may_have(self, folded: str) -> bool:
        return folded in self._names or folded.startswith(self._beginnings) or folded.endswith(self._ends)


def _by_first(patterns: Sequence[_Pattern], wild: Sequence[_Pattern]) -> dict[str, tuple[_Pattern, ...]]:
    """Return, for each first component that is a plain name, what may fit there: its own patterns and the wild ones."""
    found: dict[str, list[_Pattern]] = {}
    for pattern in patterns:
        found.setdefault(pattern.parts[0], []).append(pattern)
    return {first: (*own, *wild) for first, own in found.items()}


_PATTERNS = tuple(
    _Pattern(tuple(name.casefold().strip("/").split("/")), name.startswith("/"), group)
    for group in PROTECTED_GROUPS
    for name in group.names
)
_WILD_PATTERNS = tuple(pattern for pattern in _PATTERNS if "*" in pattern.parts[0])
_IN_ALL_WILD = "."
"""Every name with a wildcard has it, and most folders do not, which spares them the comparison."""
_PATTERNS_BY_FIRST = _by_first(_PATTERNS, _WILD_PATTERNS)
_LAST_NAMES = _Names(pattern.parts[-1] for pattern in _PATTERNS)
_SECRET_LAST_NAMES = _Names(pattern.parts[-1] for pattern in _PATTERNS if pattern.group.is_secret)
