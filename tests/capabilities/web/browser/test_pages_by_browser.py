"""WebFetch with Chromium behind it: what plain HTTP cannot read, the browser shows."""

from contextlib import aclosing
from pathlib import Path

import pytest

from panpan.capabilities.web.browser.browser import Browser
from panpan.capabilities.web.settings import WebSettings
from panpan.capabilities.web.web_fetch import WebFetchInput, WebFetchTool
from panpan.capabilities.web.web_pages import WebPages
from panpan.system.web.network import GuardedClient
from panpan.types.events import Output
from tests.fakes.context import context_in
from tests.fakes.outside import Network
from tests.fakes.web_site import Answer, Site

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_script_made_page_is_read_by_the_browser(
    browser: Browser, network: Network, site: Site, tmp_path: Path
) -> None:
    made = "<h1>Runs</h1><p>The seed was 1234.</p><nav>Menu</nav>"
    site.pages["/app"] = Answer(f"<title>App</title><body><script>document.body.innerHTML = `{made}`</script>")
    async with GuardedClient(network.web, user_agent="panpan") as client:
        tool = WebFetchTool(WebPages(client, WebSettings(pace_s=0), "panpan", renderer=browser, scripts_s=0))
        args = WebFetchInput(url="http://paper.example.org/app")
        async with aclosing(tool.run(args, context_in(tmp_path))) as events:
            (output,) = [event async for event in events if isinstance(event, Output)]

    assert output.text.startswith("http://paper.example.org/app (status 200, shown by a browser)")
    assert "# Runs\n\nThe seed was 1234." in output.text
    assert "Menu" not in output.text
    assert not output.is_error
