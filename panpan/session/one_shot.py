"""One question to a model outside of the conversation, such as for a title or about a page."""

import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from functools import cache, partial
from importlib.resources import files

from anyio import fail_after, move_on_after, to_thread

from panpan.config.models import vendor_named
from panpan.config.sources import load_settings
from panpan.errors import PanpanError
from panpan.models.factory import GenerationOptions, ResolvedModel, create_client, resolve_from
from panpan.session.budget.budget import Budget
from panpan.session.budget.budgeted_model import BudgetedModel
from panpan.session.setup import SessionSetup
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.llm import ModelClient, ModelRequest
from panpan.types.messages import AssistantMessage, UserMessage
from panpan.types.pattern import compile_late

SMALL = "fast"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """Question to a model, with limits on its answer."""

    system_prompt: str
    text: str
    max_output_tokens: int
    """Longest answer, including the thinking of models that think first."""
    time_limit_s: float = 60.0


def small_model(setup: SessionSetup, *, may_be_elsewhere: bool = False) -> ResolvedModel:
    """Return the small model that belongs to the session's, or the session's own where none is known, as at a gateway.

    Known is the one that the user's settings call `fast`, which `may_be_elsewhere`; else that of the session's
    provider, if it has one, its price is known, and the requests go to the provider's own address.
    """
    return _known_small_model(setup, may_be_elsewhere) or setup.model


def model_beside(setup: SessionSetup, name: str) -> ResolvedModel:
    """Return the model of a name at the provider of the session's; the small model for an empty name.

    Raises:
        ConfigError: There is none of this name there.
    """
    return setup.with_model(name, only_here=True).model if name else small_model(setup)


def _known_small_model(setup: SessionSetup, may_be_elsewhere: bool) -> ResolvedModel | None:
    session = setup.model
    vendor = vendor_named(session.provider)
    is_own_alias = SMALL in setup.settings.aliases
    if not is_own_alias and (vendor is None or vendor.base_url.rstrip("/") != session.base_url.rstrip("/")):
        return None
    overrides = {**setup.overrides, "model": SMALL, **({} if is_own_alias else {"provider": session.provider})}
    try:
        loaded = load_settings(setup.cwd, setup.env, overrides, setup.locations, trust=setup.loaded.trust)
        model = resolve_from(loaded, setup.env, kinds=setup.kinds)
    except PanpanError as error:
        log.debug("no small model", extra={"error": repr(error)})
        return None
    is_same_place = (model.provider, model.base_url) == (session.provider, session.base_url)
    if not is_same_place and not may_be_elsewhere:
        return None
    is_price_known = model.facts.price is not None
    return model if is_price_known or (is_own_alias and setup.settings.max_budget_usd is None) else None


async def ask_model(model: ResolvedModel, question: Question, budget: Budget) -> AssistantMessage | None:
    """Ask a model once, over a client of its own; None if it sent nothing whole.

    Raises:
        BudgetError: The budget cannot pay for it.
        ProviderError: It could not be asked.
        TimeoutError: It did not answer in time.
    """
    client = create_client(model, GenerationOptions(max_output_tokens=question.max_output_tokens, max_tries=1))
    try:
        with fail_after(question.time_limit_s):
            return await reply_to(BudgetedModel(client, budget), question.system_prompt, question.text)
    finally:
        with move_on_after(1, shield=True):
            await client.aclose()


async def reply_to(llm: ModelClient, system_prompt: str, text: str) -> AssistantMessage | None:
    """Return the reply of a model to a text; None if it sent nothing whole."""
    request = ModelRequest(system_prompt, (), (UserMessage.of(text),))
    reply: AssistantMessage | None = None
    async with aclosing(llm.stream(request)) as events:
        async for event in events:
            if isinstance(event, AssistantMessage):
                reply = event
    return reply


MAX_PROMPT_CHARS = 2_000
MAX_TITLE_CHARS = 80
TIME_LIMIT_S = 60.0
_MAX_OUTPUT_TOKENS = 1_000
"""Longest answer, including the thinking of models that think first."""
_AROUND = compile_late(r"^[\s\"'“”„«»`*#]*(title\s*:)?[\s\"'“”„«»`*#]*|[\s\"'“”„«»`*.]+$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class GeneratedTitle:
    """Title that a model gave, and its cost."""

    title: str
    """Title on one line; empty if the model sent none."""
    reply: AssistantMessage
    """The model's whole reply, which tells the cost."""


def title_generator(
    setup: SessionSetup, budget: Budget, *, is_interactive: bool, warn: Callable[[str], None]
) -> Callable[[str], Awaitable[GeneratedTitle | None]] | None:
    """Return what makes a title of a prompt, or None if titles are the first words.

    Where no user watches, only the setting "model" lets it cost anything.
    """
    wanted = setup.settings.sessions.title
    if wanted == "first-words" or (wanted == "auto" and not is_interactive) or setup.profile.fits_window:
        return None

    find_model = partial(small_model, setup, may_be_elsewhere=wanted == "model")

    async def make(prompt: str) -> GeneratedTitle | None:
        try:
            model = await to_thread.run_sync(find_model)
            if model is setup.model and wanted == "auto" and model.is_local:
                return None  # it would evict the conversation from its cache, and delay the user's turn
            reply = await ask_model(model, title_question(prompt), budget)
            return None if reply is None else GeneratedTitle(title_in(reply), reply)
        except Exception as error:  # the session goes on, whatever is wrong
            log.debug("no title", extra={"error": repr(error)})
            why = str(error) or "no answer came in time"
            warn(f'the session got no title: {clean_line(why)}; [sessions] title = "first-words" asks for none')
            return None

    return make


def title_question(prompt: str) -> Question:
    """Return the question for a title of what the user said first."""
    text = f"<prompt>\n{prompt[:MAX_PROMPT_CHARS]}\n</prompt>"
    return Question(_system_prompt(), text, _MAX_OUTPUT_TOKENS, TIME_LIMIT_S)


def title_in(reply: AssistantMessage) -> str:
    """Return the title that a reply is; empty if it is none."""
    if reply.stop_reason != "end_turn" or reply.tool_uses:
        return ""
    line = next((line for line in map(clean_line, reply.text.splitlines()) if line), "")
    title = _AROUND.sub("", line).strip()
    return title if len(title) <= MAX_TITLE_CHARS else f"{title[: MAX_TITLE_CHARS - 1].rstrip()}…"


@cache
def _system_prompt() -> str:
    return files(__package__).joinpath("title_prompt.md").read_text(encoding="utf-8").strip()
