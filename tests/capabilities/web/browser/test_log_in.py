import os
import signal
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.web.browser.browser import Browser, SavedLogins
from panpan.capabilities.web.browser.running_chromium import Launch
from panpan.capabilities.web.cli import log_in, require_display
from panpan.errors import ToolError
from panpan.system.environment import child_environment
from tests.fakes.outside import Network, anywhere
from tests.fakes.web_site import Answer, Site

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOST = "http://paper.example.org"
SHOWS = "<body><script>document.body.append('seen ' + document.cookie + localStorage.name)</script>"


async def test_login_is_used_for_pages_of_its_site(program: str, site: Site, network: Network, tmp_path: Path) -> None:
    launch = Launch(program, child_environment())
    site.pages["/login"] = Answer(
        "<script>localStorage.name = 'Ada'; fetch('/in')</script>", headers={"Set-Cookie": "id=42; Max-Age=1000"}
    )
    site.pages["/account"] = Answer(SHOWS)

    async def until() -> None:
        with anyio.fail_after(20):
            while "/in" not in site.paths():  # noqa: ASYNC110
                await anyio.sleep(0.02)

    name, left = await log_in(f"{HOST}/login", network.web, launch, until)
    logins = SavedLogins(tmp_path)
    logins.keep(name, left)
    browser = Browser(network.web, lambda: launch, storage_for=logins.storage_for)
    own = await browser.render(f"{HOST}/account", wait_s=0, scroll="none", allow=anywhere)
    other = await browser.render("http://cdn.example.net/account", wait_s=0, scroll="none", allow=anywhere)
    await browser.aclose()

    assert logins.sites() == ["paper.example.org"]
    assert "seen id=42Ada" in own.html
    assert "seen undefined" in other.html


async def test_login_is_not_kept_if_the_browser_closes_first(
    program: str, site: Site, network: Network, tmp_path: Path
) -> None:
    site.pages["/form"] = Answer("<p>who are you?")
    with_pid = tmp_path / "chromium"
    with_pid.write_text(f'#!/bin/sh\necho $$ > "{tmp_path}/pid"\nexec "{program}" "$@"\n')
    with_pid.chmod(0o700)

    async def until() -> None:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGTERM)
        await anyio.sleep_forever()

    with pytest.raises(ToolError, match="the page was closed"):
        await log_in(f"{HOST}/form", network.web, Launch(str(with_pid), child_environment()), until)


@pytest.mark.parametrize("variables", [{"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}])
async def test_login_window_needs_a_display(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    monkeypatch.setattr("sys.platform", "linux")

    require_display(variables)

    with pytest.raises(ToolError, match="no display"):
        require_display({"PATH": "/bin"})
