"""Finds a model where nothing says which: a server on this machine, else the embedded model, else says what to do.

The rule: a server that was found gets nothing before the user said yes to it, once; what he said is kept below the
panpan home and holds until he changes it there.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

from panpan.errors import ConfigError, PanpanError
from panpan.llm.local_servers import LocalServer, advice_without_model, find_local_servers
from panpan.llm.model_choice import EMBEDDED
from panpan.system.atomic_write import write_atomic
from panpan.system.private import make_private_folder
from panpan.system.terminal_text import clean_for_terminal

ANSWERS_FILE = "local_servers.json"
_MAX_ANSWERS_BYTES = 100_000

Ask = Callable[[str], Awaitable[bool | None]]
"""Puts a question that is answered with yes or no; None: the user did not answer it."""


async def offered_model(
    home: Path,
    *,
    has_embedded: bool,
    ask: Ask | None,
    say: Callable[[str], None],
    find: Callable[[], Awaitable[tuple[LocalServer, ...]]] = find_local_servers,
) -> str:
    """Return what to use as `--model`, after saying on one line which and why.

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
        if await _may_use(server, answers, ask):
            model = f"{server.provider}/{server.models[0]}"
            say(f"using {clean_for_terminal(model)}, since {server.title} runs here and you allowed it")
            return model
    if has_embedded:
        say(f"using the small local model, since no key is set and {_why_no_server(found)}")
        return EMBEDDED
    raise ConfigError(advice_without_model(found))


def has_embedded_model(env: Mapping[str, str]) -> bool:
    """Return whether the embedded model is set up on this machine, and the machine can run it."""
    from panpan.llm.embedded.machine import require_machine
    from panpan.llm.embedded.weight_store import embedded_store

    try:
        require_machine()
        embedded_store(env).require_ready()
    except ConfigError:
        return False
    return True


class KnownAnswers:
    """What the user said of the servers on this machine.

    Args:
        path: A JSON file, `{"http://127.0.0.1:11434/v1": true}`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, server: LocalServer) -> bool | None:
        """Return whether the user allowed a server; None: he was not asked.

        Raises:
            ConfigError: The file cannot be understood.
        """
        answer = self._all().get(server.base_url)
        return answer if isinstance(answer, bool) else None

    def keep(self, server: LocalServer, is_allowed: bool) -> None:
        """Remember an answer.

        Raises:
            PanpanError: It cannot be written.
        """
        make_private_folder(self._path.parent)
        answers = {**self._all(), server.base_url: is_allowed}
        write_atomic(self._path, (json.dumps(answers, indent=2) + "\n").encode(), mode=0o600)

    def _all(self) -> Mapping[str, object]:
        try:
            with self._path.open("rb") as file:
                answers = json.loads(file.read(_MAX_ANSWERS_BYTES))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as exc:
            raise ConfigError(f"{self._path} cannot be read ({exc}); mend or remove it") from exc
        if not isinstance(answers, dict):
            raise ConfigError(f"{self._path} holds no answers; remove it")
        return answers


async def _may_use(server: LocalServer, answers: KnownAnswers, ask: Ask | None) -> bool:
    known = answers.of(server)
    if known is not None or ask is None:
        return bool(known)
    more = f" and {len(server.models) - 1} more" if len(server.models) > 1 else ""
    answer = await ask(
        f"{server.title} runs at {server.base_url} with {clean_for_terminal(server.models[0])}{more}.\n"
        "May it be sent your prompts and code, now and in future? [y/n] "
    )
    if answer is None:
        return False
    try:
        answers.keep(server, answer)
    except PanpanError as exc:
        raise ConfigError(f"your answer could not be kept: {exc}") from exc
    return answer


def _why_no_server(found: tuple[LocalServer, ...]) -> str:
    return "no model server runs here" if not found else "none of the servers here was allowed"
