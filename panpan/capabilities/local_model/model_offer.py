"""Finds a model where nothing says which: a server on this machine, else the embedded model, else says what to do.

The rule: a server that was found gets nothing before the user said yes to it, once; what he said is kept below the
panpan home and holds until he changes it there, or until something else listens at the address (`known_servers`).
"""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from panpan.capabilities.local_model.known_servers import Answer, KnownAnswers
from panpan.capabilities.local_model.warm_up import MODEL_NAME
from panpan.errors import ConfigError, PanpanError
from panpan.models.local_servers import LocalServer, advice_without_model, find_local_servers
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.dataclass import dataclass

ANSWERS_FILE = "local_servers.json"

Ask = Callable[[str], Awaitable[bool | None]]
"""Puts a question that is answered with yes or no; None: the user did not answer it."""


@dataclass(frozen=True, slots=True)
class OfferedModel:
    """A model that is used since nothing says which."""

    name: str
    """As for `--model`."""
    reason: str
    """Why this one, as half a sentence."""


async def offered_model(
    home: Path,
    *,
    has_embedded: bool,
    ask: Ask | None,
    say: Callable[[str], None],
    find: Callable[[], Awaitable[tuple[LocalServer, ...]]] = find_local_servers,
) -> OfferedModel:
    """Return what to use, after saying on one line which and why.

    Args:
        home: The panpan home, where answers are kept.
        has_embedded: Whether the embedded model is set up.
        ask: Asks the user; None: nobody is there.
        say: Told which model was taken and why.
        find: Looks for model servers on this machine.

    Raises:
        ConfigError: There is none; says the ways to get one.
    """
    found = await find()
    answers = KnownAnswers(home / ANSWERS_FILE)
    for server in (server for server in found if server.models):
        if (model := await _allowed_model(server, answers, ask)) is not None:
            offered = OfferedModel(f"{server.provider}/{model}", f"{server.title} runs here and you allowed it")
            say(f"using {clean_for_terminal(offered.name)}, since {offered.reason}")
            return offered
    if has_embedded:
        offered = OfferedModel(MODEL_NAME, f"no key is set and {_why_no_server(found)}")
        say(f"using the small local model, since {offered.reason}")
        return offered
    raise ConfigError(advice_without_model(found))


def has_embedded_model(env: Mapping[str, str]) -> bool:
    """Return whether the embedded model is set up on this machine, and the machine can run it."""
    from panpan.capabilities.local_model.weight_store import embedded_store
    from panpan.capabilities.local_model.weights import require_machine

    try:
        require_machine()
        embedded_store(env).require_ready()
    except ConfigError:
        return False
    return True


async def _allowed_model(server: LocalServer, answers: KnownAnswers, ask: Ask | None) -> str | None:
    """Return the model of a server that the user allowed, now or before; None where he allowed none."""
    known = answers.of(server)
    change = known.outdated_by(server) if known is not None else ""
    if known is not None and not change:
        return known.model_of(server) if known.is_allowed else None
    if ask is None:
        return None
    model = (known.model_of(server) if known is not None else None) or server.models[0]
    is_allowed = await ask(_question(server, model, change))
    if is_allowed is None:
        return None
    try:
        answers.keep(server, Answer.to(server, model, is_allowed, known))
    except PanpanError as exc:
        raise ConfigError(f"your answer could not be kept: {exc}") from exc
    return model if is_allowed else None


def _question(server: LocalServer, model: str, change: str) -> str:
    more = f" and {len(server.models) - 1} more" if len(server.models) > 1 else ""
    since = f" Since you were asked, something changed: {change}." if change else ""
    return (
        f"{server.title} runs at {server.base_url} with {clean_for_terminal(model)}{more}.{since}\n"
        "May it be sent your prompts and code, now and in future? [y/n] "
    )


def _why_no_server(found: tuple[LocalServer, ...]) -> str:
    return "no model server runs here" if not found else "none of the servers here was allowed"
