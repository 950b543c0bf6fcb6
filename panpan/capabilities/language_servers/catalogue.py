"""Which language servers panpan knows, and what the user's settings make of them.

The rule: the first server of the list that is there is asked about a file; a server of the settings comes before those
that panpan knows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from panpan.capabilities.language_servers.settings import LanguageServersSettings
from panpan.types.dataclass import dataclass

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
    """The program and its arguments."""
    languages: Mapping[str, str]
    """The protocol's name of the language by the end of a file's name, such as `.py` to `python`."""
    roots: Sequence[str] = ()
    """Names of files that tell where a project of the language begins."""
    options: Mapping[str, Any] | None = None
    """What it is given at its start as `initializationOptions`."""


KNOWN: Sequence[ServerKind] = (
    ServerKind("ty", ("ty", "server"), _PYTHON, _PYTHON_ROOTS),
    ServerKind("basedpyright", ("basedpyright-langserver", "--stdio"), _PYTHON, _PYTHON_ROOTS),
    ServerKind("pylsp", ("pylsp",), _PYTHON, _PYTHON_ROOTS),
    ServerKind(
        "typescript-language-server",
        ("typescript-language-server", "--stdio"),
        _SCRIPT,
        ("tsconfig.json", "jsconfig.json", "package.json"),
        # types would be loaded from the network; and while it reads a project, half of it would answer
        {"disableAutomaticTypingAcquisition": True, "tsserver": {"useSyntaxServer": "never"}},
    ),
    ServerKind("gopls", ("gopls",), {".go": "go"}, ("go.work", "go.mod")),
    ServerKind(
        "rust-analyzer",
        ("rust-analyzer",),
        {".rs": "rust"},
        ("Cargo.toml",),
        # what would build the project, and so write into it
        {"checkOnSave": False, "cargo": {"buildScripts": {"enable": False}}, "procMacro": {"enable": False}},
    ),
    ServerKind("clangd", ("clangd",), _C, ("compile_commands.json", "compile_flags.txt", ".clangd")),
)
"""In the order in which they are looked for."""


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
