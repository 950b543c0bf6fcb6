"""What the user said of the model servers on this machine, and whether it still holds.

The rule: an answer is about a program of one user at an address, and yes is about models that were named. Whatever
listens there later is asked about anew where it differs in that: another user's process may have taken the port, and a
model may be one that its server passes on to somebody else's machine. Further models at the same server change nothing.
"""

import json
import pwd
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Self

from panpan.errors import ConfigError
from panpan.models.local_servers import LocalServer
from panpan.system.files.atomic_write import write_atomic
from panpan.system.files.private import make_private_folder
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.types.dataclass import dataclass

_MAX_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class Answer:
    """What the user said of a server, and what that was."""

    is_allowed: bool
    program: str
    user: int | None
    models: tuple[str, ...]
    """Which he allowed; where he did not, which he was asked about."""

    @classmethod
    def to(cls, server: LocalServer, model: str, is_allowed: bool, before: Self | None) -> Self:
        """Return the answer to the question about a server and one of its models.

        Args:
            server: The server.
            model: The model that was named.
            is_allowed: What the user said.
            before: What he had said; the models that he allowed then stay allowed at the same program.
        """
        stays = before is not None and before.is_allowed and is_allowed and before.is_about(server)
        models = (*before.models, model) if before is not None and stays else (model,)
        return cls(is_allowed, server.program, server.user, models)

    @classmethod
    def of(cls, kept: object) -> Self | None:
        """Return what was kept; None of what no answer was kept as."""
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
        """Whether the program that listens is the one that the user was asked about, as far as can be told."""
        return (self.program, self.user) == (server.program, server.user)

    def model_of(self, server: LocalServer) -> str | None:
        """Return the first model of a server that is among these."""
        return next((model for model in server.models if model in self.models), None)

    def outdated_by(self, server: LocalServer) -> str:
        """Return why the answer does not hold for what listens there now; empty where it does."""
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
        """Return what the user said of what listens at the address of a server; None: he was not asked.

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
            raise ConfigError(f"{self._path} cannot be read ({exc}); mend or remove it") from exc
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
