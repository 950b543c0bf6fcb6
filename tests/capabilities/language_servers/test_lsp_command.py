"""/lsp says which language servers there are and what they do."""

from pathlib import Path

from panpan.capabilities.language_servers.language_servers import LanguageServers, ServerState
from tests.faces.terminal.commands.command_fixtures import terminal_in, type_in


async def test_lsp_command_lists_servers_with_their_state(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=120)
    terminal.session[LanguageServers].states = [
        ServerState("ty", "/usr/bin/ty", Path("/work"), "runs"),
        ServerState("gopls", "/usr/bin/gopls", None, "failed: \x1b[2Jout of luck"),
        ServerState("clangd", "", None, "not installed"),
    ]

    await type_in(terminal, "/lsp")

    assert "ty     runs" in terminal.text
    assert "/usr/bin/ty, for /work" in terminal.text
    assert "gopls  failed: out of luck" in terminal.text
    assert "Not installed: clangd" in terminal.text


async def test_lsp_command_says_that_there_are_none(tmp_path: Path) -> None:
    terminal = terminal_in(tmp_path / "p", width=120)
    terminal.session[LanguageServers].states = []

    await type_in(terminal, "/lsp")

    assert "no language server is installed that panpan knows" in terminal.text
