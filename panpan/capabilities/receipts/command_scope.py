"""Scope of a command: all tests or some, and if its exit code says that it succeeded.

The rule: words of a command only ever narrow down what it shows. That it ran tests, its report says.
"""

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from panpan.receipts.receipt import Receipt
from panpan.types.pattern import compile_late

Scope: TypeAlias = Literal["all", "paths", "part"]
"""Tests that a command selects: all; those in paths that it names; some, or nobody can say."""

Words: TypeAlias = tuple[str, ...]

_BESIDE = frozenset({
    "cd", "echo", "printf", "true", ":", "pwd", "ls", "set", "sleep", "date", "which", "cat", "head", "tail", "tee",
    "grep", "rg", "sed", "awk", "sort", "uniq", "wc", "cut", "tr", "mkdir", "touch", "less", "exit", "test", "[",
})  # fmt: skip
"""Programs that select no tests."""
_FILE_TOOLS = _BESIDE | {
    "cp", "mv", "rm", "ln", "rsync", "tar", "unzip", "zip", "gunzip", "curl", "wget", "dd", "install", "patch", "git",
    "base64", "xxd", "iconv", "envsubst",
}  # fmt: skip
"""Programs that run no tests, so that a report that they write is none of a run."""
_INTERPRETERS = compile_late(r"(?:python|pypy)[\d.]*t?|perl|node|ruby|php|bash|sh|zsh|dash")
_PREPARING: Mapping[str, frozenset[str]] = {
    "git": frozenset({"status", "diff", "log", "show", "rev-parse", "branch", "ls-files", "add"}),
    "uv": frozenset({"sync", "pip", "venv", "lock", "add"}),
    "pip": frozenset({"install", "list", "show", "freeze"}),
    "npm": frozenset({"install", "ci"}),
    "poetry": frozenset({"install", "lock"}),
    "conda": frozenset({"activate", "install", "list"}),
    "cargo": frozenset({"build", "check", "fmt", "clippy"}),
    "cmake": frozenset({"--build", "-S", "-B"}),
    "ruff": frozenset({"check", "format"}),
}
"""First words of programs with which they run no tests, and leave the files that are tested as they are or are seen to
change them."""

_PYTEST_FLAGS = compile_late(
    r"-[qvsxl]+|-r\w+|-n\w+|--(?:verbose|quiet|exitfirst|showlocals|no-header|no-summary|strict\S*|disable-warnings|"
    r"cache-clear|force-short-summary|full-trace|cov(?:-\S+)?|no-cov|no-showlocals|no-fold-skipped|"
    r"ff|failed-first|nf|new-first|"
    r"(?:tb|color|capture|durations|durations-min|maxfail|junit-?xml|timeout|timeout-method|cov|cov-report|numprocesses|dist|"
    r"log-\S+|show-capture|import-mode|verbosity|randomly-seed|random-order-seed|reruns|asyncio-mode|assert|code-highlight|"
    r"basetemp|cov-config|cov-fail-under)=.*)"
)
_PYTEST_VALUES = frozenset({
    "-n", "-p", "-W", "--tb", "--color", "--durations", "--maxfail", "--dist", "--junitxml", "--timeout", "--verbosity",
    "--cov-report", "--show-capture", "--capture", "--log-level", "--log-cli-level", "--reruns", "--basetemp",
})  # fmt: skip
_KNOWN_PLUGINS = compile_late(r"no:\S+|xdist(?:\.plugin)?|pytester|pytest_\w+(?:\.plugin)?")
"""Plugins that select no tests; another one may."""
_FLAGS: Mapping[str, str] = {
    "cargo": r"--(?:workspace|all|all-features|all-targets|release|quiet|no-fail-fast|locked|offline|verbose)|-[qv]+|"
    r"-r|-j\d*",
    "go": r"-(?:v|race|json|cover|count=\d+|timeout=\S+|shuffle=\S+|vet=\S+)",
    "jest": r"--(?:ci|coverage|verbose|silent|runInBand|no-color|colors|reporters=\S+|maxWorkers=\S+)|-i",
    "make": r"-j\d*|-[sBk]+|--(?:silent|always-make|no-print-directory|keep-going)",
    "tox": r"-[qvrp]+|--(?:recreate|parallel)",
    "ctest": r"--output-on-failure|-V+|-j\d*|--verbose|--no-tests=error|--output-junit=\S+",
    "mvn": r"-[qBVo]+|--(?:quiet|batch-mode|offline|no-transfer-progress)|-ntp",
    "gradle": r"--(?:quiet|no-daemon|offline|info|console=\S+|rerun-tasks)|-[qi]+",
}
_TARGETS: Mapping[str, frozenset[Words]] = {
    "cargo": frozenset({("test",), ("nextest", "run")}),
    "go": frozenset({("test", "./...")}),
    "npm": frozenset({("test",), ("t",), ("run", "test")}),
    "yarn": frozenset({("test",), ("run", "test")}),
    "pnpm": frozenset({("test",), ("run", "test")}),
    "bun": frozenset({("test",), ("run", "test")}),
    "jest": frozenset({()}),
    "vitest": frozenset({(), ("run",)}),
    "make": frozenset({("test",), ("tests",), ("check",)}),
    "just": frozenset({("test",), ("tests",), ("check",)}),
    "tox": frozenset({(), ("run",)}),
    "nox": frozenset({()}),
    "ctest": frozenset({()}),
    "mvn": frozenset({("test",), ("verify",)}),
    "gradle": frozenset({("test",), ("check",)}),
}
"""Words of a program that stand for all tests, flags left out."""
_ALIASES: Mapping[str, str] = {
    "py.test": "pytest", "gmake": "make", "mvnw": "mvn", "gradlew": "gradle", "vitest.mjs": "vitest",
}  # fmt: skip
_LAUNCHERS = frozenset({"uv", "poetry", "pdm", "hatch", "pipenv", "rye", "npx", "pnpx", "bunx", "coverage", "time",
                        "env", "nice", "timeout", "xvfb-run", "nohup", "stdbuf"})  # fmt: skip
