"""What the tools of a session need beside its files and commands: the web, data, packages, language servers.

Apart from `session_services.py` since none of it hooks into the loop; the session's own model and its subagents share
it. Nothing here asks, starts or opens anything before a tool does.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from panpan.capabilities.datasets.data_setup import data_setup_of
from panpan.capabilities.guards.keys_in_results import without_provider_keys
from panpan.capabilities.language_servers.code_queries import CodeQueries
from panpan.capabilities.language_servers.edit_errors import EditErrors
from panpan.capabilities.language_servers.language_servers import LanguageServers
from panpan.capabilities.language_servers.lsp import LspTool
from panpan.capabilities.packages.offered import tools_without_use
from panpan.capabilities.packages.package_tool import PackageSetup
from panpan.capabilities.web.browser.browser import Browser
from panpan.capabilities.web.browser.opening import browser_of
from panpan.capabilities.web.closed_hosts import without_closed_hosts
from panpan.capabilities.web.domain_lists import DomainLists
from panpan.capabilities.web.page_answers import PageAnswers
from panpan.capabilities.web.search.choice import NoEngine, searcher_of
from panpan.capabilities.web.web_pages import WebPages
from panpan.capabilities.web.web_search import WebSearchTool
from panpan.core.hooks import Hook
from panpan.core.tool import Tool
from panpan.permissions.gate import PermissionGate
from panpan.session.setup import Setup
from panpan.shell_analysis.safe_path import without_workspace
from panpan.system.environment import child_environment
from panpan.system.files.canonical import canonical_path
from panpan.system.files.paths import PathResolver
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.web.guarded_client import GuardedClient
from panpan.system.web.network import WebNetwork
from panpan.tool_registry import all_tools
from panpan.types.asking import UserAsker


class SessionTools:
    """Makes tools, and keeps what they share.

    Args:
        setup: The session's.
        paths: Those of its workspace.
        gate: Says of which hosts nothing is taken, and which files are not shown.
        sandbox: What language servers run in, and what strangers made is taken apart in.
        network: How the outside is reached.
        user_agent: What web servers are told of who asks, where the settings do not say.
        page_answers: Reads pages with the small model; None: nobody does.
        warn: Told what the user should know, one sentence each.
    """

    def __init__(
        self,
        setup: Setup,
        paths: PathResolver,
        gate: PermissionGate,
        sandbox: CommandSandbox,
        *,
        network: WebNetwork,
        user_agent: str,
        page_answers: PageAnswers | None,
        warn: Callable[[str], None],
    ) -> None:
        settings, locations = setup.settings, setup.locations
        agent = settings.web.user_agent or user_agent
        env = without_provider_keys(setup.env, settings)
        self._env = setup.env
        self._paths = paths
        self._gate = gate
        self._page_answers = page_answers
        outside = without_closed_hosts(network, gate.closing_rule)
        self._client = GuardedClient(outside, user_agent=agent)
        self._searcher = searcher_of(settings.web, setup.env, outside, agent)
        if isinstance(self._searcher, NoEngine) and self._searcher.is_mistake:
            warn(f"there is no WebSearch: {self._searcher.why}")
        self._browser = _browser(setup, paths, gate, network, env, user_agent)
        self._web_pages = WebPages(
            self._client,
            settings.web,
            agent,
            new_restriction=gate.new_restriction,
            renderer=self._browser,
            sandbox=sandbox,
        )
        self._data = data_setup_of(settings, setup.env, outside, agent, gate.new_restriction)
        self._packages = PackageSetup(settings.packages, locations.packages_folder, gate.withholds)
        self.language_servers = LanguageServers(
            settings.language_servers,
            locations.project_root,
            child_environment(env, pass_env=settings.environment.pass_env),
            sandbox,
            copies=canonical_path(locations.worktrees_folder),
            is_trusted=setup.loaded.trust.is_trusted,
        )
        self._code = CodeQueries(self.language_servers)

    def make(self, ask_user: UserAsker | None = None, **of_the_session: Any) -> list[Tool[Any]]:
        """Return new tools.

        Args:
            ask_user: As `all_tools` takes it.
            of_the_session: What else `all_tools` takes, and only the session's own model gets.
        """
        return all_tools(
            ask_user,
            code=self._code,
            searcher=self._searcher,
            web_pages=self._web_pages,
            page_reader=self._page_answers,
            withholds=self._gate.withholds,
            packages=self._packages,
            data=self._data,
            **of_the_session,
        )

    def not_offered(self) -> Iterator[str]:
        """Yield names of tools that are of no use here, such as WebSearch without an engine to ask."""
        if isinstance(self._searcher, NoEngine):
            yield WebSearchTool.name
        if not self.language_servers.can_be_used:
            yield LspTool.name
        yield from tools_without_use(self._paths, self._env)

    def edit_errors(self) -> Hook:
        """Return what tells one agent of the errors that its edits have brought."""
        return EditErrors(self.language_servers)

    async def aclose(self) -> None:
        """Ask for nothing more on the web."""
        await self._client.aclose()
        await self._data.client.aclose()
        await self._browser.aclose()
        if not isinstance(self._searcher, NoEngine):
            await self._searcher.aclose()


def _browser(
    setup: Setup, paths: PathResolver, gate: PermissionGate, network: WebNetwork, env: Mapping[str, str], product: str
) -> Browser:
    """Return the one browser of a session; hosts of which nothing is taken have no address for it."""
    web = setup.settings.web
    blocked = DomainLists.read((), web.blocked_domains)

    def closing(host: str) -> str | None:
        return gate.closing_rule(host) or ("blocked_domains" if blocked.refusal(host) else None)

    programs = partial(without_workspace, setup.env.get("PATH", os.defpath), paths)
    outside = without_closed_hosts(network, closing)
    return browser_of(web, outside, env, programs, setup.locations.logins_folder, product)
