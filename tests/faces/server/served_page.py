"""The page in the browser with all that is behind it: `panpan serve` in a process, and a model that plays scripts."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.model_server import RecordedRequest, Reply, serving
from tests.prepared_command import PREPARED

Scripts = Mapping[str, Sequence[Reply]]
"""Replies to prompts, by the words of the prompt."""


@contextmanager
def served_page(place: Path, scripts: Scripts) -> Iterator[str]:
    """Serve sessions in `place/project`, and yield the address of the page with its token."""
    project, home = place / "project", place / "home"
    project.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)

    def answer(request: RecordedRequest) -> Reply:
        model.requests.clear()  # those of a long conversation would fill the memory
        words, step = "", 0
        for message in request.messages:
            texts = [block["text"] for block in message["content"] if block["type"] == "text"]
            step += message["role"] == "assistant"
            for text in texts if message["role"] == "user" else ():
                words, step = (text, 0) if text in scripts else (words, step)
        return scripts[words][step]

    with serving(answer) as model:
        env = {
            **{name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ},
            "HOME": str(home), "PANPAN_HOME": str(home / ".panpan"), "NO_PROXY": "*",
            "PANPAN_SESSIONS_TITLE": "first-words",
            "ANTHROPIC_API_KEY": "sk-ant-test-0123456789abcdef", "ANTHROPIC_BASE_URL": model.url,
        }  # fmt: skip
        command = PREPARED.argv("--model", "claude-sonnet-4-5", "serve", env=env)
        process = subprocess.Popen(command, cwd=project, env=env, stderr=subprocess.PIPE, text=True)
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert "serving at " in said, said + process.stderr.read()
            yield said.rpartition(" ")[2].strip()
        finally:
            process.terminate()
            process.communicate(timeout=20)


@contextmanager
def chromium(**options: Any) -> Iterator[Any]:
    """Start Debian's Chromium, and yield it.

    Raises:
        RuntimeError: There is none.
    """
    program = shutil.which("chromium")
    if program is None or sys.platform == "darwin":
        raise RuntimeError("there is no chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise RuntimeError("playwright is not installed") from error
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, chromium_sandbox=os.geteuid() != 0, **options)
        try:
            yield browser
        finally:
            browser.close()