_ELSEWHERE = compile_late(r"--(?:directory|project|package|cwd|working-dir|chdir|env-file)\b|-C")
"""Flags of launchers with which the program runs in another place."""
_PYTHON = compile_late(r"(?:python|pypy)[\d.]*t?")
_NARROWS = compile_late(r"PYTEST_ADDOPTS|PYTEST_PLUGINS|PYTEST_DISABLE|TESTARGS|TEST_ARGS|RUSTFLAGS|GOFLAGS")
"""Variables in the line that may select tests."""


def line_of(receipt: Receipt) -> str:
    """Return the command as a person would type it, on one line."""
    argv = receipt.argv
    for number, word in enumerate(argv[:-1]):
        if number and re.fullmatch(r"-\w*c", word):
            return " ".join(argv[number + 1].split())
    return " ".join(" ".join(argv).split())


def key_of(receipt: Receipt) -> tuple[str, str]:
    """Return what two runs of the same command have in common."""
    return receipt.cwd, line_of(receipt)


def exit_code_counts(receipt: Receipt) -> bool:
    """Return True if the exit code is that of the whole line: nothing in it hides the failure of a part."""
    line = re.sub(r"\d?>&\d|&>>?|>&", "", line_of(receipt))
    raw = receipt.argv[-1] if receipt.argv else ""
    return (
        bool(receipt.commands)
        and not re.search(r"[|;!`(){}]|(?<!&)&(?!&)|\b(?:if|for|while|trap)\b", line)
        and ("\n" not in raw.strip())
    )


def scope_of(receipt: Receipt, top: str) -> Scope:
    """Return which tests the words of a command select.

    Args:
        receipt: The command.
        top: The workspace, absolute and canonical.
    """
    if not receipt.commands or _NARROWS.search(line_of(receipt)):
        return "part"
    scopes: list[Scope] = []
    place = posixpath.join(top, receipt.cwd)
    for words in receipt.commands:
        program = _name(words[0]) if words else ""
        if program == "cd":
            place = posixpath.normpath(posixpath.join(place, words[1])) if len(words) == 2 and words[1] else ""
        elif not _is_beside(program, words):
            scope = _of_words(words)
            scopes.append("paths" if scope == "all" and posixpath.normpath(place) != posixpath.normpath(top) else scope)
    if not scopes or "part" in (*scopes, _of_options(receipt.test_options)):
        return "part"
    return "paths" if "paths" in scopes else "all"


