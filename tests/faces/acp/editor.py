"""An editor for tests: it speaks to `panpan acp` over pipes and holds every message against the protocol's schema."""

import json
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import anyio
from anyio import create_task_group
from jsonschema import Draft202012Validator

from panpan.cli_kit.failures import StdoutWriter
from panpan.cli_kit.stdin import StdinReader
from panpan.faces.acp.connection import Connection
from panpan.faces.acp.server import AcpServer
from panpan.session.capability import Capability
from panpan.session.frontend import SessionOptions
from tests.capabilities.mcp.place import Place
from tests.prepared_command import PREPARED

ROOT = Path(__file__).parents[3]
FORMS: Mapping[str, Any] = {"elicitation": {"form": {}}}


class Schema:
    """Messages of a version of the protocol.

    Args:
        definitions: Its definitions by name.
        further: Definitions of responses that it does not name, by method.
    """

    def __init__(self, definitions: Mapping[str, Any], further: Mapping[str, str] | None = None) -> None:
        self._definitions = definitions
        self._further = further or {}
        self._validators: dict[str, Draft202012Validator] = {}

    def _names(self, ending: str) -> Mapping[str, str]:
        """Return the names of definitions by their method."""
        found = {
            one["x-method"]: name
            for name, one in self._definitions.items()
            if name.endswith(ending) and isinstance(one, dict) and "x-method" in one
        }
        return {**found, **(self._further if ending == "Response" else {})}

    def problems_of(self, message: Mapping[str, Any], methods: Mapping[Any, str]) -> Iterator[str]:
        """Yield what is wrong with a message.

        Args:
            message: The message.
            methods: Methods of the requests that it may answer, by id.
        """
        if message.get("jsonrpc") != "2.0":
            yield "no JSON-RPC 2.0"
        if "method" in message:
            ending = "Request" if "id" in message else "Notification"
            name, value = self._names(ending).get(message["method"]), message.get("params")
        elif "result" in message:
            name, value = self._names("Response").get(methods.get(message["id"], "")), message["result"]
        else:
            name, value = "Error", message.get("error")
        if name is None:
            yield f"of no method of the protocol: {message}"
            return
        if name not in self._validators:
            self._validators[name] = Draft202012Validator(
                {"$ref": f"#/$defs/{name}", "$defs": self._definitions},
            )
        yield from (f"{name}: {error.message[:300]}" for error in self._validators[name].iter_errors(value))


FIRST = Schema(
    json.loads((Path(__file__).parent / "schema.json").read_text())["$defs"], {"session/fork": "NewSessionResponse"}
)
"""Version 1, and what panpan has beside it."""
problems_of = FIRST.problems_of


