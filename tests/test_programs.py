"""Modules that start programs are few, and only one of them starts git."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import panpan

PACKAGE = Path(panpan.__file__).parent

STARTERS = {
    "system/processes/process.py": "the process runner",
    "system/processes/detached.py": "commands in the background, which hang on nothing of panpan's",
    "system/processes/own_process.py": "the shell that ends what is left when panpan is killed",
    "system/processes/process_table.py": "ps, where there is no /proc; the process runner asks it what to end",
    "system/sandbox/landlock_launcher.py": "becomes the command that the process runner has started",
    "system/sandbox/proxy_launcher.py": "becomes the command that the process runner has started",
    "capabilities/local_model/server.py": "the server of the embedded model, told what to do through its input",
    "system/processes/foreground.py": "editors, pagers and installers of the user, which have the terminal",
    "system/processes/user_browser.py": "the user's browser, which shares nothing with panpan's terminal",
    "cli/daemon/command.py": "starts the daemon, which outlives the command",
    "cli/daemon/server.py": "becomes a copy of itself for each start that it serves",
    "faces/terminal/input/clipboard.py": "programs that print the clipboard into a file, or take what goes there",
}
"""Modules that may start programs, and why."""

NAMES_GIT = {
    "capabilities/receipts/command_scope.py": "knows it by its name in commands that somebody else wrote",
    "system/git/git.py": "the git runner; knows the folder with the user's settings",
    "capabilities/plugins/fetching.py": "fetches repositories with plug-ins, with no hook and no filter",
    "capabilities/plugins/source.py": "knows it as a kind of source",
    "cli/doctor_command.py": "looks whether it is installed, and asks for its version in /",
    "faces/server/opencode/workspace_calls.py": "knows it as a kind of project",
    "integrations/harbor_agent.py": "knows it as a package that a container needs",
    "repro/papers/repository_addresses.py": "knows it as the ending of addresses",
    "permissions/rules/command_parts.py": "knows it by its name in commands that somebody else wrote",
    "permissions/reach/folder_walk.py": "knows the folder with its list of what is left out",
    "permissions/rules/matching.py": "knows it by its name in commands that somebody else wrote",
    "permissions/sandbox_questions.py": "knows it by its name in commands that somebody else wrote",
    "permissions/reach/deletions.py": "knows it by its name in commands that somebody else wrote",
    "system/files/protected.py": "knows the folder with its settings",
    "python_environments/python_manifests.py": "knows it as a key of what somebody else wrote",
    "shell_analysis/programs.py": "knows it by its name in commands that somebody else wrote",
    "shell_analysis/guesses.py": "knows it by its name in commands that somebody else wrote",
    "shell_analysis/judge.py": "knows it by its name in commands that somebody else wrote",
    "shell_analysis/find_exec.py": "knows it by its name in commands that somebody else wrote",
}

_WORDS_OF_STARTERS = re.compile(
    r"subprocess|pty|multiprocessing|open_process|run_process|from os import|"
    r"\bos\s*\.\s*(?:exec|spawn|posix_spawn|popen|system|fork|startfile)"
)
"""Words of a file that may start something; a file without any of them need not be parsed."""
_MODULES = {"subprocess", "pty", "multiprocessing"}
_OF_OS = ("exec", "spawn", "posix_spawn", "popen", "system", "fork", "forkpty", "startfile")
_OF_LOOPS = {"open_process", "create_subprocess_exec", "create_subprocess_shell"}


def starts(tree: ast.AST) -> Iterator[int]:
    """Yield the lines in which a program is started, or what could start one is fetched from elsewhere."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names) if {name.name.partition(".")[0] for name in names} & _MODULES:
                yield node.lineno
            case ast.ImportFrom(module=str(module), names=names):
                imported = {name.name for name in names}
                is_harmless = module == "subprocess" and imported <= {"DEVNULL", "PIPE", "STDOUT"}
                of_os = module == "os" and any(name.startswith(_OF_OS) for name in imported)
                of_loops = imported & _OF_LOOPS or (module in ("anyio", "trio") and "run_process" in imported)
                if (module.partition(".")[0] in _MODULES and not is_harmless) or of_os or of_loops:
                    yield node.lineno
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name.startswith(_OF_OS):
                yield node.lineno
            case ast.Attribute(attr=name) if name in _OF_LOOPS:
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="anyio" | "trio"), attr="run_process"):
                yield node.lineno


def names_git(tree: ast.AST) -> Iterator[int]:
    """Yield the lines in which git is named as a program, alone or at the beginning of a command."""
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if text.strip() and Path(text.split()[0]).name == "git":
                is_sentence = " " in text and not _is_command(text)
                if not is_sentence:
                    yield node.lineno


def _is_command(text: str) -> bool:
    words = text.split()
    return len(words) > 1 and words[1].startswith("-")


def _modules(words: re.Pattern[str]) -> Iterator[tuple[str, ast.AST]]:
    """Yield the modules in which one of some words stands."""
    for path in PACKAGE.rglob("*.py"):
        if words.search(text := path.read_text(encoding="utf-8")):
            yield str(path.relative_to(PACKAGE)), ast.parse(text)


def test_programs_are_started_in_few_places() -> None:
    assert {name for name, tree in _modules(_WORDS_OF_STARTERS) if any(starts(tree))} == STARTERS.keys()


def test_git_is_named_as_a_program_in_few_places() -> None:
    assert {name for name, tree in _modules(re.compile("git")) if any(names_git(tree))} == NAMES_GIT.keys()


@pytest.mark.parametrize(
    "code",
    [
        "import subprocess",
        "import subprocess as s",
        "from subprocess import run",
        "from subprocess import DEVNULL, Popen",
        "import asyncio.subprocess\nasyncio.create_subprocess_exec('x')",
        "import os\nos.execvp('x', [])",
        "os.system('x')",
        "os.posix_spawn('x', [], {})",
        "from os import fork",
        "anyio.open_process(['x'])",
        "from anyio import run_process",
        "await anyio.run_process(['x'])",
        "import pty",
        "import multiprocessing.pool",
    ],
)
def test_rule_about_programs_finds_violations(code: str) -> None:
    assert _WORDS_OF_STARTERS.search(code)
    assert list(starts(ast.parse(code)))


@pytest.mark.parametrize("code", ["from subprocess import DEVNULL", "run_process(argv)", "os.environ", "import anyio"])
def test_rule_about_programs_leaves_the_rest_alone(code: str) -> None:
    assert not list(starts(ast.parse(code)))


@pytest.mark.parametrize("code", ["['git', 'log']", "x = '/usr/bin/git'", "f('git -C x log')"])
def test_rule_about_git_finds_violations(code: str) -> None:
    assert list(names_git(ast.parse(code)))
