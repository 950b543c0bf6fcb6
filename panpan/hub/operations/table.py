"""Operations of clients: one table for every way that leads to panpan.

The rule: an operation checks its parameters and its caller's rights here, before it runs. A transport decides neither.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from panpan.errors import ConfigError
from panpan.hub.wire import as_json, from_json
from panpan.types.dataclass import dataclass

TargetT = TypeVar("TargetT")
Need = Literal["read", "write"]
"""Right that an operation needs."""


class Params(BaseModel):
    """Parameters of an operation; further keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class NoParams(Params):
    """An operation without parameters."""


class NotFoundError(ConfigError):
    """There is no such session, question, task or operation."""


class ForbiddenError(ConfigError):
    """The caller does not have the right."""


class BusyError(ConfigError):
    """It cannot be done while a turn runs, or while so much waits."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The client that asks for an operation."""

    name: str
    """Name in events, unique among the clients of a session."""
    only_session: str | None = None
    """Id of the one session that it may use; None for all."""
    only_reads: bool = False
    """True if it may change nothing."""
    is_host: bool = False
    """True if it may choose modes that ask less than `auto`, as the user's own terminal may."""

    def require(self, need: Need, session_id: str | None) -> None:
        """Refuse what it may not do.

        Args:
            need: Right that is needed.
            session_id: Session that it is about; None for the server.

        Raises:
            ForbiddenError: It may not.
        """
        if self.only_reads and need != "read":
            raise ForbiddenError("this access only reads; use one that may write")
        if self.only_session is not None and session_id != self.only_session:
            raise ForbiddenError("this token is for one session; use the token of the server")


@dataclass(frozen=True, slots=True)
class Operation(Generic[TargetT]):
    """Something that a client may ask for."""

    name: str
    """Name on the message bus, such as `session.send`."""
    params: type[Params]
    result: Any
    """Type of the result."""
    run: Callable[[TargetT, Caller, Any], Awaitable[object]]
    """Carries it out. Its docstring says what it does, for the list of operations."""
    need: Need = "read"

    @property
    def summary(self) -> str:
        """First line of its description."""
        return (self.run.__doc__ or "").strip().partition("\n")[0].rstrip(".")


class Table(Generic[TargetT]):
    """Operations by name.

    Args:
        operations: The operations.
    """

    def __init__(self, operations: Iterable[Operation[TargetT]]) -> None:
        self.operations: Mapping[str, Operation[TargetT]] = {one.name: one for one in operations}

    def __contains__(self, name: object) -> bool:
        return name in self.operations

    async def call(self, name: str, target: TargetT, caller: Caller, params: object, session_id: str | None) -> Any:
        """Run an operation, and return its result as JSON has it.

        Args:
            name: Name of the operation.
            target: Session or server that it works on.
            caller: Client that asks.
            params: Parameters as JSON has them.
            session_id: Session that it is about; None for the server.

        Raises:
            NotFoundError: There is no such operation.
            ForbiddenError: The caller may not.
            WireError: The parameters do not fit.
            PanpanError: It cannot be done.
        """
        operation = self.operations.get(name)
        if operation is None:
            raise NotFoundError(f"there is no method {name!r}; these are: {', '.join(self.operations)}")
        caller.require(operation.need, session_id)
        result = await operation.run(target, caller, from_json(operation.params, params or {}))
        return as_json(operation.result, result)
