"""One question to a model outside of the conversation, such as for a title or about a page.

The rule: it goes where the conversation goes anyway, the session's budget pays for it, and its time is bounded.
"""

import logging
from contextlib import aclosing

from anyio import fail_after, move_on_after

from panpan.config.sources import load_settings
from panpan.config.vendors import vendor_named
from panpan.errors import PanpanError
from panpan.models.factory import AnswerWishes, ResolvedModel, create_client, resolve_from
from panpan.session.budget.budget import Budget
from panpan.session.budget.budgeted_model import BudgetedModel
from panpan.session.setup import Setup
from panpan.types.dataclass import dataclass
from panpan.types.llm import ModelClient, ModelRequest
from panpan.types.messages import AssistantMessage, UserMessage

SMALL = "fast"
"""Alias of the model that is asked."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and how much of an answer is waited for."""

    system_prompt: str
    text: str
    max_output_tokens: int
    """With what some models think before."""
    time_limit_s: float = 60.0


def small_model(setup: Setup, *, may_be_elsewhere: bool = False) -> ResolvedModel:
    """Return the small model that belongs to the session's, or the session's own where none is known, as at a gateway.

    Known is the one that the user's settings call `fast`; else that of the session's provider, if it has one, its price
    is known, and the requests go to the provider's own address.

    Args:
        setup: The session's.
        may_be_elsewhere: Whether the one that the settings name may be of another provider, or at another address.
    """
    return _known_small_model(setup, may_be_elsewhere) or setup.model


def _known_small_model(setup: Setup, may_be_elsewhere: bool) -> ResolvedModel | None:
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
    """Ask a model once, over a client of its own; None where it sent nothing whole.

    Raises:
        BudgetError: The budget cannot pay for it.
        ProviderError: It could not be asked.
        TimeoutError: It did not answer in time.
    """
    client = create_client(model, AnswerWishes(max_output_tokens=question.max_output_tokens, max_tries=1))
    try:
        with fail_after(question.time_limit_s):
            return await reply_to(BudgetedModel(client, budget), question.system_prompt, question.text)
    finally:
        with move_on_after(1, shield=True):
            await client.aclose()


async def reply_to(llm: ModelClient, system_prompt: str, text: str) -> AssistantMessage | None:
    """Return what a model says to a text; None where it sent nothing whole.

    Raises:
        ProviderError: It could not be asked.
    """
    request = ModelRequest(system_prompt, (), (UserMessage.of(text),))
    reply: AssistantMessage | None = None
    async with aclosing(llm.stream(request)) as events:
        async for event in events:
            if isinstance(event, AssistantMessage):
                reply = event
    return reply
