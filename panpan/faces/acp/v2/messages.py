"""Parameters of version 2, as models of version 1 where the shapes allow, and what goes out as it is."""

from typing import Annotated, Any, Literal, Self

from acp.schema import (
    AuthCapabilities,
    BooleanConfigOptionCapabilities,
    ClientCapabilities,
    ClientSessionCapabilities,
    ElicitationCapabilities,
    ElicitationFormCapabilities,
    EnvVariable,
    HttpHeader,
    HttpMcpServer,
    McpServerStdio,
    NewSessionRequest,
    ResumeSessionRequest,
    SessionConfigOptionsCapabilities,
)
from pydantic import BaseModel, ConfigDict, Field, RootModel, StrictBool, StrictStr, field_validator, model_validator
from pydantic.alias_generators import to_camel


class Plain(RootModel[dict[str, Any]]):
    """An object of the protocol as it is."""


class _Params(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel)


class _Info(_Params):
    name: str
    version: str


class InitializeParams(_Params):
    """Parameters of `initialize`."""

    protocol_version: int = Field(ge=0, le=65535)
    info: _Info
    capabilities: Any = None

    @property
    def client(self) -> ClientCapabilities:
        """The client's abilities as in version 1; an ability is an object, and anything else is none."""
        has_forms = self._has("elicitation", "form")
        booleans = BooleanConfigOptionCapabilities()
        return ClientCapabilities(
            auth=AuthCapabilities(terminal=self._has("auth", "terminal")),
            elicitation=ElicitationCapabilities(form=ElicitationFormCapabilities() if has_forms else None),
            session=ClientSessionCapabilities(config_options=SessionConfigOptionsCapabilities(boolean=booleans)),
        )

    def _has(self, group: str, name: str) -> bool:
        given = self.capabilities.get(group) if isinstance(self.capabilities, dict) else None
        return isinstance(given, dict) and isinstance(given.get(name), dict)


class _Http(HttpMcpServer):
    headers: list[HttpHeader] = Field(default_factory=list)


class _Stdio(McpServerStdio):
    type: Literal["stdio"]
    args: list[str] = Field(default_factory=list)
    env: list[EnvVariable] = Field(default_factory=list)


class _Setup(_Params):
    cwd: str
    additional_directories: list[str] | None = None
    mcp_servers: list[Annotated[_Http | _Stdio, Field(discriminator="type")]] | None = None

    @field_validator("mcp_servers")
    @classmethod
    def _have_own_names(cls, servers: list[_Http | _Stdio] | None) -> list[_Http | _Stdio] | None:
        names = [one.name for one in servers or ()]
        if twice := [name for name in names if names.count(name) > 1]:
            raise ValueError(f"two servers have the name {twice[0]}; give each its own")
        return servers

    @property
    def _in_version_1(self) -> dict[str, Any]:
        servers = list(self.mcp_servers or ())
        return {"cwd": self.cwd, "additional_directories": self.additional_directories, "mcp_servers": servers}


class NewSessionParams(_Setup):
    """Parameters of `session/new`. The model of version 1 leaves out servers that it does not know."""

    @property
    def request(self) -> NewSessionRequest:
        return NewSessionRequest(**self._in_version_1)


class _FromStart(_Params):
    type: Literal["start"]


class ResumeSessionParams(_Setup):
    """Parameters of `session/resume`."""

    session_id: str
    replay_from: _FromStart | None = None

    @property
    def request(self) -> ResumeSessionRequest:
        return ResumeSessionRequest(session_id=self.session_id, **self._in_version_1)


class SetOptionParams(_Params):
    """Parameters of `session/set_config_option`."""

    session_id: str
    config_id: str
    type: Literal["id", "boolean"]
    value: StrictBool | StrictStr

    @model_validator(mode="after")
    def _fits_type(self) -> Self:
        if isinstance(self.value, bool) != (self.type == "boolean"):
            raise ValueError("the value is not of its type")
        return self
