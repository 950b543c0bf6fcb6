"""Programs: `programs.toml`, the table of those that may run without asking, and guesses about all others.

The rule: a row of the table with a word that is not known here is a fault rather than a row with less in it; the file
is read once, when the first command is judged. Of all other programs nothing here ever says "no": True means that it
does so in its ordinary use, and what is not known is None.
"""

import posixpath
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from functools import cache
from importlib.resources import files
from itertools import islice
from typing import Any, Literal, TypeAlias

from panpan.shell_analysis.facts import Effect, Kind, Word
from panpan.shell_analysis.languages import JQ_PROGRAM, PRINTF_FORMAT, SED_SCRIPT
from panpan.shell_analysis.runners import program_name
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

Operands: TypeAlias = Literal["none", "text", "paths", "pattern, paths", "revisions"]


ANYTHING = ".*"
"""Pattern for the value of a flag that may be anything (kind `any`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Arguments that a program, or one of its subcommands, may be given; `programs.toml` explains the fields."""

    reason: str
    source: str
    operands: Operands
    match: tuple[str, ...]
    no_match: tuple[str, ...]
    also: tuple[str, ...] = ()
    count: tuple[int, ...] = (0, 1_000_000)
    operand: str = ".*"
    short: str = ""
    long: frozenset[str] = frozenset()
    values: Mapping[str, str] = field(default_factory=dict)
    """Regular expressions; the names of [kinds] are resolved."""
    values_apart: bool = False
    number_flag: bool = False
    pattern_flags: tuple[str, ...] = ()
    operands_with: tuple[str, ...] = ()
    file_flags: tuple[str, ...] = ()
    tries: tuple[str, ...] = ()
    exactly: tuple[str, ...] = ()
    here: bool = False
    searches: bool | tuple[str, ...] = False
    lists_with: tuple[str, ...] = ()
    names: Literal["", "grep", "rg"] = ""
    follows_links: bool = False
    opens_nothing: bool = False
    glob_flags: bool = False
    language: Literal["", "conditional", "echo", "find", "printf", "tar", "test"] = ""
    expression: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    git: bool = False
    folder_flag: str = ""
    environment: Mapping[str, str | None] = field(default_factory=dict)
    not_bare: bool = False
    sub: "Mapping[str, Row]" = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Table:
    """The whole file."""

    programs: Mapping[str, Row]
    """Rows by the names of their programs; a program with several names is there under each."""
    never: Mapping[str, str]
    """Programs that are never harmless, and why."""


@cache
def load_table() -> Table:
    """Return the table that is shipped."""
    return read_table(files(__package__).joinpath("programs.toml").read_text(encoding="utf-8"))


def read_table(text: str) -> Table:
    """Return the table that `text` holds.

    Raises:
        ValueError: The text is not TOML, or says something that no row may say.
    """
    data = tomllib.loads(text)
    kinds = data.get("kinds", {}) | {
        "jq-program": JQ_PROGRAM,
        "printf-format": PRINTF_FORMAT,
        "sed-script": SED_SCRIPT,
    }
    reader = _RowReader(kinds, data.get("options", {}))
    return Table(reader.rows(data["programs"]), data.get("never", {}))


class _RowReader:
    """Makes rows of what the file says."""

    def __init__(self, kinds: Mapping[str, str], options: Mapping[str, Mapping[str, Any]]) -> None:
        self._kinds = kinds
        self._options = options

    def rows(self, tables: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Row]:
        rows: dict[str, Row] = {}
        for name, table in tables.items():
            row = self._row(name, table)
            for known_as in (name, *row.also):
                if known_as in rows:
                    raise ValueError(f"{known_as} has two rows")
                rows[known_as] = row
        return rows

    def _row(self, name: str, table: Mapping[str, Any]) -> Row:
        data = dict(table)
        lists = [data, *(self._options[option] for option in data.pop("options", []))]
        flags = {
            "short": "".join(one.get("short", "") for one in lists),
            "long": frozenset(word for one in lists for word in one.get("long", "").split()),
            "values": {flag: self._regex(value) for one in lists for flag, value in one.get("values", {}).items()},
            "environment": data.pop("set", {}) | dict.fromkeys(data.pop("unset", [])),
            "operand": self._regex(data.get("operand", ".*")),
            "expression": {
                word: tuple(map(self._regex, following)) for word, following in data.get("expression", {}).items()
            },
            "sub": self.rows(data.get("sub", {})),
        }
        plain = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
        row: dict[str, Any] = plain | flags
        if unknown := row.keys() - {field.name for field in fields(Row)}:
            raise ValueError(f"the row {name} says {', '.join(sorted(unknown))}, which means nothing")
        return Row(**row)

    def _regex(self, kind: str) -> str:
        return self._kinds.get(kind, kind)


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
"""Programs that run code, beside those that are never harmless. Compilers and archivers run helpers that arguments
name."""


