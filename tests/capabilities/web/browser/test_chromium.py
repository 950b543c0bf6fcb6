import sys
from pathlib import Path

import pytest
import trio

from panpan.capabilities.web.browser.browser import Browser
from panpan.capabilities.web.browser.running_chromium import Launch, RunningChromium, arguments, find_chromium
from panpan.errors import ToolError
from panpan.system.web.network import WebNetwork
from tests.fakes.outside import anywhere


def program(place: Path) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("#!/bin/sh\n")
    place.chmod(0o700)
    return place


def test_chromium_on_the_path_precedes_chrome_and_playwright(tmp_path: Path) -> None:
    chrome = program(tmp_path / "a/google-chrome")
    chromium = program(tmp_path / "b/chromium")
    own = program(tmp_path / "home/.cache/ms-playwright/chromium-1200/chrome-linux64/chrome")
    env = {"HOME": str(tmp_path / "home")}

    found = [
        find_chromium("auto", path, env)
        for path in (f"{chrome.parent}:{chromium.parent}", str(chrome.parent), str(tmp_path))
    ]

    expected_own = own if sys.platform != "darwin" else None
    assert found[:2] == [str(chromium), str(chrome)]
    assert expected_own is None or found[2] == str(expected_own)


def test_missing_chromium_error_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"install one .*apt install chromium"):
        find_chromium("auto", str(tmp_path), {"HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("chosen", "said"), [("off", "switched off"), ("chromium", "absolute path"), ("/no/such", "/no/such")]
)
def test_setting_without_a_program_is_reported(tmp_path: Path, chosen: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        find_chromium(chosen, str(tmp_path), {})


def test_program_named_by_the_settings_is_used(tmp_path: Path) -> None:
    mine = program(tmp_path / "my browser")

    assert find_chromium(str(mine), "", {}) == str(mine)


def test_driver_is_hidden_only_on_request() -> None:
    usual, hidden = arguments(hides_driver=False), arguments(hides_driver=True)

    assert not [one for one in usual if "AutomationControlled" in one]
    assert [one for one in hidden if "AutomationControlled" in one]


def test_trio_is_reported_to_have_no_browser(tmp_path: Path) -> None:
    browser = Browser(WebNetwork(), lambda: Launch(str(program(tmp_path / "chromium")), {}))

    async def show() -> None:
        await browser.render("http://example.org/", wait_s=0, scroll="none", allow=anywhere)

    with pytest.raises(ToolError, match="needs asyncio"):
        trio.run(show)


@pytest.mark.parametrize(
    ("script", "said"),
    [("exit 1", "does not start"), ("echo 'no usable sandbox' >&2; exit 1", "does not start")],
    ids=["ends", "no-sandbox"],
)
async def test_program_that_does_not_start_is_reported(tmp_path: Path, script: str, said: str) -> None:
    pytest.importorskip("playwright")
    broken = program(tmp_path / "chromium")
    broken.write_text(f"#!/bin/sh\n{script}\n")

    with pytest.raises(ToolError, match=said):
        await RunningChromium.start(Launch(str(broken), {}))


async def test_missing_playwright_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)

    with pytest.raises(ToolError, match=r"Playwright.* is not installed; run: .* -m pip install 'playwright>="):
        await RunningChromium.start(Launch(str(program(tmp_path / "chromium")), {}))
