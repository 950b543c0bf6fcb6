"""Settings of MCP servers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field, SecretStr

from panpan.config.settings import Name, Names, Secret, Table, WebAddress

if TYPE_CHECKING:
    from panpan.config.places import BroughtFile, Places

PROJECT_FILE = ".mcp.json"
"""File of a project with its servers."""
PACKAGE = "mcp>=2.3,<3"
"""The library that speaks the protocol: the extra `mcp` of panpan."""

Transport: TypeAlias = Literal["stdio", "http", "sse", "host"]
"""Way to a server: its standard input and output, streamable HTTP, the older HTTP with server-sent events, or the
program that runs panpan, in which it is; that has no settings."""

Exposure: TypeAlias = Literal["deferred", "direct", "hidden"]
"""Way of the model to the tools of a server: by search, in the list of its tools, or none."""

_Seconds: TypeAlias = Annotated[float, Field(gt=0, le=86_400)]


class McpServerSettings(Table):
    """One MCP server, `[mcp.NAME]`: a program to start, or an address to speak to."""

    table = "mcp"
    is_named = True

    enabled: bool = True
    """True if the server may be started or spoken to."""
    type: Transport | None = None
    """Way to the server; None: `stdio` with a command, `http` with an address."""
    command: Name | None = None
    """Program to start."""
    args: Annotated[tuple[Annotated[str, Field(max_length=10_000)], ...], Field(strict=False)] = ()
    """Arguments of the program."""
    env: Mapping[Name, SecretStr] = Field(default_factory=dict)
    """Further variables of the program; `${NAME}` and `${NAME:-default}` are filled in from panpan's environment."""
    cwd: Name | None = None
    """Folder of the program; None for that of the project."""
    url: WebAddress | None = None
    """Address of the server."""
    headers: Mapping[Name, Secret] = Field(default_factory=dict)
    """Headers of each request, filled in as `env` is."""
    client_id: Name | None = None
    """Panpan as the issuer of logins knows it, or the address of a client metadata document; None to register."""
    client_secret: Secret | None = None
    """Secret of that client, filled in as `env` is."""
    issuer: WebAddress | None = None
    """Issuer whose logins count; needed if a client with a secret is used at an issuer with several hosts."""
    callback_port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    """Port of this machine to which the browser is sent after a login; None for any."""
    scopes: Names = ()
    """Scopes that a login asks for; empty for those that the server names."""
    is_boxed: bool = False
    """True if the program runs in the sandbox, as programs of projects always do."""
    write: Names = ()
    """Folders that a program in the sandbox may change."""
    network: Names = ()
    """Hosts that a program in the sandbox may reach, as in `sandbox.domains`; `*` for all."""
    believe_hints: bool = False
    """True if calls of tools that the server calls read-only count as such."""
    exposure: Exposure = "deferred"
    """Way of the model to its tools."""
    start_s: _Seconds = 30.0
    """Seconds that the server may take to start."""
    call_s: _Seconds = 1_800.0
    """Seconds that one call may take."""
    foreground_s: _Seconds = 120.0
    """Seconds of a call after which it goes on in the background."""
    silence_s: _Seconds | None = None
    """Seconds of a call without news after which it is given up; None for 300 over the network, else 1,800."""


def agents_with_servers(places: "Places") -> "Sequence[BroughtFile]":
    """Return the definitions of agents that name MCP servers, the weakest first; those of plug-ins bring none."""
    return [file for file in places.files(("agents",), []) if b"mcpServers" in file.data and file.plugin is None]