class AgentError(Exception):
    """The agent answered with an error."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error["message"])
        self.code = error["code"]


Answer = Callable[[str, dict[str, Any]], Any]
"""Returns the result for a request of the agent, an `AgentError`, or None to leave it open."""


def chooses(option: str) -> Answer:
    """Return an editor whose user chooses an option of each question."""
    return lambda method, params: {"outcome": {"outcome": "selected", "optionId": option}}


yes = chooses("y")


def silent(method: str, params: dict[str, Any]) -> None:
    """Answer nothing."""


class Editor:
    """The client side of a connection, in version 1.

    Args:
        stdin: Where messages of the agent come from.
        stdout: Where ours go.
        answer: Answers requests of the agent.
    """

    schema: ClassVar[Schema] = FIRST

    def __init__(self, stdin: StdinReader, stdout: StdoutWriter, answer: Answer = yes) -> None:
        self._stdin = stdin
        self._stdout = stdout
        self.answer = answer
        self.messages: list[dict[str, Any]] = []
        """All messages of the agent."""
        self.problems: list[str] = []
        self.has_ended = False
        self._methods: dict[Any, str] = {}
        self._news = anyio.Event()
        self._number = 0

    async def listen(self) -> None:
        """Take messages until the agent closes its output."""
        while (line := await self._stdin.line()) is not None:
            message = json.loads(line)
            if len(line.decode().splitlines()) != 1:
                self.problems.append("some readers take the line for several")
            self.problems += self.schema.problems_of(message, self._methods)
            self.messages.append(message)
            self._tell()
            if "method" in message and "id" in message:
                result = self.answer(message["method"], message["params"])
                if isinstance(result, AgentError):
                    error = {"code": result.code, "message": str(result)}
                    await self.send({"jsonrpc": "2.0", "id": message["id"], "error": error})
                elif result is not None:
                    await self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
        self.has_ended = True
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, anyio.Event()
        news.set()

    async def send(self, message: Any) -> None:
        """Send a message; bytes as they are."""
        raw = message.decode(errors="surrogateescape") if isinstance(message, bytes) else f"{json.dumps(message)}\n"
        await self._stdout.write(raw)

    async def until(self, is_so: Callable[[], Any]) -> None:
        """Wait until something is so."""
        while not is_so():
            assert not self.has_ended, "the agent has gone"
            await self._news.wait()

    async def begin(self, method: str, **params: Any) -> int:
        """Send a request, and return its id."""
        return await self.begin_with(method, params)

    async def begin_with(self, method: str, params: Any) -> int:
        """Do the same with any parameters."""
        self._number += 1
        number, self._methods[self._number] = self._number, method
        await self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    async def reply(self, number: Any) -> Any:
        """Return the result for a request; AgentError if it is an error."""
        await self.until(lambda: self.replies(number))
        (message,) = self.replies(number)
        if "error" in message:
            raise AgentError(message["error"])
        return message["result"]

    def replies(self, number: Any) -> list[dict[str, Any]]:
        """Return the replies to a request."""
        return [one for one in self.messages if "method" not in one and one.get("id") == number]

    async def request(self, method: str, **params: Any) -> Any:
        """Send a request, and return the result."""
        return await self.reply(await self.begin(method, **params))

    async def notify(self, method: str, **params: Any) -> None:
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def initialize(self, **capabilities: Any) -> Any:
        return await self.request("initialize", protocolVersion=1, clientCapabilities=capabilities)

    async def new(self, folder: Path, **params: Any) -> str:
        """Begin a session, and return its id."""
        result = await self.request("session/new", cwd=str(folder), **{"mcpServers": [], **params})
        return str(result["sessionId"])

    async def prompt(self, session: str, text: str = "go") -> str:
        """Send words, and return how the turn ended."""
        result = await self.request("session/prompt", sessionId=session, prompt=[{"type": "text", "text": text}])
        return str(result["stopReason"])

    def updates(self, kind: str = "", session: str = "") -> Sequence[dict[str, Any]]:
        """Return the updates of a kind, and of a session."""
        notes = [one["params"] for one in self.messages if one.get("method") == "session/update"]
        return [
            one["update"]
            for one in notes
            if one["update"]["sessionUpdate"].startswith(kind) and session in ("", one["sessionId"])
        ]

    @property
    def sessions(self) -> set[str]:
        """Sessions that the agent has spoken of."""
        return {one["params"]["sessionId"] for one in self.messages if "sessionId" in one.get("params", {})}

    def text(self, session: str = "") -> str:
        """Return what the model has said."""
        return "".join(one["content"]["text"] for one in self.updates("agent_message_chunk", session))

    def asked(self, method: str = "session/request_permission") -> Sequence[dict[str, Any]]:
        """Return the questions of the agent."""
        return [one["params"] for one in self.messages if one.get("method") == method and "id" in one]


@contextmanager
def pipes() -> Iterator[tuple[StdinReader, StdoutWriter]]:
    """Yield the two ends of a pipe."""
    read, write = os.pipe()
    with os.fdopen(read) as out, os.fdopen(write, "w") as into:
        yield StdinReader(out), StdoutWriter(into)


@asynccontextmanager
async def editing(
    place: Place,
    *uses: Any,
    answer: Answer = yes,
    client: Mapping[str, Any] | None = None,
    capabilities: Sequence[type[Capability]] = (),
    **overrides: Any,
) -> AsyncGenerator[Editor, None]:
    """Serve an editor in this process, with a model that makes calls; every message has to fit the schema.

    Args:
        place: The project.
        uses: Calls of the model, one a reply, and words that end a turn.
        answer: Answers requests of the agent.
        client: Abilities of the editor.
        capabilities: Further features of its sessions.
        overrides: Settings, with two underscores for a dot.
    """
    options = options_of(place, uses, capabilities, overrides)
    async with served(AcpServer, Editor, place, options, answer) as editor:
        await editor.initialize(**(client or {}))
        yield editor


def options_of(
    place: Place, uses: Sequence[Any], capabilities: Sequence[type[Capability]], overrides: Mapping[str, Any]
) -> SessionOptions:
    """Return the options of the sessions."""
    settings = {"model": place.tape(*uses), "sandbox.mode": "off"}
    settings |= {key.replace("__", "."): value for key, value in overrides.items()}
    return {"env": place.env, "overrides": settings, "capabilities": capabilities}


EditorT = TypeVar("EditorT", bound=Editor)


@asynccontextmanager
async def served(
    server: type[AcpServer], editor_type: type[EditorT], place: Place, options: SessionOptions, answer: Answer
) -> AsyncGenerator[EditorT, None]:
    """Serve an editor, before its first message.

    Args:
        server: Type of the server.
        editor_type: Type of the editor.
        place: The project.
        options: Options of all sessions.
        answer: Answers requests of the agent.
    """
    with pipes() as (stdin, to_agent), pipes() as (from_agent, stdout):
        connection = Connection(stdin, stdout, place.warnings.append)
        editor = editor_type(from_agent, to_agent, answer)
        async with create_task_group() as group:
            group.start_soon(editor.listen)
            group.start_soon(server(options, connection, place.warnings.append).serve)
            yield editor
            group.cancel_scope.cancel("the editor is closed")
    assert editor.problems == []


def command(place: Place, *uses: Any) -> list[str]:
    """Return the command line of the real program."""
    return program(place, "--model", place.tape(*uses), "--sandbox", "off", "acp")


def program(place: Place, *words: str) -> list[str]:
    """Return the command line of the real program with any arguments."""
    return PREPARED.argv(*words, env=place.env)
