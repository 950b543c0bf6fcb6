"""Search for model servers on this machine, and the advice if no model is set up.

The rule: one plain GET of a list of models to each usual port, on the loopback address only. Nothing else is ever sent,
and a server is used only if the user chooses it.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from panpan.config.models import LOCAL_PORTS
from panpan.system.text.terminal_text import clean_for_terminal
from panpan.system.web.filter_proxy import listening_user
from panpan.types.dataclass import dataclass
from panpan.types.pattern import compile_late

TIME_LIMIT_S = 0.3
MAX_ANSWER_BYTES = 1_000_000
MAX_MODELS = 100
_MAX_PROGRAM_CHARS = 100
_HOST = "127.0.0.1"
NO_CHAT = compile_late(r"embed|rerank|minilm|\bbge-", re.IGNORECASE)
"""Names of models that are not for chat; LM Studio always lists one (text-embedding-nomic-embed-text-v1.5)."""


@dataclass(frozen=True, slots=True)
class Probe:
    """A server program to look for."""

    provider: str
    """Name of its provider."""
    title: str
    port: int
    path: str
    """Path of its list of models."""


PROBES = (
    Probe("ollama", "Ollama", LOCAL_PORTS["ollama"], "/api/tags"),
    Probe("lmstudio", "LM Studio", LOCAL_PORTS["lmstudio"], "/v1/models"),
    Probe("llamacpp", "llama.cpp", LOCAL_PORTS["llamacpp"], "/v1/models"),
    Probe("vllm", "vLLM", LOCAL_PORTS["vllm"], "/v1/models"),
)


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A server that answered."""

    provider: str
    title: str
    base_url: str
    """Address for chat completions."""
    models: tuple[str, ...]
    """Names of its models; empty if it has loaded none."""
    program: str = ""
    """Program as the server names itself, without a version; empty if it does not."""
    user: int | None = None
    """Id of the user who owns its process."""

    @property
    def flag(self) -> str:
        """Option that chooses it."""
        return f"--model {self.provider}/{self.models[0] if self.models else 'NAME'}"


async def find_local_servers(
    probes: Sequence[Probe] = PROBES, *, time_limit_s: float = TIME_LIMIT_S
) -> tuple[LocalServer, ...]:
    """Return the model servers that answer on this machine, in the order of `probes`."""
    found: dict[Probe, LocalServer] = {}

    async def look(probe: Probe) -> None:
        server = await _ask(probe)
        if server is not None:
            found[probe] = server

    with anyio.move_on_after(time_limit_s):
        async with anyio.create_task_group() as task_group:
            for probe in probes:
                task_group.start_soon(look, probe)
    return tuple(found[probe] for probe in probes if probe in found)


def advice_without_model(found: Sequence[LocalServer]) -> str:
    """Return three lines: the ways to get a model, and the command for the demo."""
    if found:
        servers = " or ".join(f"{clean_for_terminal(server.flag)} ({server.title} is running)" for server in found)
    else:
        servers = f"start a model server here ({', '.join(probe.title for probe in PROBES)})"
    return "\n".join(
        (
            "no model is set up; run: panpan login, or set ANTHROPIC_API_KEY, another vendor's key or PANPAN_BASE_URL,",
            f"or use {servers}," if found else f"or {servers},",
            "or fetch a small one for this machine with: panpan local setup. To see panpan work first: panpan demo",
        )
    )


async def _ask(probe: Probe) -> LocalServer | None:
    try:
        async with await anyio.connect_tcp(_HOST, probe.port) as stream:
            # HTTP/1.0, so that the answer is neither chunked nor followed by another
            await stream.send(
                f"GET {probe.path} HTTP/1.0\r\nHost: {_HOST}:{probe.port}\r\nAccept: application/json\r\n"
                "Connection: close\r\n\r\n".encode()
            )
            head, body = await _read_answer(stream)
            rows, names = _models(body)
            address = f"http://{_HOST}:{probe.port}/v1"
            user = listening_user(probe.port)
            return LocalServer(probe.provider, probe.title, address, names, _program(head, rows), user)
    except (OSError, anyio.BrokenResourceError, anyio.EndOfStream, ValueError):
        return None  # nothing there, or something else


async def _read_answer(stream: anyio.abc.ByteReceiveStream) -> tuple[bytes, bytes]:
    """Return head and body of a successful answer.

    Raises:
        ValueError: It is not one, or is too long.
    """
    received = bytearray()
    while True:
        if len(received) > MAX_ANSWER_BYTES:
            raise ValueError("the answer is too long")
        head, separator, body = bytes(received).partition(b"\r\n\r\n")
        if separator and len(body) >= (length := _content_length(head)):
            return head, body[:length]
        try:
            received += await stream.receive(65_536)
        except anyio.EndOfStream:
            if not separator:
                raise ValueError("no HTTP answer") from None
            return head, body


def _content_length(head: bytes) -> int:
    """Return the length of the body; more than the limit if the answer has no length."""
    version, _, code = head.decode("latin-1").partition(" ")
    if not version.startswith("HTTP/1.") or not code.startswith("200"):
        raise ValueError("no success")
    return int(_header(head, "content-length") or MAX_ANSWER_BYTES + 1)


def _header(head: bytes, wanted: str) -> str:
    """Return the value of a header; empty if it is missing."""
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        if name.strip().lower() == wanted:
            return value.strip()
    return ""


def _program(head: bytes, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a server's name: its `Server` header, and the owners of its models (llama.cpp: `llamacpp`).

    Versions are left out, since an updated program is still the same.
    """
    owners = {owner for row in rows if isinstance(owner := row.get("owned_by"), str) and owner.isprintable()}
    product = _header(head, "server").partition("/")[0]
    return ", ".join(dict.fromkeys(filter(None, [product, *sorted(owners)])))[:_MAX_PROGRAM_CHARS]


def _models(body: bytes) -> tuple[Sequence[Mapping[str, Any]], tuple[str, ...]]:
    """Return the rows of a list of models, in Ollama's or OpenAI's format, and the names of the chat models.

    Raises:
        ValueError: It is no such list.
    """
    try:
        answer: Any = json.loads(body)
    except RecursionError as exc:
        raise ValueError("not a list of models") from exc
    if isinstance(answer, dict):
        for rows_key, name_key in (("models", "name"), ("data", "id")):
            rows = answer.get(rows_key)
            if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
                names = [row.get(name_key) for row in rows]
                if all(isinstance(name, str) and name.isprintable() for name in names):
                    return rows, tuple(name for name in names if not NO_CHAT.search(name))[:MAX_MODELS]
    raise ValueError("not a list of models")
