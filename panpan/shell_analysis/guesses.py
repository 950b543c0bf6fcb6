"""Guesses about a command line: that it only looks, that it changes `.git`, that it needs the network.

The rule: a guess chooses what to ask, or the box to run in first. The box holds whatever the guess was, so a wrong one
costs a failed command or a question, and never a file.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile, pairwise
from pathlib import PurePosixPath

from panpan.shell_analysis.facts import Effect, LineFacts, SimpleCommand, Word
from panpan.types.pattern import compile_late

_MANAGERS = compile_late(
    r"(?:pip[\d.]*|pipx|uv|uvx|poetry|pdm|conda|mamba|micromamba|pixi|npm|npx|pnpm|yarn|cargo)", re.ASCII
)
"""Programs that fetch from the hosts of `package-indexes`."""
_PYTHON = compile_late(r"python[\d.]*", re.ASCII)
_FETCHING = frozenset({
    "install", "i", "ci", "add", "update", "upgrade", "download", "wheel", "sync", "lock", "create", "fetch",
})  # fmt: skip
"""Operations of package managers that need the network, as far as nothing is cached."""
_CHANGING_GIT = frozenset({
    "add", "am", "branch", "checkout", "cherry-pick", "commit", "config", "fetch", "gc", "init", "merge", "mv", "notes",
    "pull", "push", "rebase", "remote", "reset", "restore", "revert", "rm", "stash", "submodule", "switch", "tag",
    "worktree",
})  # fmt: skip
"""Operations of git that write in `.git`, but for their forms that only look."""

_SYSTEM_FOLDERS = frozenset({"/bin", "/usr/bin", "/usr/local/bin"})
_ALSO_LOOKING = frozenset({
    ":", "[", "alias", "awk", "bc", "break", "cal", "cd", "continue", "dc", "declare", "expand", "export", "factor",
    "false", "findmnt", "gawk", "getconf", "iostat", "join", "jobs", "last", "let", "local", "look", "lsblk", "lsmod",
    "lsof", "mapfile", "mawk", "nawk", "nm", "numfmt", "nvidia-smi", "objdump", "pr", "read", "readarray", "readelf",
    "readonly", "return", "rocm-smi", "set", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "shift",
    "shopt", "shuf", "sw_vers", "tsort", "typeset", "ulimit", "umask", "unexpand", "unset", "vmstat", "w", "wait",
    "who", "xmllint", "yq",
})  # fmt: skip
"""Programs and words of the shell that mostly look, or only concern the shell, beside those of the table."""
_CHANGING_RIGHTS = frozenset({"doas", "nohup", "setsid", "sudo"})
_MAKING = frozenset({
    "bzip2", "command", "env", "gcc", "go", "gzip", "node", "python", "tar", "tee", "unzip", "uv", "xz",
})  # fmt: skip
"""Programs of the table that mostly do more than to look, so that only what the table knows of them counts."""
_ACTING_WORDS: Mapping[str, re.Pattern[str]] = {
    "find": compile_late(r"-(?:delete|exec(?:dir)?|ok(?:dir)?|fprint.*|fls)"),
    "fd": compile_late(r"-[xX].*|--exec.*"),
    "sed": compile_late(r"-[a-zA-Z]*i.*|--in-place.*"),
    "sort": compile_late(r"-o.*|--output.*"),
    "yq": compile_late(r"-i|--inplace"),
}
"""Words with which such a program does more."""
_QUERIES = (
    "cargo metadata", "cargo tree", "conda env list", "conda info", "conda list", "go env", "go list", "make --dry-run",
    "make -n", "npm list", "npm ls", "pip check", "pip freeze", "pip list", "pip show", "pytest --co",
    "pytest --collect-only", "uv pip list", "uv pip show", "uv tree",
)  # fmt: skip
"""Beginnings of lines that ask a tool of the project for something."""
_AROUND = ("python -m ", "python3 -m ")


def seems_read_only(facts: LineFacts) -> bool:
    """True if all that is in a line are looks, as far as one can guess, although some of it cannot be followed."""
    oddities = facts.line.oddities
    if facts.line.runs_unknown_input or any(
        "parsed" in odd or "background" in odd or "function" in odd for odd in oddities
    ):
        return False
    return bool(facts.effects) and all(map(_looks, facts.effects))


def _looks(effect: Effect) -> bool:
    command = effect.command
    if effect.is_read_only:
        return True
    if any(redirect.is_write for redirect in command.redirects):
        return False
    return not command.words or _look_in(command.words)


def _look_in(told: Sequence[Word]) -> bool:
    from panpan.shell_analysis.programs import load_table  # not needed before the first command
    from panpan.shell_analysis.runners import unwrap

    words = [word.text or "" for word in told]
    name = words[0]
    if (wrapped := unwrap(name, told[1:])) and name not in _CHANGING_RIGHTS:
        return bool(wrapped.words) and _look_in(wrapped.words)
    if "/" in name:
        folder, _, name = name.rpartition("/")
        if folder not in _SYSTEM_FOLDERS:
            return False
    line = f"{' '.join([name, *words[1:]])} "
    for around in _AROUND:
        line = line.removeprefix(around)
    if any(line.startswith(f"{query} ") for query in _QUERIES):
        return True
    if name == "git":
        return _git_operation([name, *words[1:]]) in load_table().programs["git"].sub.keys() - _CHANGING_GIT
    if (acting := _ACTING_WORDS.get(name)) and any(acting.fullmatch(word) for word in words[1:]):
        return False
    row = load_table().programs.get(name)
    has_only_version = row is not None and row.not_bare and not row.sub
    return name in _ALSO_LOOKING or (row is not None and not has_only_version and name not in _MAKING)


def changes_git(facts: LineFacts, is_own: Callable[[str], bool] = lambda _: False) -> bool:
    """True if a line is known to write in a `.git` that the sandbox keeps as it is.

    Args:
        facts: What is known of the line.
        is_own: Whether it does not keep that of a folder, a path from where the line begins.
    """
    acting = (effect.command for effect in facts.effects if not effect.is_read_only)
    changing = [command for command in acting if _git_operation(command.known_texts) in _CHANGING_GIT]
    return any(not all(map(is_own, _git_folders(command))) for command in changing)


def _git_folders(command: SimpleCommand) -> Sequence[str]:
    """Return the folders in which a git command may work; the root where they are not known."""
    words = command.known_texts
    within = [value for flag, value in pairwise(words) if flag == "-C"]
    is_elsewhere = any(word.startswith(("--git-dir", "--work-tree")) for word in words) or len(within) > 1
    if is_elsewhere or not command.directories or "" in within:
        return ("/",)
    return [str(PurePosixPath(folder, *within)) for folder in command.directories]


def fetches(facts: LineFacts) -> bool:
    """True if a line is known to need the network."""
    return any(
        not _FETCHING.isdisjoint(effect.command.known_texts) if is_manager(effect.command) else effect.uses_network
        for effect in facts.effects
    )


def is_manager(command: SimpleCommand) -> bool:
    """True if a command runs a package manager."""
    return _MANAGERS.fullmatch(program_of(command)) is not None


def program_of(command: SimpleCommand) -> str:
    """Return the name of the program, or of the module that Python is to run."""
    words = command.known_texts
    program = PurePosixPath(words[0]).name if words else ""
    is_module = _PYTHON.fullmatch(program) is not None and words[1:2] == ["-m"]
    return "".join(words[2:3]) if is_module else program


def _git_operation(words: Sequence[str]) -> str:
    """Return the operation of a git command; empty for another command."""
    if words[:1] != ["git"]:
        return ""
    rest = list(words[1:])
    while rest[:1] in (["-C"], ["-c"]):
        rest = rest[2:]
    return next(dropwhile(lambda word: word.startswith("-"), rest), "")