def kind_of(name: str, arguments: Sequence[str]) -> Kind:
    """Return what is known of a program when it is given these words."""
    base = "pip" if name.startswith("pip3") else "python" if name.startswith("python") else name
    operands = [word for word in arguments if not word.startswith("-")]
    if base == "python" and list(arguments[:2]) == ["-m", "pip"]:
        base, operands = "pip", [word for word in arguments[2:] if not word.startswith("-")]
    runs_code = True if base in _RUNS_CODE else None
    fetches = bool(operands) and operands[0] in _FETCHING.get(base, ())
    if base in _NETWORK or fetches:
        return Kind(runs_code, uses_network=True, why="uses the network")
    return Kind(runs_code, uses_network=None, why="runs code" if runs_code else "")


GIT_NETWORK = frozenset({"archive", "clone", "fetch", "ls-remote", "pull", "push", "remote", "send-email", "svn"})
GIT_LOCAL = frozenset({
    "add", "am", "apply", "bisect", "branch", "checkout", "cherry-pick", "clean", "commit", "config", "fetch", "gc",
    "init", "merge", "mv", "notes", "pull", "push", "rebase", "reflog", "remote", "repack", "replace", "reset",
    "restore", "revert", "rm", "stash", "switch", "symbolic-ref", "tag", "update-index", "update-ref",
})  # fmt: skip
"""Forms that write nowhere but in the tree and its repository; others, such as `clone` and `worktree`, may."""


@dataclass(frozen=True, slots=True)
class GitForm:
    """Effect of a form of git that does more than ask."""

    form: str
    """The subcommand; empty if there is none."""
    folder: str
    is_known: bool
    """True if it writes only below the folder."""
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


_SEARCHERS = frozenset({"ack", "ag", "ast-grep", "pt", "rga", "ripgrep", "semgrep", "sift", "ucg", "ug"})
"""Programs that search the folder in which they run where they are given no other; beside those called `…grep`."""
_PROJECT_TOOLS = frozenset({
    ".", "R", "Rscript", "ant", "autopep8", "bandit", "basedpyright", "bash", "bazel", "biome", "black", "bun",
    "bundle", "c++", "cargo", "cc", "clang", "clang++", "clang-format", "clang-tidy", "cmake", "codespell", "composer",
    "conda", "coverage", "ctest", "dart", "dash", "deno", "deptry", "docformatter", "docker", "docker-compose",
    "dotnet", "elixir", "eslint", "fish", "flake8", "flit", "flutter", "g++", "gcc", "gem", "ghc", "go", "gofmt",
    "goimports", "golangci-lint", "gradle", "hatch", "hypothesis", "isort", "jest", "julia", "jupyter", "just", "ksh",
    "lint-imports", "lua", "make", "mamba", "maturin", "meson", "micromamba", "mix", "mkdocs", "mocha", "mvn", "mypy",
    "next", "ninja", "node", "nodejs", "nox", "npm", "npx", "nx", "oxlint", "pdm", "perl", "php", "phpunit", "pip",
    "pipenv", "pipx", "pixi", "pnpm", "podman", "poetry", "pre-commit", "prettier", "pycodestyle", "pydocstyle",
    "pyflakes", "pylint", "pyrefly", "pyright", "pytest", "python", "pyupgrade", "radon", "rake", "rollup", "rspec",
    "rubocop", "ruby", "ruff", "rustc", "rustfmt", "sbt", "scons", "sh", "shellcheck", "shfmt", "source",
    "sphinx-build", "stack", "stylelint", "swift", "terraform", "tox", "ts-node", "tsc", "tsx", "turbo", "twine", "ty",
    "uv", "uvx", "vite", "vitest", "vulture", "webpack", "xcodebuild", "yamllint", "yarn", "zig", "zsh",
})  # fmt: skip
"""Programs that go through a project for their own ends, as its builders, checkers and tests do, and interpreters."""
_SPARES_FOLDERS = frozenset({
    "alias", "cd", "curl", "declare", "dirs", "export", "fuser", "gunzip", "local", "lsof", "mount", "popd", "pushd",
    "readonly", "set", "trap", "typeset", "umount", "unset", "unxz", "unzip", "wget", "yq",
})  # fmt: skip
"""Programs that look at no file in a folder, or that fill it."""
_INTO_LAST = frozenset({"aws", "gcloud", "gsutil", "rclone", "rsync", "scp"})
"""Programs that copy all other words into the last one."""
_FETCHERS = frozenset({"gh", "hf", "huggingface-cli", "kaggle", "modelscope"})
_COPIERS = frozenset({"cp", "install", "link", "ln", "mv"})
_LOCAL_RUNNERS = frozenset({"npm", "npx", "pnpm", "uvx", "yarn"})
"""Programs that use the network and run what they are given here."""
_MOST_GLOBAL_WORDS = 20
"""Most words between `git` and its subcommand that are looked at."""
_UNPACKS = compile_late(r"--(?:extract|get|list)|-?[A-Zabd-qs-tv-z]*[tx][A-Zabd-qs-tv-z]*")
_VERSION = compile_late(r"[\d.]*$")


