"""Every error that panpan raises on purpose; anything else that is raised is a bug.

    PanpanError                  exit 1: the turn failed
    ├── ConfigError              exit 2: the user can fix it
    │   ├── SessionError         the session named cannot be opened
    │   │   ├── SessionHeldError another process has it open; carries `session_id`
    │   │   └── SessionVanishedError its log was removed while it was opened
    │   └── NothingToCompactError  the conversation is as short as it gets
    ├── ProviderError            the model could not be asked, or answered nonsense
    │   ├── AuthenticationError  the key is missing, wrong or has no rights
    │   ├── ContextOverflowError the request is longer than the model's context window
    │   ├── CassetteError        the tape does not fit the conversation
    │   └── RetryableError       worth another try; carries `retry_after_s`
    │       ├── RateLimitError   the provider asks for a pause
    │       └── StreamError      the reply was cut, stalled or damaged on its way
    ├── SessionLogError          messages could not be written to the session's log
    ├── SnapshotError            the files of the workspace could not be kept, or not be brought back
    ├── OutputError              the answer, or an export, could not be written
    ├── StructuredOutputError    the model gave no answer that fits the JSON schema
    ├── TurnLimitError           exit 3: the turn asked for too many rounds
    ├── BudgetError              exit 4: the money set for it is spent, or cannot be counted
    ├── AnswerNeededError        exit 5: only the user can decide; also ends a run in which every call was refused
    │   └── UnfinishedCallError  exit 6: only the user knows the outcome of a call that a crash cut off
    └── ToolError                becomes a tool_result with is_error; never ends the turn

Messages state the problem and what to do, for the user: lower case, no full stop, no traceback.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import ClassVar, Literal


class PanpanError(Exception):
    """Root of the tree; `exit_code` is what the command line ends with."""

    exit_code: ClassVar[int] = 1
    may_pass: ClassVar[bool] = False
    """True if the same may succeed later although nobody changes anything."""


class ConfigError(PanpanError):
    """A flag, setting, key, path or file is wrong in a way that the user can fix."""

    exit_code = 2


class SessionError(ConfigError):
    """The session that was named does not exist, is held by another process, or cannot be read."""


class SessionHeldError(SessionError):
    """Another process has the session open."""

    may_pass = True

    def __init__(self, message: str, session_id: str) -> None:
        super().__init__(message)
        self.session_id = session_id


class SessionVanishedError(SessionError):
    """The session's log was removed while it was opened, as when a panpan that wrote nothing into it ends."""

    may_pass = True


class NothingToCompactError(ConfigError):
    """The conversation cannot be made shorter, since all of it is short or recent."""


class SessionLogError(PanpanError):
    """The session's log could not be written, as on a full disk; its messages stay in memory meanwhile."""


class SnapshotError(PanpanError):
    """A snapshot of the workspace could not be taken or restored; the user's files are unchanged."""


class OutputError(PanpanError):
    """The answer could not be written to standard output, or an export to its file."""


class ProviderError(PanpanError):
    """The model could not be asked, or sent no message.

    Args:
        message: What happened, for the user.
        provider: Name of the provider, such as "anthropic".
        status: HTTP status of the answer, if there was one.
        request_id: The provider's own id of the request, for its support.
    """

    def __init__(
        self, message: str, *, provider: str = "", status: int | None = None, request_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.status = status
        self.request_id = request_id


class AuthenticationError(ProviderError):
    """The provider does not accept the key (401, 403)."""


class ContextOverflowError(ProviderError):
    """The request does not fit into the model's context window; sending it again cannot help."""


class CassetteError(ProviderError):
    """A cassette is damaged, or the requests no longer fit what was recorded."""


class RetryableError(ProviderError):
    """A failure that may pass: 5xx, 529, a connection that was refused or dropped.

    Args:
        message: What happened, for the user.
        provider: Name of the provider.
        status: HTTP status of the answer, if there was one.
        request_id: The provider's own id of the request.
        retry_after_s: Seconds that the provider asked to wait, if it did.
    """

    may_pass = True

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int | None = None,
        request_id: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, provider=provider, status=status, request_id=request_id)
        self.retry_after_s = retry_after_s


class RateLimitError(RetryableError):
    """The provider asks for a pause (429)."""


class StreamError(RetryableError):
    """A reply that began did not arrive whole: cut, stalled, or not readable."""


class StructuredOutputError(PanpanError):
    """The model gave no answer that fits the JSON schema of the session, as often as it was told why."""


class TurnLimitError(PanpanError):
    """The turn asked for more rounds than it may."""

    exit_code = 3


class BudgetError(PanpanError):
    """The money set for the work is spent, or the model's price is not known."""

    exit_code = 4


class AnswerNeededError(PanpanError):
    """The work cannot go on without an answer of the user, and nobody is there to give it.

    Args:
        message: The problem and what to do, for the user.
        kind: Kind of the question.
        question: The question alone; empty if the message says it all.
        choices: Answers that are offered.
        allowed_with: Words of a command line that allow what was asked.
    """

    exit_code = 5

    def __init__(
        self,
        message: str,
        *,
        kind: Literal["question", "permission", "plan", "unfinished"] = "question",
        question: str = "",
        choices: Sequence[str] = (),
        allowed_with: Sequence[str] = (),
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.question = question or message
        self.choices = choices
        self.allowed_with = allowed_with


class HookRefusedError(PanpanError):
    """A hook of the user refused a message, or ended the turn."""


class UnfinishedCallError(AnswerNeededError):
    """An earlier run ended while a call ran, nobody knows whether it did its work, and nobody is there to ask."""

    exit_code = 6


class ToolError(PanpanError):
    """A tool could not do what it was asked.

    Args:
        problem: The reason, for people and the model.
        advice: What the model may call next, which people are not shown.
    """

    def __init__(self, problem: str, *, advice: str = "") -> None:
        super().__init__("; ".join(filter(None, (problem, advice))))
        self.problem, self.advice = problem, advice


@contextmanager
def unwrap_single_exception() -> Generator[None, None, None]:
    """Raise the exception inside a group that holds only one, as a task group makes of its body's error."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from error.__cause__
