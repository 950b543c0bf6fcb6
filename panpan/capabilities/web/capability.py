"""The web: pages, searches, and the browser for pages that need one."""

import os
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from panpan.capabilities.web.browser.browser import Browser, browser_of
from panpan.capabilities.web.settings import WebSettings
from panpan.capabilities.web.web_search import SearchUnavailable, WebSearchTool, make_searcher
from panpan.config.known_secrets import without_provider_keys
from panpan.core.late_tool import late_tool
from panpan.core.tool import Tool
from panpan.session.agent import Agent
from panpan.session.capability import Capability, concurrently
from panpan.session.context import SessionContext
from panpan.system.files.paths import without_workspace
from panpan.system.web.domain_lists import DomainLists, without_closed_hosts
from panpan.system.web.network import GuardedClient

if TYPE_CHECKING:
    from panpan.capabilities.web.web_pages import WebPages


class Web(Capability):
    """Asks for pages and searches."""

    name = "web"
    settings_model = WebSettings
    settings: WebSettings

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        gate = session.gate
        outside = without_closed_hosts(session.network, gate.closing_rule)
        self._client = GuardedClient(outside, user_agent=session.user_agent)
        self._searcher = make_searcher(self.settings, session.setup.env, outside, session.user_agent)
        if isinstance(self._searcher, SearchUnavailable) and self._searcher.is_mistake:
            session.warn(f"there is no WebSearch: {self._searcher.why}")
        self._browser = self._make_browser()

    def tools(self, agent: Agent) -> Iterable[Tool[Any]]:
        return WebSearchTool(self._searcher), late_tool(__package__, "WebFetch", self._make_web_fetch)

    def unavailable(self) -> Iterable[str]:
        return (WebSearchTool.name,) if isinstance(self._searcher, SearchUnavailable) else ()

    @asynccontextmanager
    async def lifespan(self) -> AsyncGenerator[None, None]:
        async with concurrently(then=self._client.aclose), concurrently(then=self._browser.aclose):
            if isinstance(self._searcher, SearchUnavailable):
                yield
                return
            async with concurrently(then=self._searcher.aclose):
                yield

    def _make_web_fetch(self) -> Tool[Any]:
        from panpan.capabilities.web.web_fetch import PageAnswers, WebFetchTool

        session = self.session
        keep = session.conversation.side_calls.append
        # an interceptor must not miss a request to a model
        reader = None if session.config.is_intercepted else PageAnswers(session.setup, session.budget, keep)
        return WebFetchTool(self._pages, reader)

    @cached_property
    def _pages(self) -> "WebPages":
        """The pages of the session; all of its agents share the pace at which one host is asked."""
        from panpan.capabilities.web.web_pages import WebPages, parse_sandboxed

        session = self.session
        return WebPages(
            self._client,
            self.settings,
            session.user_agent,
            stricter_rule=session.gate.stricter_rule,
            renderer=self._browser,
            parse=parse_sandboxed(session.tool_context.sandbox),
        )

    def _make_browser(self) -> Browser:
        """Return the one browser of the session; hosts of which nothing is taken have no address for it."""
        session, gate = self.session, self.session.gate
        blocked = DomainLists.read((), self.settings.blocked_domains)

        def closing(host: str) -> str | None:
            return gate.closing_rule(host) or ("blocked_domains" if blocked.refusal(host) else None)

        programs = partial(without_workspace, session.setup.env.get("PATH", os.defpath), session.paths)
        return browser_of(
            self.settings,
            without_closed_hosts(session.network, closing),
            without_provider_keys(session.setup.env, session.settings),
            programs,
            session.setup.locations.logins_folder,
            session.product,
        )
