"""A title that a small model makes of what the user said first, beside the work and never in its way.

The rule: nothing waits for it, nothing fails for it, and it goes only where the user has sent such a prompt anyway: to
the same provider at the same address, unless he has asked for it in his settings.
"""

import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import cache
from importlib.resources import files

from anyio import move_on_after, to_thread

from panpan.config.sources import load_settings
from panpan.config.vendors import vendor_named
from panpan.errors import PanpanError
from panpan.llm.factory import AnswerWishes, ResolvedModel, create_client, resolve_from
from panpan.services.budgets.budget import Budget
from panpan.services.budgets.budgeted_model import BudgetedModel
from panpan.services.sessions.setup import Setup
from panpan.system.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.llm import ModelClient, ModelRequest
from panpan.types.messages import AssistantMessage, UserMessage

CHEAP = "fast"
"""Alias of the model that is asked."""
MAX_PROMPT_CHARS = 2_000
"""Of what the user said."""
MAX_TITLE_CHARS = 80
TIME_LIMIT_S = 60.0
_MAX_OUTPUT_TOKENS = 1_000
"""With what some models think before."""
_AROUND = re.compile(r"^[\s\"'“”„«»`*#]*(title\s*:)?[\s\"'“”„«»`*#]*|[\s\"'“”„«»`*.]+$", re.IGNORECASE)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MadeTitle:
    """What came of asking for one."""

    title: str
    """On one line; empty where the model sent none."""
    reply: AssistantMessage
    """What the model sent, for what it cost."""


def title_maker(
    setup: Setup, budget: Budget, *, is_attended: bool
) -> Callable[[str], Awaitable[MadeTitle | None]] | None:
    """Return what makes a title of a prompt, or None where titles are the first words.

    Args:
        setup: The session's.
        budget: Pays for it; where it cannot, there is none.
        is_attended: Whether a user watches; where nobody does, only the setting "model" lets it cost anything.
    """
    wanted = setup.settings.sessions.title
    if wanted == "first-words" or (wanted == "auto" and not is_attended) or setup.profile.fits_window:
        return None

    async def make(prompt: str) -> MadeTitle | None:
        try:
            model = await to_thread.run_sync(cheap_model, setup)
            return None if model is None else await _asked(model, prompt, budget)
        except Exception as error:  # whatever is wrong with it, the session goes on
            log.debug("no title", extra={"error": repr(error)})
            return None

    return make


def cheap_model(setup: Setup) -> ResolvedModel | None:
    """Return the small model that belongs to the session's, or None where none is known.

    Known is the one that the user's settings call `fast`; else that of the session's provider, if it has one, its price
    is known, and the requests go to the provider's own address.
    """
    session, wanted = setup.model, setup.settings.sessions.title
    vendor = vendor_named(session.provider)
    is_own_alias = CHEAP in setup.settings.aliases
    if not is_own_alias and (vendor is None or vendor.base_url.rstrip("/") != session.base_url.rstrip("/")):
        return None
    overrides = {**setup.overrides, "model": CHEAP, **({} if is_own_alias else {"provider": session.provider})}
    try:
        loaded = load_settings(setup.cwd, setup.env, overrides, setup.locations, trust=setup.loaded.trust)
        model = resolve_from(loaded, setup.env)
    except PanpanError as error:
        log.debug("no small model", extra={"error": repr(error)})
        return None
    is_same_place = (model.provider, model.base_url) == (session.provider, session.base_url)
    if not is_same_place and wanted != "model":
        return None
    is_price_known = model.facts.price is not None
    return model if is_price_known or (is_own_alias and setup.settings.max_budget_usd is None) else None


async def _asked(model: ResolvedModel, prompt: str, budget: Budget) -> MadeTitle | None:
    client = create_client(model, AnswerWishes(max_output_tokens=_MAX_OUTPUT_TOKENS, max_tries=1))
    try:
        with move_on_after(TIME_LIMIT_S):
            return await made_title(BudgetedModel(client, budget), prompt)
    finally:
        with move_on_after(1, shield=True):
            await client.aclose()
    return None


async def made_title(llm: ModelClient, prompt: str) -> MadeTitle | None:
    """Ask a model for a title.

    Args:
        llm: The model.
        prompt: What the user said first.

    Raises:
        ProviderError: It could not be asked.
    """
    text = f"<prompt>\n{prompt[:MAX_PROMPT_CHARS]}\n</prompt>"
    request = ModelRequest(_system_prompt(), (), (UserMessage.of(text),))
    reply: AssistantMessage | None = None
    async with aclosing(llm.stream(request)) as events:
        async for event in events:
            if isinstance(event, AssistantMessage):
                reply = event
    return None if reply is None else MadeTitle(title_in(reply), reply)


def title_in(reply: AssistantMessage) -> str:
    """Return the title that a reply is; empty where it is none."""
    if reply.stop_reason != "end_turn" or reply.tool_uses:
        return ""
    line = next((line for line in map(clean_line, reply.text.splitlines()) if line), "")
    title = _AROUND.sub("", line).strip()
    return title if len(title) <= MAX_TITLE_CHARS else f"{title[: MAX_TITLE_CHARS - 1].rstrip()}…"


@cache
def _system_prompt() -> str:
    return files(__package__).joinpath("title_prompt.md").read_text(encoding="utf-8").strip()
