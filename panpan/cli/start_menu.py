"""Menu of a start on a terminal without a chosen model: a key, a local server, the small model, the demo."""

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from click.exceptions import Exit

from panpan.cli_kit.login import log_in
from panpan.config.stored_keys import StoredKeys
from panpan.models.local_servers import LocalServer, find_local_servers
from panpan.session.command import Option, Questions
from panpan.system.processes.foreground import run_in_foreground
from panpan.system.text.terminal_text import clean_line

TITLE = "Welcome to panpan. Which model should it use?"
_KEY = Option("Paste an API key", "Anthropic, OpenAI, Gemini, DeepSeek and others; tried at once")
_SMALL = Option("Set up a small local model", "free and offline; 1.1 GB download; for look-ups and small edits")
_DEMO = Option("See the demo", "no key, no network")
_QUIT = Option("Quit")


async def run_panpan_here(*arguments: str) -> int:
    """Run panpan in the foreground with other arguments, and return its exit code."""
    return await run_in_foreground([sys.executable, "-m", "panpan", *arguments], os.environ)


async def choose_start(
    ask: Questions,
    home: Path,
    env: Mapping[str, str],
    detection: ModuleType,
    *,
    find: Callable[[], Awaitable[Sequence[LocalServer]]] = find_local_servers,
    run: Callable[..., Awaitable[int]] = run_panpan_here,
) -> Any:
    """Show the menu until there is a model, and return it; None if the user gave a key, which determines the model.

    Args:
        ask: Asks the user.
        home: The panpan home.
        env: The environment.
        detection: Offers the small model and local servers; see `model_detection` of the local model.
        find: Looks for servers on this machine.
        run: Runs panpan with other arguments.

    Raises:
        Exit: The user leaves.
        PanpanError: The choice cannot be saved.
    """
    servers = [server for server in await find() if server.models]
    of_servers = []
    for server in servers:
        model, change = detection.asked_about(home, server)
        note = f"; changed: {change}" if change else ""
        detail = f"{clean_line(model)}; it gets your prompts and code{note}"
        of_servers.append(Option(f"Use {server.title}, which runs here", detail))
    options = [_KEY, *of_servers, _SMALL, _DEMO, _QUIT]
    while (picked := await ask.choose(TITLE, options)) is not None:
        option = options[picked]
        if option in of_servers:
            return detection.allow_server(home, servers[of_servers.index(option)])
        if option is _KEY and await log_in(ask, StoredKeys(home), env):
            return None
        if option is _SMALL and await run("local", "setup", "--yes") == 0:
            return detection.embedded_model("you set it up")
        if option is _DEMO:
            await run("demo")
        if option is _QUIT:
            break
        await ask.tell("")
    raise Exit(0)
