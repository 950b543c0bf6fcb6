"""A title that a small model makes of what the user said first, beside the work and never in its way.

The rule: nothing waits for it, nothing fails for it, and it goes only where the user has sent such a prompt anyway: to
the same provider at the same address, unless he has asked for it in his settings.
"""

import logging
import re
from collections.abc import Awaitable, Callable
from functools import cache, partial
from importlib.resources import files

from anyio import to_thread

from panpan.session.budget.budget import Budget
from panpan.session.setup import Setup
from panpan.session.single_question import Question, ask_model, reply_to, small_model
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass
from panpan.types.llm import ModelClient
from panpan.types.messages import AssistantMessage

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
    setup: Setup, budget: Budget, *, is_attended: bool, warn: Callable[[str], None]
) -> Callable[[str], Awaitable[MadeTitle | None]] | None:
    """Return what makes a title of a prompt, or None where titles are the first words.

    Args:
        setup: The session's.
        budget: Pays for it; where it cannot, there is none.
        is_attended: Whether a user watches; where nobody does, only the setting "model" lets it cost anything.
        warn: Told why there is none.
    """
    wanted = setup.settings.sessions.title
    if wanted == "first-words" or (wanted == "auto" and not is_attended) or setup.profile.fits_window:
        return None

    find_model = partial(small_model, setup, may_be_elsewhere=wanted == "model")

    async def make(prompt: str) -> MadeTitle | None:
        try:
            model = await to_thread.run_sync(find_model)
            if model is setup.model and wanted == "auto" and model.is_local:
                return None  # it would lose what it keeps of the conversation, and the user's turn would wait for it
            return _made_of(await ask_model(model, _question(prompt), budget))
        except Exception as error:  # whatever is wrong with it, the session goes on
            log.debug("no title", extra={"error": repr(error)})
            why = str(error) or "no answer came in time"
            warn(f'the session got no title: {clean_line(why)}; [sessions] title = "first-words" asks for none')
            return None

    return make


async def made_title(llm: ModelClient, prompt: str) -> MadeTitle | None:
    """Ask a model for a title.

    Args:
        llm: The model.
        prompt: What the user said first.

    Raises:
        ProviderError: It could not be asked.
    """
    question = _question(prompt)
    return _made_of(await reply_to(llm, question.system_prompt, question.text))


def _question(prompt: str) -> Question:
    text = f"<prompt>\n{prompt[:MAX_PROMPT_CHARS]}\n</prompt>"
    return Question(_system_prompt(), text, _MAX_OUTPUT_TOKENS, TIME_LIMIT_S)


def _made_of(reply: AssistantMessage | None) -> MadeTitle | None:
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