def names_test_program(receipt: Receipt) -> bool:
    """Return True if the words name a program for tests, so that a run without a report is one that went wrong."""
    return any(selects_tests(_program_of(words)[0]) and _is_for_tests(words) for words in receipt.commands)


def _is_for_tests(words: Words) -> bool:
    program, rest = _program_of(words)
    return program in ("pytest", "jest", "vitest", "tox", "nox", "ctest") or any(
        word in ("test", "tests", "check", "nextest", "verify") for word in rest
    )


def programs_of(receipt: Receipt) -> frozenset[str]:
    """Return the programs for tests that the words name, behind launchers such as `uv run`."""
    names = (_program_of(words)[0] for words in receipt.commands)
    return frozenset(filter(selects_tests, names))


def selects_tests(program: str) -> bool:
    """Return True if a program is one for tests, or may be one by its words."""
    return program == "pytest" or program in _TARGETS


def _is_beside(program: str, words: Words) -> bool:
    """Return True if a command of the line runs no tests, so that the report is of the others."""
    if program in ("source", "."):  # the environment of a project
        return len(words) == 2 and words[1].endswith("/activate")
    return program in _BESIDE or (words[1:2] != () and words[1] in _PREPARING.get(program, ()))


def may_run_tests(receipt: Receipt) -> bool:
    """Return False if the words can only write a report that looks like one of a run."""
    return not receipt.commands or any(
        _name(words[0]) not in _FILE_TOOLS and not _is_given_code(words) for words in receipt.commands if words
    )


def _is_given_code(words: Words) -> bool:
    """Return True for an interpreter that runs what is written in the line, such as `python -c`."""
    if not _INTERPRETERS.fullmatch(_name(words[0])):
        return False
    return len(words) == 1 or re.fullmatch(r"-\w*[ce]|-|--eval", words[1]) is not None


def test_line_of(receipt: Receipt) -> str:
    """Return the part of the line that runs tests, without launchers and folders; the whole line if it names none."""
    parts = [
        " ".join((program, *rest)) for program, rest in map(_program_of, receipt.commands) if selects_tests(program)
    ]
    return " && ".join(parts) or line_of(receipt)


def node_ids(receipt: Receipt) -> Iterator[str]:
    """Yield the names of single tests that the words select, such as `test_x` of `tests/test_a.py::test_x`."""
    for words in receipt.commands:
        for word in words:
            if "::" in word:
                yield word.rsplit("::", 1)[1].partition("[")[0]


def _of_words(words: Words) -> Scope:
    program, rest = _program_of(words)
    if program == "pytest":
        return _of_pytest(rest)
    if program not in _TARGETS:
        return "part"
    flags = re.compile(_FLAGS.get(program, r"--silent|--quiet"))
    operands = tuple(word for word in rest if not flags.fullmatch(word))
    return "all" if operands in _TARGETS[program] else "part"


def _of_options(options: str) -> Scope:
    try:
        return _of_pytest(shlex.split(options))
    except ValueError:
        return "part"


def _of_pytest(rest: Sequence[str]) -> Scope:
    scope: Scope = "all"
    waiting = list(reversed(rest))
    while waiting:
        word = waiting.pop()
        if word in _PYTEST_VALUES:
            if not waiting or (word == "-p" and not _KNOWN_PLUGINS.fullmatch(waiting[-1])):
                return "part"
            waiting.pop()
        elif _PYTEST_FLAGS.fullmatch(word) or word in (".", "./"):
            continue
        elif not word or word.startswith("-") or "::" in word or "$" in word or "`" in word:
            return "part"
        else:
            scope = "paths"
    return scope


def _program_of(words: Words) -> tuple[str, Words]:
    """Return the program for tests behind launchers such as `uv run` and `python -m`, with its words."""
    name = _name(words[0]) if words else ""
    if name in _LAUNCHERS or _PYTHON.fullmatch(name):
        for number, word in enumerate(words[1:], 1):
            inner = _name(word)
            if (name == "coverage" or _PYTHON.fullmatch(name)) and words[number - 1] != "-m":
                continue
            if _ELSEWHERE.match(word):
                break
            if inner == "pytest" or (inner in _TARGETS and not _PYTHON.fullmatch(name)):
                return inner, words[number + 1 :]
    return name, words[1:]


def _name(word: str) -> str:
    name = posixpath.basename(word)
    return _ALIASES.get(name, name)