_GIT_SHOWS_NOTHING = (GIT_LOCAL | GIT_NETWORK | {
    "", "annex", "bugreport", "commit-graph", "commit-tree", "credential", "fsck", "hash-object", "help", "hook", "lfs",
    "maintenance", "mergetool", "mktree", "pack-refs", "prune", "read-tree", "rerere", "sparse-checkout",
    "submodule", "update-server-info", "version", "write-tree",
}) - {"archive"}  # fmt: skip
"""Forms that print no content of files, beside the rows of the table that say so."""
_GIT_SHOWS = frozenset({"archive", "bundle", "diff-files", "diff-index", "fast-export", "format-patch", "whatchanged"})
"""Forms that have no row in the table and do print it, as far as other programs are given them to run."""


def is_searcher(name: str) -> bool:
    """True if a program searches the folder in which it runs, or may with flags that the table does not have."""
    row = load_table().programs.get(name)
    return bool(row.names) if row is not None else name in _SEARCHERS or name.endswith("grep")


def may_show(words: Sequence[Word], at: int) -> bool:
    """True if the words from one on may be a search: a program that shows what lies in folders, and what it is given.

    Args:
        words: Of a command.
        at: The place of the program among them, from 0.
    """
    name = program_name(words[at])
    row = load_table().programs.get(name)
    if at + 1 == len(words) or row is None:
        return at + 1 < len(words) and is_searcher(name)
    forms = (word.text or "" for word in islice(words, at + 1, at + _MOST_GLOBAL_WORDS)) if row.git else ()
    return bool(row.searches) or any(form in _GIT_SHOWS or _form_searches(row, form) for form in forms)


def _form_searches(row: Row, form: str) -> bool:
    return form in row.sub and bool(row.sub[form].searches)


def git_may_show(form: str, texts: Sequence[str]) -> bool:
    """True if git may show or copy what the repository holds.

    Args:
        form: The subcommand.
        texts: All words.
    """
    row = load_table().programs["git"]
    if form not in row.sub:
        return form not in _GIT_SHOWS_NOTHING
    found = row.sub[form]
    copies = form == "worktree" and "add" in texts
    return copies or bool(found.searches) or any(_form_searches(found, text) for text in texts)


def may_run_words(effect: Effect) -> bool:
    """True if a program that is not known may run the words that it is given, in the folder in which it runs."""
    row = load_table().programs.get(effect.program or "")
    is_elsewhere = effect.uses_network and effect.program not in _LOCAL_RUNNERS
    return not is_elsewhere and not (row is not None and row.opens_nothing)


def words_read_recursively(name: str, words: Sequence[Word]) -> tuple[Word, ...]:
    """Return the words of which a program that does more than look may hand on all that lies in them.

    Args:
        name: The program, by its name or path.
        words: What it is given.
    """
    base = name.rpartition("/")[2]
    texts = [word.text or "" for word in words]
    row = load_table().programs.get(base)
    if base == "tar" and any(map(_UNPACKS.fullmatch, texts[:1])):
        return ()
    if base != "tar" and row is not None and not row.searches:
        return ()
    is_of_project = name != base and not name.startswith("/")
    if is_of_project or base in _SPARES_FOLDERS or _VERSION.sub("", base) in _PROJECT_TOOLS:
        return ()
    if base in _FETCHERS and "download" in texts:
        return ()
    return tuple(words[:-1] if base in _INTO_LAST else words)


def copied_words(name: str, read: Sequence[Word]) -> tuple[Word, ...]:
    """Return those words that a program whose writing is known reads and hands on with all that lies in them."""
    return tuple(read) if name in _COPIERS else ()
