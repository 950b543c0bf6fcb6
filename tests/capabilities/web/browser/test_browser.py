import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from panpan.capabilities.web.browser.browser import MAX_PAGES, Browser, RenderedPage
from panpan.capabilities.web.browser.running_chromium import Launch, RunningChromium
from panpan.errors import ToolError
from panpan.system.environment import child_environment
from panpan.system.processes.process import capture
from panpan.system.processes.process_table import ProcessTree, running_processes
from tests.fakes.outside import Network, anywhere
from tests.fakes.web_site import Answer, Site

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOST = "http://paper.example.org"


def drivers() -> list[int]:
    """The processes that stand between this one and Chromium."""
    own = [process.pid for process in running_processes().values() if process.parent == os.getpid()]
    return [pid for pid in own if Path(f"/proc/{pid}/exe").readlink().name == "node"]


def environment_of(pid: int) -> bytes:
    with suppress(OSError):  # it has ended
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def page_of(browser: Browser, path: str) -> RenderedPage:
    return await browser.render(f"{HOST}{path}", wait_s=0, scroll="none", allow=anywhere)


async def test_browser_shows_pages_in_parallel_up_to_a_limit(browser: Browser, site: Site) -> None:
    for number in range(6):
        site.pages[f"/{number}"] = Answer(f"<title>{number}</title>")
    titles: dict[int, str] = {}
    others: list[int] = []

    async def show(number: int) -> None:
        titles[number] = (await page_of(browser, f"/{number}")).title
        assert browser.chromium is not None
        others.append(len(browser.chromium.driven.contexts))

    async with anyio.create_task_group() as task_group:
        for number in range(6):
            task_group.start_soon(show, number)

    assert titles == {number: str(number) for number in range(6)}
    assert max(others) <= MAX_PAGES
    assert browser.chromium is not None
    assert browser.chromium.driven.contexts == []


async def test_browser_restarts_after_a_crash(browser: Browser, site: Site) -> None:
    site.pages["/again"] = Answer("<title>again</title>")
    await page_of(browser, "/again")
    assert browser.chromium is not None
    first = browser.chromium
    await first.tree.end(0)

    page = await page_of(browser, "/again")

    assert page.title == "again"
    assert browser.chromium is not first


@pytest.mark.skipif(not Path("/proc/self/exe").exists(), reason="the driver is told from others by /proc")
async def test_browser_restarts_after_the_end_of_its_driver(program: str, site: Site, network: Network) -> None:
    browser = Browser(network.web, lambda: Launch(program, child_environment()))
    before = drivers()
    site.pages["/driven"] = Answer("<title>driven</title>")
    await page_of(browser, "/driven")
    assert browser.chromium is not None
    first = browser.chromium.tree
    for pid in set(drivers()).difference(before):
        os.kill(pid, signal.SIGKILL)

    page = await page_of(browser, "/driven")
    await browser.aclose()

    assert page.title == "driven"
    assert first.members() == []


@pytest.mark.skipif(not Path("/proc/self/exe").exists(), reason="the driver is told from others by /proc")
async def test_driver_and_chromium_get_no_keys(
    program: str, site: Site, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOMEBODYS_API_KEY", "the key")
    browser = Browser(network.web, lambda: Launch(program, child_environment()))
    before = drivers()
    site.pages["/driven"] = Answer("<title>driven</title>")

    await page_of(browser, "/driven")
    (driver,) = set(drivers()).difference(before)
    assert browser.chromium is not None
    pids = {process.pid for process in browser.chromium.tree.members()}
    told = [environment_of(pid) for pid in pids | {driver}]
    await browser.aclose()

    assert driver in pids
    assert b"the key" not in b"".join(told)


async def test_browsers_started_at_once_have_their_own_drivers(program: str, site: Site, network: Network) -> None:
    from playwright._impl import _driver, transport

    browsers = [Browser(network.web, lambda: Launch(program, child_environment())) for _ in range(2)]
    site.pages["/driven"] = Answer("<title>driven</title>")
    before = drivers()

    async with anyio.create_task_group() as group:
        for browser in browsers:
            group.start_soon(page_of, browser, "/driven")
    running = [browser.chromium for browser in browsers if browser.chromium is not None]
    trees = [{process.pid for process in one.tree.members()} for one in running]
    started = set(drivers()).difference(before)
    usual = transport.get_driver_env()  # type: ignore[attr-defined]
    for browser in browsers:
        await browser.aclose()

    assert [len(started & tree) for tree in trees] == [1, 1]
    assert usual == _driver.get_driver_env()


@pytest.mark.parametrize("is_killed", [False, True])
async def test_browser_leaves_no_file(
    is_killed: bool, program: str, site: Site, network: Network, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short_folder))
    browser = Browser(network.web, lambda: Launch(program, child_environment() | {"TMPDIR": str(short_folder)}))
    site.pages["/file"] = Answer(
        "<a id=a download=x href='data:text/plain,saved'></a><script>a.click(); caches.open('x')</script>"
    )

    await page_of(browser, "/file")
    assert browser.chromium is not None
    assert names_in(short_folder) == [browser.chromium.folder.name]
    if is_killed:
        await browser.chromium.tree.end(0)
    await browser.aclose()

    assert names_in(short_folder) == []


