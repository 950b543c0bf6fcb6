"""Pages for the tests of WebFetch: a site on the loopback that stands for names of the web, and the tool that reads."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from panpan.capabilities.web.browser.browser import PageRenderer
from panpan.capabilities.web.settings import WebSettings
from panpan.capabilities.web.web_fetch import PageReader, WebFetchInput, WebFetchTool
from panpan.capabilities.web.web_pages import HostRateLimiter, WebPages
from panpan.system.web.network import GuardedClient
from panpan.types.events import Output
from tests.fakes.context import context_in
from tests.fakes.outside import OTHER, PUBLIC, Network
from tests.fakes.page_maker import made_here
from tests.fakes.web_site import Answer, Site, served

HOSTS = ("example.org", "www.example.org", "docs.example.org", "other.net")


async def no_sleep(_: float) -> None:
    pass


@dataclass
class WebPlace:
    """A site, and what reads it."""

    site: Site
    network: Network
    pages: WebPages
    tool: WebFetchTool
    folder: Path
    timeouts: list[float] = field(default_factory=list)

    async def fetch(self, path: str = "/", **arguments: Any) -> Output:
        url = path if "://" in path else f"http://example.org{path}"
        args = WebFetchInput.model_validate({"url": url} | arguments)
        async with aclosing(self.tool.run(args, context_in(self.folder))) as events:
            outputs = [event async for event in events if isinstance(event, Output)]
        assert len(outputs) == 1
        return outputs[0]

    async def text(self, path: str = "/", **arguments: Any) -> str:
        return (await self.fetch(path, **arguments)).text


@asynccontextmanager
async def web_place(
    folder: Path,
    *,
    reader: PageReader | None = None,
    renderer: PageRenderer | None = None,
    pages: dict[str, Answer] | None = None,
    restricts: Any = lambda *_: None,
    **settings: Any,
) -> AsyncGenerator[WebPlace, None]:
    """Serve a site whose robots.txt is not there, for all of `HOSTS`, and give what reads it without pauses."""
    with served(Site(pages or {})) as site:
        network = Network(
            names={host: [OTHER if host == "other.net" else PUBLIC] for host in HOSTS},
            ports={(address, 80): site.port for address in (PUBLIC, OTHER)},
        )
        timeouts: list[float] = []

        async def sleep(seconds: float) -> None:
            timeouts.append(seconds)

        web = WebSettings(**settings)
        async with GuardedClient(network.web, user_agent="panpan/1") as client:
            found = WebPages(
                client,
                web,
                "panpan/1",
                stricter_rule=restricts,
                renderer=renderer,
                pace=HostRateLimiter(web.pace_s, clock=lambda: 0.0, sleep=sleep, jitter=lambda: 0.0),
                parse=made_here,
            )
            yield WebPlace(site, network, found, WebFetchTool(found, reader), folder, timeouts)


def html(body: str, *, title: str = "A page", head: str = "") -> Answer:
    return Answer(f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>")


PARAGRAPH = "<p>The seed of every run was 1234, and the batch had 32 examples, on one card, as the paper says.</p>"
"""Parts of which an article has some."""
