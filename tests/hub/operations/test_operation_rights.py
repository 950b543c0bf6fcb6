"""Each operation has an address and a summary, and is refused to whoever has no right to it."""

from typing import Any

import pytest

from panpan.faces.server.openapi import document
from panpan.faces.server.routes import SERVER_ADDRESSES, SERVER_TABLE, SESSION_ADDRESSES, SESSION_TABLE
from panpan.hub.operations.table import Caller, ForbiddenError, NotFoundError, Operation

SERVER = list(SERVER_TABLE.operations.values())
SESSION = list(SESSION_TABLE.operations.values())
LOOKS = {
    "health.get",
    "projects.list",
    "sessions.list",
    "session.get",
    "session.messages",
    "session.wait",
    "session.context",
    "session.config",
    "status.get",
    "questions.list",
    "questions.answers",
    "todos.list",
    "tasks.list",
    "tasks.output",
    "models.list",
    "files.find",
    "files.read",
    "changes.list",
}
"""Operations that change nothing; all others need the right to write."""


def table_of(operation: Operation[Any]) -> Any:
    return SERVER_TABLE if operation in SERVER else SESSION_TABLE


def named(operation: Operation[Any]) -> str:
    return operation.name


def test_each_operation_has_one_address_and_a_summary() -> None:
    addresses = [*SERVER_ADDRESSES, *SESSION_ADDRESSES]
    described = [one for path in document()["paths"].values() for one in path.values()]

    assert sorted(one.operation for one in addresses) == sorted(map(named, [*SERVER, *SESSION]))
    assert len({(one.verb, one.path) for one in addresses}) == len(addresses)
    assert len({one["operationId"] for one in described}) == len(described) == len(addresses) + 3
    assert all(one["summary"] and "\n" not in one["summary"] for one in described)


def test_operations_that_write_have_no_get() -> None:
    reading = {one.operation for one in (*SERVER_ADDRESSES, *SESSION_ADDRESSES) if one.verb == "GET"}

    assert reading == LOOKS
    assert {one.name for one in (*SERVER, *SESSION) if one.need == "read"} == LOOKS


@pytest.mark.parametrize("operation", [one for one in (*SERVER, *SESSION) if one.name not in LOOKS], ids=named)
async def test_caller_that_only_reads_writes_nothing(operation: Operation[Any]) -> None:
    with pytest.raises(ForbiddenError, match="only reads"):
        await table_of(operation).call(operation.name, None, Caller("c", only_reads=True), {}, "s1")


@pytest.mark.parametrize("operation", SESSION, ids=named)
async def test_caller_of_one_session_has_no_other(operation: Operation[Any]) -> None:
    with pytest.raises(ForbiddenError, match="for one session"):
        await SESSION_TABLE.call(operation.name, None, Caller("c", "s1"), {}, "s2")  # type: ignore[arg-type]


@pytest.mark.parametrize("operation", SERVER, ids=named)
async def test_caller_of_one_session_has_no_server(operation: Operation[Any]) -> None:
    with pytest.raises(ForbiddenError, match="for one session"):
        await SERVER_TABLE.call(operation.name, None, Caller("c", "s1"), {"session": "s1"}, None)  # type: ignore[arg-type]


async def test_unknown_operation_is_refused_with_the_names() -> None:
    with pytest.raises(NotFoundError, match=r"'session\.nonsense'; these are: .*session\.send"):
        await SESSION_TABLE.call("session.nonsense", None, Caller("c"), {}, "s1")  # type: ignore[arg-type]
