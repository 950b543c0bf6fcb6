"""The rules that "always" may save.

The narrowest one allows the same call again, and nothing else. For the runners of a short list there is also one that
allows any arguments.

The rule: a command is here only where its arguments choose among what the project says, or are data. Whatever runs the
code or the program that its operands name is not, however often it is used: interpreters and shells (python, node,
bash), wrappers (sudo, env, xargs, timeout, npx, uv run), other machines (ssh, docker), `find -exec`, `go test -exec`,
and `git` without its subcommand, since `git -c` can name programs. Where an interpreter or a wrapper is told to run one
of these runners, or a script of the project, the words that say so are part of the prefix, so that nothing else comes
in their place. Still, a flag of a build tool may name a program, as `make --eval` does, and a script runs
whatever it contains by then; so such a rule is only ever the user's own choice, beside the exact line.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from panpan.errors import ConfigError
from panpan.permissions.reach.located import LocatedUse
from panpan.permissions.rules.command_parts import simple_commands
from panpan.permissions.rules.matching import allowing_rules, covering_rule
from panpan.permissions.rules.patterns import plain_host
from panpan.permissions.rules.rules import parse_rule
from panpan.permissions.subject import Subject
from panpan.system.files.globs import gitignore_escaped
from panpan.system.text.terminal_text import escape_invisible
from panpan.types.pattern import compile_late
from panpan.types.permission import exact_pattern

_BUILD = "it builds and checks what the project's manifest says"
_SCRIPT = "it runs a script that the project's manifest names; the rest goes to that"
_LINT = "it reads code, and fixes what it can"

_TESTS = "it runs the project's tests; which of them, the arguments say"

PREFIXES: Mapping[str, str] = {
    "pytest": _TESTS,
    "python -m pytest": _TESTS,
    "python3 -m pytest": _TESTS,
    "python -m unittest": _TESTS,
    "python3 -m unittest": _TESTS,
    "uv run pytest": _TESTS,
    "npm run": _SCRIPT,
    "npm test": _SCRIPT,
    "pnpm run": _SCRIPT,
    "pnpm test": _SCRIPT,
    "yarn run": _SCRIPT,
    "yarn test": _SCRIPT,
    "make": "it makes the targets of the project's makefile that the arguments name",
    "cargo build": _BUILD,
    "cargo check": _BUILD,
    "cargo clippy": _BUILD,
    "cargo test": _BUILD,
    "ruff check": _LINT,
    "ruff format": _LINT,
    "git add": "its arguments are paths of the workspace",
    "git commit": "its arguments are mostly the message",
}
"""The first words of a command, and why any may follow."""
_INTERPRETER = compile_late(r"(?:python[\d.]*|pypy[\d.]*|bash|sh|node|Rscript|julia|ruby|perl)", re.ASCII)
_LAUNCHERS = tuple(tuple(launcher.split()) for launcher in ("uv run", "poetry run", "pdm run"))
_OF_PROJECT = compile_late(r"(?:\./)?[\w.+-]+(?:/[\w.+-]+)*", re.ASCII)
_MOST_WORDS = max(prefix.count(" ") + 1 for prefix in PREFIXES)


def script_of(words: Sequence[str], root: Path) -> str | None:
    """Return the words that run a script or program of the project, where others follow; None if they run none.

    Args:
        words: A simple command.
        root: The workspace, in which the module of `python -m` has to be.
    """
    start = next((len(launcher) for launcher in _LAUNCHERS if tuple(words[: len(launcher)]) == launcher), 0)
    program, *rest = (*words[start:], "")
    if not _INTERPRETER.fullmatch(program.rpartition("/")[2]) or not ("/" not in program or _is_of_project(program)):
        count = start + 1 if _is_of_project(program) and ("/" in program or (start and "." in program)) else 0
    elif rest[:1] == ["-m"]:
        count = start + 3 if _has_module(rest[1], root) else 0
    else:
        count = start + 2 if _is_of_project(rest[0]) and ("." in rest[0] or "/" in rest[0]) else 0
    return " ".join(words[:count]) if 0 < count < len(words) else None


def _is_of_project(word: str) -> bool:
    """Return whether a word is a path below the workspace, as it is written."""
    return _OF_PROJECT.fullmatch(word) is not None and not word.startswith("-") and ".." not in word.split("/")


def _has_module(name: str, root: Path) -> bool:
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts):
        return False
    places = [folder.joinpath(*parts) for folder in (root, root / "src")]
    return any(place.is_dir() or place.with_suffix(".py").is_file() for place in places)


def prefix_of(words: Sequence[str]) -> str | None:
    """Return the first words of a simple command that may be followed by any others, where others follow."""
    beginnings = (" ".join(words[:count]) for count in range(1, min(len(words), _MOST_WORDS + 1)))
    return next((beginning for beginning in beginnings if beginning in PREFIXES), None)


_LONGEST_RULE = 300
"""Characters; a longer one is a program rather than a rule, and nobody would read it before answering "always"."""

_ABOUT = {"Edit": "edits of", "Read": "reading", "WebFetch": "fetching from"}
"""Words for what rules of these names allow."""


def describe_rule(rule: str) -> str:
    """Return what a rule that may be saved allows: `Bash(make *)` as "make …", `Edit(/a.py)` as "edits of a.py"."""
    name, _, rest = rule.partition("(")
    if not rest.endswith(")"):
        return name
    inner = rest.removesuffix(")")
    if name == "Bash":
        return describe_pattern(inner)
    about = _ABOUT.get(name)
    if about is None:
        return rule
    path = inner.removeprefix("domain:").removesuffix("/**")
    return f"{about} {path[1:] if path.startswith('/') else path}"


def describe_pattern(pattern: str) -> str:
    """Return the commands that a pattern means, as in `Bash(…)`: `git commit *` as "git commit …"."""
    if pattern.endswith(" *"):
        return f"{pattern.removesuffix(' *')} …"
    return pattern.replace("\\*", "*").replace("\\\\", "\\")


def narrowest_rule(subject: Subject) -> str | None:
    """Return the rule to offer for `subject`, or None if the call cannot be remembered."""
    text = _candidate(subject)
    if text is None or len(text) > _LONGEST_RULE or not text.isprintable() or escape_invisible(text) != text:
        return None  # the user must see all of a saved rule
    return text if _allows_again(text, subject) else None


def prefix_rule(subject: Subject) -> str | None:
    """Return the rule that allows a known runner, or a script, with any arguments, where it allows `subject`, too."""
    commands = simple_commands(subject.command) if subject.command is not None else None
    found = (prefix_of(words) or script_of(words, subject.root) for words in commands or ())
    prefix = next(filter(None, found), None)
    text = f"Bash({prefix} *)"
    return text if prefix is not None and _allows_again(text, subject) else None


def _candidate(subject: Subject) -> str | None:
    if subject.is_read_only and not all(use.is_open for use in subject.uses):
        return _path_rule(subject)  # reading needs no rule for the tool, only one for the place
    if subject.command is not None and subject.tool == "Bash":
        return f"Bash({exact_pattern(subject.command)})"
    if subject.url is not None:
        host = plain_host(subject.url)
        return host and f"WebFetch(domain:{host})"
    if subject.declared.only_reads_files or subject.declared.only_changes_files:
        return _path_rule(subject)
    if subject.declared.is_for_once or subject.runs:
        return None
    if subject.names:
        return None if "*" in subject.names[0] else f"{subject.tool}({subject.names[0]})"
    return subject.tool


def _path_rule(subject: Subject) -> str | None:
    uses = _uses_to_open(subject)
    paths = {use.path for use in uses}
    tops = [path for path in paths if paths.isdisjoint(path.parents)]
    if len(tops) != 1:
        return None  # one rule could not cover them all
    path = tops[0]
    ending = "/**" if path.is_dir() else ""
    if path != subject.root and path.is_relative_to(subject.root):
        pattern = "/" + gitignore_escaped(path.relative_to(subject.root).as_posix())
    else:
        pattern = "/" + gitignore_escaped(str(path))
    return f"{'Edit' if uses[0].is_write else 'Read'}({pattern}{ending})"


def _uses_to_open(subject: Subject) -> list[LocatedUse]:
    outside = [use for use in subject.uses if not use.is_open]
    return outside or [use for use in subject.uses if use.is_write] or list(subject.uses)


def _allows_again(text: str, subject: Subject) -> bool:
    try:
        rule = parse_rule(text, "the answer")
    except ConfigError:
        return False
    if any(covering_rule([rule], use, subject) is None for use in subject.uses if not use.is_open):
        return False
    return subject.is_read_only or allowing_rules([rule], subject) is not None
