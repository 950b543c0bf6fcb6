"""An editor as a package: JupyterLab with its client of the Agent Client Protocol, in a real browser.

`PANPAN_PICTURE=FILE` keeps a picture of the question.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from tests.capabilities.mcp.place import Place
from tests.model_server import RecordedRequest, Reply, Text, ToolCall, serving
from tests.peers.scratch_python import scratch_python

PACKAGES = (
    "jupyterlab==4.6.6",
    "jupyter-ai==3.2.0",
    "jupyter-ai-acp-client==0.3.3",
    "jupyter-ai-persona-manager==0.2.2",
    "jupyterlab-chat==0.25.3",
    "jupyter-collaboration==5.0.4",
)
TRIES, TRY_MS = 6, 8_000
TOKEN = "a-token-for-this-test"
DRAWING = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><circle cx="4.5" cy="4.5" r="4" fill="teal"/></svg>'
)
PERSONA = """
from jupyter_ai_acp_client.base_acp_persona import BaseAcpPersona
from jupyter_ai_persona_manager import PersonaDefaults


class PanpanPersona(BaseAcpPersona):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, executable={command!r}, **kwargs)

    @property
    def defaults(self):
        return PersonaDefaults(name="panpan", description="panpan", avatar_path={drawing!r}, system_prompt="unused")

    async def is_authed(self):
        return True
"""
EDIT = {"file_path": "hello.py", "old_string": "    print('Hello')", "new_string": "    print('Hello, world!')"}
REPLIES = (
    Reply((Text("I look at the file first."), ToolCall("Read", {"file_path": "hello.py"}))),
    Reply((Text("Now I change the greeting."), ToolCall("Edit", EDIT))),
    Reply((Text("Done: `hello.py` greets the world."),)),
)


@pytest.fixture(scope="session")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install JupyterLab in an environment of its own, 400 MB; without a registry or a browser the test is skipped."""
    if shutil.which("chromium") is None:
        pytest.skip("there is no chromium")
    pytest.importorskip("playwright")
    version = "{}.{}".format(*sys.version_info)
    return scratch_python(tmp_path_factory, "jupyter", version, PACKAGES).parent


@contextmanager
def laboratory(jupyter: Path, place: Place, env: Mapping[str, str]) -> Iterator[str]:
    """Run JupyterLab in the project, with panpan in its chats; yield its address."""
    personas = place.root / ".jupyter/personas"
    personas.mkdir(parents=True)
    drawing = place.folder / "panpan.svg"
    drawing.write_text(DRAWING)
    command = [sys.executable, "-m", "panpan", "--sandbox", "off", "acp"]
    (personas / "panpan_persona.py").write_text(PERSONA.format(command=command, drawing=str(drawing)))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        str(jupyter / "python"), "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        f"--IdentityProvider.token={TOKEN}",
    ]  # fmt: skip
    path = f"{jupyter}:{os.environ['PATH']}"
    process = subprocess.Popen(
        words, cwd=place.root, env={**env, "PATH": path}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


async def until_served(url: str) -> None:
    async with httpx2.AsyncClient() as client:
        while True:
            try:
                if (await client.get(f"{url}/api", params={"token": TOKEN})).status_code == 200:
                    return
            except httpx2.HTTPError:
                pass
            await anyio.sleep(0.1)


async def greet(url: str, picture: str) -> str:
    """Ask in a chat, allow the change, and return the text of the page at the end."""
    from playwright.async_api import Error, async_playwright

    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": 1000, "height": 700})
        page.set_default_timeout(60_000)
        await page.goto(f"{url}/lab?token={TOKEN}&reset")
        await page.add_style_tag(content=".Toastify { display: none }")  # news
        await page.locator(".jp-LauncherCard:has-text('Chat')").last.click()
        await page.get_by_text("panpan", exact=True).last.wait_for()
        await page.get_by_text("Ask", exact=True).last.wait_for()
        yes = page.get_by_role("button", name="Yes", exact=True)
        for _ in range(TRIES):  # a message that comes too early for JupyterLab goes to nobody
            await page.locator("textarea:visible, [contenteditable=true]:visible").last.click()
            await page.keyboard.type("greet the world")
            await page.keyboard.press("Enter")
            with suppress(Error):
                await yes.wait_for(timeout=TRY_MS)
                break
        if picture:
            await page.screenshot(path=picture)
        asked = await page.locator("body").inner_text()
        await yes.click()
        await page.get_by_text("greets the world").last.wait_for()
        await browser.close()
        return asked


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


@pytest.mark.timeout(500)  # with the install
async def test_jupyterlab_shows_the_diff_and_the_answers(jupyter: Path, place: Place) -> None:
    hello = place.root / "hello.py"
    hello.write_text("def greet():\n    print('Hello')\n\n\ngreet()\n")
    left = iter(REPLIES)

    def answer(request: RecordedRequest) -> Any:
        return next(left) if request.body.get("tools") else Reply((Text("Greet the world"),))

    with serving(answer) as server:
        env = {
            **place.env,
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef",
            "ANTHROPIC_BASE_URL": server.url,
            "PANPAN_MODEL": "claude-sonnet-4-5",
        }
        with laboratory(jupyter, place, env) as url, anyio.fail_after(100):
            await until_served(url)
            asked = await greet(url, os.environ.get("PANPAN_PICTURE", ""))

    assert "print('Hello, world!')" in asked
    assert "Yes, and don't ask again for edits of hello.py" in asked
    assert hello.read_text() == "def greet():\n    print('Hello, world!')\n\n\ngreet()\n"
