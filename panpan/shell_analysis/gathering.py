"""Programs that may show, copy or pack all that lies in a folder: searchers, archivers, copiers, and those unknown.

The rule: a program that is given a folder may do so, unless it stands in the table with no searches, or below.
"""

import re
from collections.abc import Sequence
from itertools import islice

from panpan.shell_analysis.facts import Effect, Word
from panpan.shell_analysis.other_programs import GIT_LOCAL, GIT_NETWORK
from panpan.shell_analysis.runners import program_name
from panpan.shell_analysis.table import Row, load_table

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
"""Of git before the subcommand, at most."""
_UNPACKS = re.compile(r"--(?:extract|get|list)|-?[A-Zabd-qs-tv-z]*[tx][A-Zabd-qs-tv-z]*")
_VERSION = re.compile(r"[\d.]*$")


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


def gathered(name: str, words: Sequence[Word]) -> tuple[Word, ...]:
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


def gathered_by_writer(name: str, read: Sequence[Word]) -> tuple[Word, ...]:
    """Return those words that a program whose writing is known reads and hands on with all that lies in them."""
    return tuple(read) if name in _COPIERS else ()
