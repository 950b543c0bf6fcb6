"""Finds a model where nothing says which: a server on this machine, else the embedded model, else says what to do.

The rule: a server that was found gets nothing before the user said yes to it, once. The answer is kept below the panpan
home. It holds until the user changes it there, or until something else listens at the address (`known_servers`).
"""

import json
import pwd
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Self

from panpan.capabilities.local_model.server import MODEL_NAME
from panpan.errors import ConfigError, PanpanError
from panpan.models.local_servers import LocalServer, advice_without_model, find_local_servers
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.folder_tree import make_private_folder
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.dataclass import dataclass

# A yes covers the named models of one user's program at one address. Ask again if the models or the program change:
# another user's process may have taken the port, and a server may pass a model's requests on to another machine.
# Further models at the same server need no new question.

_MAX_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Answer:
    """The user's answer about a server, with the program, user and models that it is about."""

    is_allowed: bool
    program: str
    user: int | None
    models: tuple[str, ...]
    """Models that the user allowed; after a no, the models in the question."""

    @classmethod
    def to(cls, server: LocalServer, model: str, is_allowed: bool, before: Self | None) -> Self:
        """Return the answer about a model of a server; models allowed before at the same program stay allowed."""
        stays = before is not None and before.is_allowed and is_allowed and before.is_about(server)
        models = (*before.models, model) if before is not None and stays else (model,)
        return cls(is_allowed, server.program, server.user, models)

    @classmethod
    def of(cls, kept: object) -> Self | None:
        """Return a saved answer; None if the value is not one."""
        match kept:
            case {
                "is_allowed": bool(is_allowed),
                "program": str(program),
                "user": int() | None as user,
                "models": list(models),
            }:
                return cls(is_allowed, program, user, tuple(name for name in models if isinstance(name, str)))
        return None

    def is_about(self, server: LocalServer) -> bool:
        """True if the program that listens is the one that the user was asked about, as far as can be told."""
        return (self.program, self.user) == (server.program, server.user)

    def model_of(self, server: LocalServer) -> str | None:
        """Return the first model of a server that is among these."""
        return next((model for model in server.models if model in self.models), None)

    def outdated_by(self, server: LocalServer) -> str:
        """Return the reason why the answer does not hold for the present server; empty if it does."""
        if self.program != server.program:
            return f"it calls itself {_shown(server.program)} and not {_shown(self.program)}"
        if self.user != server.user:
            return f"it runs as {_user(server.user)} and not as {_user(self.user)}"
        if self.is_allowed and self.model_of(server) is None:
            return f"it has no {clean_for_terminal(self.models[0] if self.models else 'model')}"
        return ""


class KnownAnswers:
    """The answers that were kept.

    Args:
        path: A JSON file, `{"http://127.0.0.1:11434/v1": {"is_allowed": true, ...}}`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, server: LocalServer) -> Answer | None:
        """Return the user's answer about the address of a server; None if they were not asked.

        Raises:
            ConfigError: The file cannot be understood.
        """
        return Answer.of(self._all().get(server.base_url))

    def keep(self, server: LocalServer, answer: Answer) -> None:
        """Remember an answer.

        Raises:
            PanpanError: It cannot be written.
        """
        make_private_folder(self._path.parent)
        answers = {**self._all(), server.base_url: asdict(answer)}
        write_atomic(self._path, (json.dumps(answers, indent=2) + "\n").encode(), mode=0o600, follow_symlinks=True)

    def _all(self) -> Mapping[str, object]:
        try:
            with self._path.open("rb") as file:
                answers = json.loads(file.read(_MAX_BYTES))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as exc:
            raise ConfigError(f"{self._path} cannot be read ({exc}); fix or remove it") from exc
        if not isinstance(answers, dict):
            raise ConfigError(f"{self._path} holds no answers; remove it")
        return answers


def _shown(program: str) -> str:
    return clean_for_terminal(program) or "nothing"


def _user(number: int | None) -> str:
    if number is None:
        return "a user that is not known"
    try:
        return f"the user {pwd.getpwuid(number).pw_name}"
    except KeyError:
        return f"the user {number}"


ANSWERS_FILE = "local_servers.json"

Ask = Callable[[str], Awaitable[bool | None]]
"""Puts a question that is answered with yes or no; None: the user did not answer it."""


@dataclass(frozen=True, slots=True)
class DetectedModel:
    """A model that is used since nothing says which."""

    name: str
    """Name of the model, as for `--model`."""
    reason: str
    """Reason for this one, as half a sentence."""


async def detect_model(
    home: Path,
    *,
    has_embedded: bool,
    ask: Ask | None,
    say: Callable[[str], None],
    find: Callable[[], Awaitable[tuple[LocalServer, ...]]] = find_local_servers,
) -> DetectedModel:
    """Return the model to use, after one line that names it and the reason; without `ask` nobody can be asked.

    Raises:
        ConfigError: There is none; says the ways to get one.
    """
    found = await find()
    answers = KnownAnswers(home / ANSWERS_FILE)
    for server in (server for server in found if server.models):
        if (model := await _allowed_model(server, answers, ask)) is not None:
            offered = DetectedModel(f"{server.provider}/{model}", f"{server.title} runs here and you allowed it")
            say(f"using {clean_for_terminal(offered.name)}, since {offered.reason}")
            return offered
    if has_embedded:
        why = "none of the servers here was allowed" if found else "no model server runs here"
        offered = embedded_model(f"no key is set and {why}")
        say(f"using the small local model, since {offered.reason}")
        return offered
    raise ConfigError(advice_without_model(found))


def embedded_model(reason: str) -> DetectedModel:
    """Return the embedded model."""
    return DetectedModel(MODEL_NAME, reason)


def asked_about(home: Path, server: LocalServer) -> tuple[str, str]:
    """Return the model that a yes to a server is about, and what has changed since the user was asked; empty: nothing.

    Raises:
        ConfigError: The answers cannot be understood.
    """
    return _asked_about(KnownAnswers(home / ANSWERS_FILE).of(server), server)


def _asked_about(known: Answer | None, server: LocalServer) -> tuple[str, str]:
    if known is None:
        return server.models[0], ""
    return known.model_of(server) or server.models[0], known.outdated_by(server)


def allow_server(home: Path, server: LocalServer) -> DetectedModel:
    """Return a model of a server that the user has picked, which is remembered as their yes.

    Raises:
        PanpanError: The answer cannot be kept.
    """
    answers, (model, _) = KnownAnswers(home / ANSWERS_FILE), asked_about(home, server)
    answers.keep(server, Answer.to(server, model, True, answers.of(server)))
    return DetectedModel(f"{server.provider}/{model}", f"{server.title} runs here and you allowed it")


def has_embedded_model(env: Mapping[str, str]) -> bool:
    """Return True if the embedded model is set up on this machine, and the machine can run it."""
    from panpan.capabilities.local_model.weight_store import embedded_store, require_machine

    try:
        require_machine()
        embedded_store(env).require_ready()
    except ConfigError:
        return False
    return True


async def _allowed_model(server: LocalServer, answers: KnownAnswers, ask: Ask | None) -> str | None:
    """Return the model of a server that the user allowed, now or before; None if they allowed none."""
    known = answers.of(server)
    model, change = _asked_about(known, server)
    if known is not None and not change:
        return known.model_of(server) if known.is_allowed else None
    if ask is None:
        return None
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
