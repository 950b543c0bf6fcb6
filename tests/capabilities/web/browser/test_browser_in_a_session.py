import os
from contextlib import aclosing
from pathlib import Path

import pytest

from panpan.api import open_session
from panpan.types.messages import ToolResultMessage
from tests.fakes.outside import Network
from tests.fakes.web_site import Answer, Site

pytestmark = pytest.mark.asyncio(loop_scope="module")

TAPE = """version = 1
[[reply]]
tool_use = [{ name = "WebFetch", input = { url = "http://paper.example.org/made", wait = 0.1 } }]
[[reply]]
text = "done"
"""


async def test_session_shows_a_page_in_its_browser_and_ends_it(
    program: str, site: Site, network: Network, tmp_path: Path
) -> None:
    site.pages["/made"] = Answer("<body><script>document.body.append('made ' + (40 + 2))</script>")
    with_pid = tmp_path / "chromium"
    with_pid.write_text(f'#!/bin/sh\necho $$ > "{tmp_path}/pid"\nenv > "{tmp_path}/env"\nexec "{program}" "$@"\n')
    with_pid.chmod(0o700)
    (tmp_path / "tape.toml").write_text(TAPE)
    settings = {
        "model": f"cassette:{tmp_path}/tape.toml", "web.browser": str(with_pid), "permission.allow": ["WebFetch"],
    }  # fmt: skip
    env = {"HOME": str(tmp_path), "PANPAN_HOME": str(tmp_path / "home"), "PATH": os.environ["PATH"], "A_KEY": "s3cret"}

    opened = open_session(tmp_path, overrides=settings, env=env, network=network.web)
    async with opened as session, aclosing(session.submit("go")) as events:
        results = [event.text async for event in events if isinstance(event, ToolResultMessage)]

    assert "made 42" in results[0]
    assert "s3cret" not in (tmp_path / "env").read_text()
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
