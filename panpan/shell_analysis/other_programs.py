"""What is known of programs that never run unasked: whether they run code, and whether they use the network.

The rule: True means that it does so in its ordinary use; what is not known is None. Nothing here ever says "no".
"""

import posixpath
from collections.abc import Mapping, Sequence

from panpan.types.dataclass import dataclass

_NETWORK = frozenset({
    "apk", "apt", "apt-get", "aria2c", "aws", "az", "brew", "curl", "dig", "dnf", "ftp", "gcloud", "gh", "glab",
    "host", "huggingface-cli", "kubectl", "mosh", "nc", "ncat", "netcat", "nix-env", "nix-shell", "npx",
    "nslookup", "pacman", "ping", "rclone", "rsync", "scp", "sftp", "snap", "ssh", "telnet", "traceroute",
    "uvx", "wget", "whois", "yum", "zypper",
})  # fmt: skip
_FETCHING: Mapping[str, frozenset[str]] = {
    "bundle": frozenset({"install", "update"}),
    "cargo": frozenset({"add", "fetch", "install", "publish", "search", "update"}),
    "conda": frozenset({"create", "install", "search", "update"}),
    "docker": frozenset({"login", "pull", "push", "search"}),
    "gem": frozenset({"install", "push", "update"}),
    "go": frozenset({"get", "install", "mod"}),
    "mamba": frozenset({"create", "install", "update"}),
    "npm": frozenset({"add", "audit", "ci", "exec", "i", "init", "install", "publish", "update", "view"}),
    "pip": frozenset({"download", "index", "install", "wheel"}),
    "pipx": frozenset({"install", "run", "upgrade"}),
    "pnpm": frozenset({"add", "dlx", "i", "install", "update"}),
    "podman": frozenset({"login", "pull", "push", "search"}),
    "poetry": frozenset({"add", "install", "lock", "publish", "update"}),
    "uv": frozenset({"add", "lock", "pip", "publish", "sync", "tool"}),
    "yarn": frozenset({"add", "dlx", "install", "up"}),
}
"""Subcommands that fetch or send."""
_RUNS_CODE = frozenset({
    "bash", "conda", "docker", "gem", "go", "mamba", "node", "pip", "pipx", "podman", "python", "python3", "make",
    "cmake", "ninja", "gcc", "g++", "clang", "clang++", "cc", "perl", "sqlite3", "tar",
})  # fmt: skip
"""Beside those that the table says are never harmless; compilers and archivers run helpers that arguments name."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is known of a program."""

    runs_code: bool | None
    uses_network: bool | None
    why: str = ""


def kind_of(name: str, arguments: Sequence[str]) -> Kind:
    """Return what is known of a program when it is given these words."""
    base = "pip" if name.startswith("pip3") else "python" if name.startswith("python") else name
    operands = [word for word in arguments if not word.startswith("-")]
    if base == "python" and list(arguments[:2]) == ["-m", "pip"]:
        base, operands = "pip", [word for word in arguments[2:] if not word.startswith("-")]
    runs_code = True if base in _RUNS_CODE else None
    fetches = bool(operands) and operands[0] in _FETCHING.get(base, ())
    if base in _NETWORK or fetches:
        return Kind(runs_code, uses_network=True, why="it uses the network")
    return Kind(runs_code, uses_network=None, why="it runs code that its arguments or files name" if runs_code else "")


GIT_NETWORK = frozenset({"archive", "clone", "fetch", "ls-remote", "pull", "push", "remote", "send-email", "svn"})
GIT_LOCAL = frozenset({
    "add", "am", "apply", "bisect", "branch", "checkout", "cherry-pick", "clean", "commit", "config", "fetch", "gc",
    "init", "merge", "mv", "notes", "pull", "push", "rebase", "reflog", "remote", "repack", "replace", "reset",
    "restore", "revert", "rm", "stash", "switch", "symbolic-ref", "tag", "update-index", "update-ref",
})  # fmt: skip
"""Forms that write nowhere but in the tree and its repository; others, such as `clone` and `worktree`, may."""


@dataclass(frozen=True, slots=True)
class GitForm:
    """What a form of git does that does more than ask."""

    form: str
    """The subcommand; empty where there is none."""
    folder: str
    is_known: bool
    """Whether it writes only below the folder."""
    uses_network: bool | None


def git_does_more(arguments: Sequence[str]) -> GitForm:
    """Return what `git` does with these words."""
    folder, position = ".", 0
    is_known = True
    while position < len(arguments) and arguments[position].startswith("-"):
        if arguments[position] == "-C" and position + 1 < len(arguments):
            folder = posixpath.join(folder, arguments[position + 1]) if folder != "." else arguments[position + 1]
            position += 2
        else:
            is_known = is_known and arguments[position] in ("--no-pager", "-P")
            position += 2 if arguments[position] == "-c" else 1
    name = arguments[position] if position < len(arguments) else ""
    # Options such as --output and --work-tree name other places.
    elsewhere = ("--o", "--work-tree", "--git-dir", "--separate", "--template")
    is_known = is_known and name in GIT_LOCAL and all(arguments)
    return GitForm(
        name,
        folder or ".",
        is_known and not any(word.startswith(elsewhere) for word in arguments),
        True if name in GIT_NETWORK else None,
    )
