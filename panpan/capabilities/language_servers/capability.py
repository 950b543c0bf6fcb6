"""Language servers: the LSP tool, and the errors that an edit brings."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from panpan.capabilities.language_servers.edit_errors import EditErrors
from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.capabilities.language_servers.settings import LanguageServersSettings, servers_of_plugins
from panpan.core.hooks import Hook
from panpan.core.late_tool import late_tool
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability, concurrently
from panpan.session.command import Command
from panpan.session.context import SessionContext
from panpan.system.files.canonical import canonical_path
from panpan.system.text.terminal_text import clean_line


class CodeIntelligenceCapability(Capability):
    """Asks language servers."""

    name = "language_servers"
    settings_model = LanguageServersSettings
    settings: LanguageServersSettings

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        locations = session.setup.locations
        of_plugins, problems = servers_of_plugins(session.setup.loaded.places)
        for problem in problems:
            session.warn(clean_line(problem))
        settings = self.settings
        if of_plugins:
            settings = settings.model_copy(update={"servers": {**settings.servers, **of_plugins}})
        self.servers = LanguageServers(
            settings,
            locations.project_root,
            session.tool_context.environment,
            session.tool_context.sandbox,
            copies=canonical_path(locations.worktrees_folder),
            is_trusted=session.setup.loaded.trust.is_trusted,
        )

    def services(self) -> Iterable[object]:
        return (self.servers,)

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return (late_tool(__package__, "LSP", self._make_lsp),)

    def unavailable(self) -> Iterable[str]:
        return () if self.servers.can_be_used else ("LSP",)

    def _make_lsp(self) -> Tool[Any]:
        from panpan.capabilities.language_servers.code_queries import CodeQueries
        from panpan.capabilities.language_servers.lsp import LspTool

        return LspTool(CodeQueries(self.servers), self.session.gate.withholds)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (EditErrors(self.servers),)

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        async with concurrently(self.servers.serve):
            yield

    @classmethod
    def commands(cls) -> Iterable[Command]:
        from panpan.capabilities.language_servers.language_servers import LSP_COMMANDS

        return LSP_COMMANDS
