"""Language servers that panpan knows, and the program of one: found, and started in a box."""

import os
import shutil
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from panpan.capabilities.language_servers.settings import LanguageServersSettings
from panpan.errors import ToolError
from panpan.system.files.canonical import canonical_path, is_below
from panpan.system.sandbox.command_sandbox import Bounds, CommandSandbox
from panpan.system.sandbox.server_process import ServerProcess, server_process
from panpan.types.dataclass import dataclass

# A server gets no network, no keys, and write access only to a cache folder of the session. Without a working sandbox
# it runs outside of one: only trusted projects have servers.


@asynccontextmanager
async def language_server_process(
    argv: Sequence[str], root: Path, environment: Mapping[str, str], sandbox: CommandSandbox
) -> AsyncGenerator[ServerProcess, None]:
    """Run a language server for the time of the block.

    Raises:
        ToolError: It cannot be started.
        ConfigError: There is no room for temporary files.
    """
    env = await _with_caches(environment, sandbox)
    async with server_process(argv, root, env, sandbox, Bounds(is_read_only=True, roots=(root,))) as process:
        yield process


async def _with_caches(environment: Mapping[str, str], sandbox: CommandSandbox) -> dict[str, str]:
    """Return the environment, with places for what servers keep where they could write nowhere else."""
    if not sandbox.is_on or await sandbox.is_missing():
        return dict(environment)
    caches = sandbox.temporary / "language-servers"
    own = {"XDG_CACHE_HOME": caches, "GOCACHE": caches / "go-build", "CARGO_TARGET_DIR": caches / "cargo"}
    return {**environment, **{name: str(path) for name, path in own.items()}}


# Programs outside of the project come first, since the user installed them. A program inside, such as one in its
# virtual environment, is code of the project. It is started only because the project is trusted.

_FOLDERS_OF_PROJECT = (".venv/bin", "venv/bin", "node_modules/.bin")


def find_program(name: str, env: Mapping[str, str], root: Path) -> str | None:
    """Return the absolute path of a program; None where there is none."""
    if "/" in name:
        return shutil.which(name) if Path(name).is_absolute() else None
    entries = [entry for entry in env.get("PATH", os.defpath).split(os.pathsep) if Path(entry).is_absolute()]
    inside = {entry for entry in entries if _is_in(entry, root)}
    folders = [
        *(entry for entry in entries if entry not in inside),
        *(entry for entry in entries if entry in inside),
        *(str(root / folder) for folder in _FOLDERS_OF_PROJECT),
    ]
    return next((found for folder in folders if (found := shutil.which(name, path=folder))), None)


def _is_in(entry: str, root: Path) -> bool:
    try:
        return is_below(canonical_path(Path(entry)), root)
    except ToolError:  # the path leads nowhere
        return True


@dataclass(frozen=True, slots=True)
class ServerTimeouts:
    """Seconds after which something is given up."""

    start_s: float = 30.0
    answer_s: float = 30.0
    reading_s: float = 20.0
    """Waiting until a server has read the project; after that the question is asked anyway."""
    idle_s: float = 900.0
    """A server that nobody asks anything, for what it holds of memory."""
    silence_s: float = 2.0
    """A server that tells of one text in several pieces, such as syntax first and types then: it says nowhere which was
    the last."""
    first_s: float = 5.0
    """A server that says nothing of a text, but has told of one before: some are silent where nothing is new."""
    first_pause_s: float = 1.0
    """Pause before a failed server is started again; doubled with each failure in a row."""


TIMEOUTS = ServerTimeouts()


_PYTHON = {".py": "python", ".pyi": "python"}
_PYTHON_ROOTS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "ty.toml", "pyrightconfig.json")
_SCRIPT = {
    ".ts": "typescript",
    ".mts": "typescript",
    ".cts": "typescript",
    ".tsx": "typescriptreact",
    ".js": "javascript",
    ".mjs": "javascript",
    ".cjs": "javascript",
    ".jsx": "javascriptreact",
}
_C = {
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
    ".hxx": "cpp",
    ".cu": "cuda",
    ".cuh": "cuda",
}


@dataclass(frozen=True, slots=True)
class ServerKind:
    """One language server, wherever it runs."""

    name: str
    command: Sequence[str]
    languages: Mapping[str, str]
    """The protocol's name of the language by the end of a file's name, such as `.py` to `python`."""
    roots: Sequence[str] = ()
    """Names of files that tell where a project of the language begins."""
    options: Mapping[str, Any] | None = None
    """`initializationOptions` that the server gets at its start."""


KNOWN: Sequence[ServerKind] = (
    ServerKind("ty", ("ty", "server"), _PYTHON, _PYTHON_ROOTS),
    ServerKind("basedpyright", ("basedpyright-langserver", "--stdio"), _PYTHON, _PYTHON_ROOTS),
    ServerKind("pylsp", ("pylsp",), _PYTHON, _PYTHON_ROOTS),
    ServerKind(
        "typescript-language-server",
        ("typescript-language-server", "--stdio"),
        _SCRIPT,
        ("tsconfig.json", "jsconfig.json", "package.json"),
        # it would download types; and while it reads a project, it would answer with half of it
        {"disableAutomaticTypingAcquisition": True, "tsserver": {"useSyntaxServer": "never"}},
    ),
    ServerKind("gopls", ("gopls",), {".go": "go"}, ("go.work", "go.mod")),
    ServerKind(
        "rust-analyzer",
        ("rust-analyzer",),
        {".rs": "rust"},
        ("Cargo.toml",),
        # these would build the project, and so write into it
        {"checkOnSave": False, "cargo": {"buildScripts": {"enable": False}}, "procMacro": {"enable": False}},
    ),
    ServerKind("clangd", ("clangd",), _C, ("compile_commands.json", "compile_flags.txt", ".clangd")),
)
"""Known servers, in the order in which they are looked for."""


def server_kinds(settings: LanguageServersSettings) -> Sequence[ServerKind]:
    """Return the servers that may be started, the user's own first; none where the settings switch all of them off."""
    if not settings.enabled:
        return ()
    known = {kind.name: kind for kind in KNOWN}
    own: list[ServerKind] = []
    for name, written in settings.servers.items():
        kind = known.pop(name, None)
        if not written.enabled:
            continue
        command = tuple(written.command) or (kind.command if kind else (name,))
        languages = written.languages or (kind.languages if kind else {})
        options = written.initialization_options or (kind.options if kind else None)
        own.append(ServerKind(name, command, _by_ending(languages), kind.roots if kind else (), options))
    return (*own, *known.values())


def _by_ending(languages: Mapping[str, str]) -> Mapping[str, str]:
    """Return languages by the ends of files' names as they are looked for: with a dot, and in small letters."""
    return {f".{ending.removeprefix('.').lower()}": language for ending, language in languages.items()}