async def test_cancelled_start_leaves_nothing(
    program: str, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(short_folder))
    before = drivers()

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(RunningChromium.start, Launch(program, child_environment()))
            with anyio.fail_after(20):
                while drivers() == before:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            scope.cancel()

    assert drivers() == before
    assert names_in(short_folder) == []


async def test_hanging_browser_is_ended_and_restarted(browser: Browser, site: Site) -> None:
    site.pages["/after"] = Answer("<title>after</title>")
    await page_of(browser, "/after")
    assert browser.chromium is not None
    first = browser.chromium
    for process in first.tree.members():
        with suppress(ProcessLookupError):  # one that a page had may just have ended
            os.kill(process.pid, signal.SIGSTOP)

    page = await page_of(browser, "/after")

    assert page.title == "after"
    assert first.tree.members() == []


def user_agent_for(site: Site, path: str) -> str:
    """Return the user agent that asked for a page; a browser of another test may still ask for others."""
    return next(headers["User-Agent"] for _, asked, headers in site.requests if asked == path)


async def test_servers_learn_that_panpan_asks(program: str, site: Site, network: Network) -> None:
    browser = Browser(network.web, lambda: Launch(program, child_environment()), product="panpan/1")
    site.pages["/who"] = Answer("<body><script>document.body.append(navigator.userAgent)</script>")
    site.requests.clear()

    page = await page_of(browser, "/who")
    await browser.aclose()

    told = user_agent_for(site, "/who")
    assert told.endswith(" panpan/1")
    assert told in page.html


async def test_hidden_driver_is_not_revealed_to_pages(program: str, site: Site, network: Network) -> None:
    launch = Launch(program, child_environment(), hides_driver=True)
    browser = Browser(network.web, lambda: launch, product="panpan/1")
    site.pages["/who"] = Answer("<body><script>document.body.append('driven: ' + navigator.webdriver)</script>")
    site.requests.clear()

    page = await page_of(browser, "/who")
    await browser.aclose()

    assert "driven: false" in page.html
    told = user_agent_for(site, "/who")
    assert "Headless" not in told
    assert "panpan" not in told


async def test_cancelled_page_is_closed_and_the_next_one_shown(browser: Browser, site: Site) -> None:
    site.pages["/next"] = Answer("<title>next</title>")
    with anyio.move_on_after(0.5):
        await browser.render(f"{HOST}/next", wait_s=30, scroll="none", allow=anywhere)

    page = await page_of(browser, "/next")

    assert page.title == "next"
    assert browser.chromium is not None
    assert browser.chromium.driven.contexts == []


async def test_browser_runs_only_between_first_page_and_end(program: str, site: Site, network: Network) -> None:
    browser = Browser(network.web, lambda: Launch(program, child_environment()))
    site.pages["/last"] = Answer("<p>x")
    assert browser.chromium is None
    await page_of(browser, "/last")
    assert browser.chromium is not None
    tree = browser.chromium.tree
    assert len(tree.members()) > 1

    await browser.aclose()

    assert tree.members() == []
    with pytest.raises(ToolError, match="about to end"):
        await page_of(browser, "/last")


KILLED = """
import anyio, os, signal, sys
from panpan.capabilities.web.browser.running_chromium import Launch, RunningChromium

async def main():
    chromium = await RunningChromium.start(Launch(sys.argv[1], dict(os.environ)))
    print(chromium.tree.mark, len(chromium.tree.members()), flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


async def test_browser_leaves_nothing_when_panpan_is_killed(
    chromium_program: str, tmp_path: Path, short_folder: Path
) -> None:
    env = {**child_environment(), "PYTHONPATH": str(Path(__file__).parents[4]), "TMPDIR": str(short_folder)}

    killed = await capture([sys.executable, "-c", KILLED, chromium_program], cwd=tmp_path, env=env, timeout_s=60)

    mark, started = killed.stdout.decode().split()
    assert int(started) > 1
    tree = ProcessTree(mark)
    with anyio.fail_after(20):
        while tree.members_among(running_processes()):  # noqa: ASYNC110
            await anyio.sleep(0.05)
