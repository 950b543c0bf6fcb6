"""Asks once whether a project is trusted, where that would make a difference.

The rule: yes is about the very bytes that were read for the question. What is too long for a question is not asked
about; the user is told how to look at it.
"""

from collections.abc import Awaitable, Callable, Mapping

import anyio.to_thread

from panpan.cli.trust.trust_text import indented, trust_lines
from panpan.config.keys import shown
from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.config.trust import TrustStore, trust_of

MAX_LINES = 300
MAX_CHARS = 20_000
"""Of what is asked about; more scrolls away before it is read."""

Ask = Callable[[str], Awaitable[bool | None]]
"""Puts a question that is answered with yes or no; None: the user did not answer it."""


async def ask_for_trust(
    locations: Locations, env: Mapping[str, str], overrides: Mapping[str, object], ask: Ask, warn: Callable[[str], None]
) -> None:
    """Ask about a project that says something which counts only if it is trusted; keep the answer.

    Nobody is asked where the answer would change nothing, nor twice about the same files.

    Args:
        locations: Where the project and the panpan home are.
        env: The environment.
        overrides: Settings by dotted key, as the command line gives them.
        ask: Asks the user.
        warn: Told why he is not asked, where he should know.

    Raises:
        ConfigError: The settings are broken, or the answer cannot be kept.
    """
    trust = await anyio.to_thread.run_sync(trust_of, locations)
    if not trust.files.content or not trust.may_be_asked:
        return
    withheld = load_settings(locations.project_root, env, overrides, locations, trust=trust).withheld
    if not withheld:
        return
    lines = [*trust_lines(trust), "What its settings say and what does not count yet:", *indented(withheld)]
    if len(lines) > MAX_LINES or sum(map(len, lines)) > MAX_CHARS:
        warn(f"{shown(trust.files.root)} is not trusted and has too much to ask about; look at it with `panpan trust`")
        return
    if (answer := await ask("\n".join([*lines, "Do you trust these files? [y/n] "]))) is not None:
        await anyio.to_thread.run_sync(lambda: TrustStore(locations.home).keep(trust.files, is_trusted=answer))
