"""Settings: each with its name, type, range, unit and default, once.

Here are those that more than one part reads. A feature has its own in `settings.py` of its folder; `settings_type`
joins them. A key that is in neither is an error, in files and on the command line.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, SecretStr, create_model

from panpan.config.models import Dialect
from panpan.config.ui_look import ThemeSetting
from panpan.types.llm import Effort, ThinkingDisplay
from panpan.types.permission import Behaviour, PermissionMode

FORMAT_VERSION = 1
"""Format version of settings files; it goes up when an older panpan would misread a newer file."""

_OWN_FIELDS = frozenset(
    {"model", "messages", "system", "tools", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n"}
)
"""Fields of a request that panpan writes itself, since the session or its budget depends on them."""


def _web_address(value: str) -> str:
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(value)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bad port or bracket
        is_address = False
    if not is_address:
        raise ValueError("is not an address; write one such as https://api.example.com/v1")
    if parts.username is not None or parts.password is not None:
        raise ValueError("holds a user name or password; use api_key_env or headers")
    if any(ord(character) <= 0x20 for character in value):
        raise ValueError("holds blanks; remove them")
    return value


def _header_value(secret: SecretStr) -> SecretStr:
    value = secret.get_secret_value()
    if not value or any(not 0x20 <= ord(character) < 0x7F for character in value):
        raise ValueError("is empty or not printable ASCII; write one line of printable ASCII")
    return secret


def _absolute(path: Path) -> Path:
    try:
        path = path.expanduser()
    except RuntimeError as exc:
        raise ValueError("names a home folder that does not exist; write the whole path") from exc
    if not path.is_absolute() or "\0" in str(path):
        raise ValueError("is not an absolute path; write one that starts with / or ~/")
    return path


def _one_line(value: str) -> str:
    if any(not 0x20 <= ord(character) < 0x7F for character in value):
        raise ValueError("is not printable ASCII; write one line of printable ASCII")
    return value


def _host(value: str) -> str:
    from panpan.errors import ToolError
    from panpan.system.web.url_guard import plain_authority

    try:
        authority = plain_authority(value.removeprefix("*."))
    except ToolError:
        authority = None
    if authority is None or authority.port is not None:
        raise ValueError("is not a host; write one such as arxiv.org, without port and path")
    return authority.host


def _private_host(value: str) -> str:
    from panpan.errors import ToolError
    from panpan.system.web.url_guard import PrivateHosts

    try:
        PrivateHosts.parse([value])
    except ToolError as exc:
        raise ValueError(f"holds an item that cannot be used: {exc}") from exc
    return value


def _proxy(secret: SecretStr) -> SecretStr:
    from panpan.errors import ToolError
    from panpan.system.web.upstream_proxy import UpstreamProxy

    try:
        UpstreamProxy.parse(secret.get_secret_value())
    except ToolError as exc:
        raise ValueError(str(exc)) from exc
    return secret


def _domain(value: str) -> str:
    from panpan.errors import ToolError
    from panpan.system.sandbox.domain_proxy import DomainGrant

    try:
        DomainGrant.parse(value)
    except ToolError as exc:
        raise ValueError(f"holds {value[:80]!r}, which is not a domain: {exc}") from exc
    return value


def rule_text(item: Any) -> Any:
    """Return the rule of an item of `permission.allow`, `ask` or `deny`: the item itself, or the `rule` of a table.

    Raises:
        ValueError: It is a table of another form than `{rule = "…", match = ["…"], not_match = ["…"]}`.
    """
    if not isinstance(item, Mapping):
        return item
    examples = [item.get("match", []), item.get("not_match", [])]
    is_list_of_texts = all(isinstance(part, list) and all(type(text) is str for text in part) for part in examples)
    if type(item.get("rule")) is not str or not is_list_of_texts or item.keys() - {"rule", "match", "not_match"}:
        raise ValueError('is not a rule; write one in quotes, or {rule = "…", match = ["…"], not_match = ["…"]}')
    return item["rule"]


def _extra_body(body: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    if taken := sorted(_OWN_FIELDS & body.keys()):
        raise ValueError(f"has {taken[0]}, which panpan sets itself; remove it")
    try:
        json.dumps(body, allow_nan=False)
    except ValueError:
        raise ValueError("has a number that is not finite; write another") from None
    return body


def _amount(value: Any) -> Any:
    if value is None or value == "off" or (type(value) is int and value >= 1):
        return value
    raise ValueError('is not an amount; write a whole number of at least 1, or "off"')


Amount: TypeAlias = Annotated[int | Literal["off"] | None, BeforeValidator(_amount)]
Name: TypeAlias = Annotated[str, Field(min_length=1, max_length=500)]
WebAddress: TypeAlias = Annotated[str, AfterValidator(_web_address)]
Secret: TypeAlias = Annotated[SecretStr, AfterValidator(_header_value)]
Names: TypeAlias = Annotated[tuple[Name, ...], Field(strict=False)]  # a TOML array comes as a list
Hosts: TypeAlias = Annotated[tuple[Annotated[Name, AfterValidator(_host)], ...], Field(strict=False)]
Domains: TypeAlias = Annotated[tuple[Annotated[Name, AfterValidator(_domain)], ...], Field(strict=False)]
Rules: TypeAlias = Annotated[tuple[Annotated[Name, BeforeValidator(rule_text)], ...], Field(strict=False)]
"""Texts of permission rules; their examples are kept by the source, see `Source.written_rules`."""
Folder: TypeAlias = Annotated[Path, Field(strict=False), AfterValidator(_absolute)]


TableT = TypeVar("TableT", bound="Table")


class Table(BaseModel):
    """A table of settings."""

    # strict: TOML has types, so "5" for a number is a mistake and not another spelling
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        defer_build=True,  # most tables are only checked as a part of `settings_type`, and their defaults not at all
    )

    table: ClassVar[str] = ""
    """Its name in settings files, if a feature declares it."""
    is_named: ClassVar[bool] = False
    """True if the user names any number of them, `[table.NAME]`."""
    is_for_trusted_projects: ClassVar[bool] = False
    """True if a project that the user trusts may set all of it; others may set nothing of it."""

    @property
    def key_variables(self) -> Sequence[str]:
        """Names of environment variables that hold keys."""
        return ()


class ProviderSettings(Table):
    """One place that serves models, `[providers.NAME]`; `NAME/model` then reaches it."""

    kind: Dialect = "openai"
    """Protocol: Anthropic's messages, or OpenAI's chat completions."""
    base_url: WebAddress | None = None
    """Address; None for the vendor's own, for providers that panpan knows."""
    models: Names = ()
    """Names of its models, so that one of them alone is enough to choose this provider."""
    api_key_env: Name | None = None
    """Environment variable that holds its key."""
    api_key: Secret | None = None
    """Its key, for users who have to keep it in a file; `api_key_env` is safer."""
    headers: Mapping[Name, Secret] = Field(default_factory=dict)
    """Headers of each request; they are secrets, since gateways take tokens here."""
    body: Annotated[Mapping[Name, JsonValue], AfterValidator(_extra_body)] = Field(default_factory=dict)
    """Fields that are added to each request for a reply, such as `repetition_penalty = 1.05`."""


class PermissionSettings(Table):
    """Permissions, `[permission]`. The lists of all sources are joined; deny wins over ask, ask over allow."""

    mode: PermissionMode = "default"
    """Answer of the gate to calls that no rule decides."""
    allow: Rules = ()
    """Rules such as `Bash(npm run *)` for calls that run without a question."""
    ask: Rules = ()
    """Rules for calls that always ask."""
    deny: Rules = ()
    """Rules for calls that never run."""
    external_directory: Behaviour = "ask"
    """Answer to a call for a path outside the workspace that no rule opens."""
    doom_loop: Behaviour = "ask"
    """Answer to a call that comes again and again with the same arguments and the same result."""


class RetrySettings(Table):
    """Retries after failures of a provider that may pass, `[retry]`."""

    max_tries: int = Field(default=8, ge=1, le=100)
    """Limit on the tries of one request, the first one included."""
    shared_folder: Folder | None = None
    """Folder through which several panpan, also on several machines, share a pause that a provider asks one of them
    for, and its rate; None: each waits for itself. No project may set it."""


class ToolSettings(Table):
    """Tools that the model is offered, `[tools]`."""

    enabled: Mapping[Name, bool] = Field(default_factory=dict)
    """True or false by tool name or wildcard such as `mcp__*`. An exact name is stronger than a wildcard, more fixed
    characters than fewer, and off than on. A tool that nothing matches is on."""
    only: Names | None = None
    """Names of the tools of panpan that there are, in any case; tools of MCP servers go along. None for all of them."""


class SandboxSettings(Table):
    """Sandbox of the model's commands, `[sandbox]`; no project may set it."""

    mode: Literal["on", "off"] = "on"
    """on: commands run in the sandbox that works here; off: with all your rights. If none works, the gate decides."""
    network: bool = False
    """True if every command may use the network, also servers on this machine."""
    domains: Domains = ()
    """Hosts that commands may reach although the network is off, such as `pypi.org` or `*.pythonhosted.org`;
    `package-indexes` means those that pip, uv, conda, npm and cargo fetch from."""
    writable: Annotated[tuple[Folder, ...], Field(strict=False)] = ()
    """Folders that commands may change beside the workspace, such as `~/.cache`."""
    readable: Annotated[tuple[Folder, ...], Field(strict=False)] = ()
    """Folders that commands may read although they hold secrets or are in the hidden home."""
    outside: Names = ()
    """Commands, as in `Bash(…)`, that the model may run outside the sandbox without a question about that. Rules and
    the mode still decide if they run."""


MAX_VARIABLE_CHARS = 32_000
"""Most characters of a variable; the system starts nothing with one of 128 KB (MAX_ARG_STRLEN)."""


def is_variable_value(text: str) -> bool:
    """Return whether a text can be the value of a variable of commands."""
    is_short = len(text) <= MAX_VARIABLE_CHARS
    return is_short and "\0" not in text and not any(0xD800 <= ord(letter) <= 0xDFFF for letter in text)


def _variable_value(value: SecretStr) -> SecretStr:
    if not is_variable_value(value.get_secret_value()):
        raise ValueError(f"is no value of a variable; write a text of up to {MAX_VARIABLE_CHARS:,} characters")
    return value


VariableName: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
VariableValue: TypeAlias = Annotated[SecretStr, AfterValidator(_variable_value)]


class EnvironmentSettings(Table):
    """Environment of commands, `[environment]`; no project may set it."""

    pass_env: Names = ()
    """Names of variables that commands get besides those in `system/environment.py`, such as `MY_DATA` or `WANDB_*`. A
    wildcard does not pass variables that are named like secrets; an exact name does."""
    variables: Mapping[VariableName, VariableValue] = Field(default_factory=dict)
    """Further variables of commands and hooks, such as `MPLBACKEND = "agg"`; those of panpan and of model providers,
    such as `ANTHROPIC_API_KEY`, are not passed."""


class LimitSettings(Table):
    """Limits on the resources of one command, `[limits]`; no project may set them."""

    memory_gb: float | None = Field(default=None, gt=0)
    """GB (10⁹ bytes) of private memory of one process; None for no limit. If memory runs out, the system ends commands
    before other programs."""
    processes: Amount = None
    """Processes and threads of one command; None for 2,048 plus 512 for each processor; off for no limit."""
    file_gb: Amount = 2000
    """GB of one file that a command writes; off for no limit."""
    cpu_s: int | None = Field(default=None, ge=1)
    """Seconds of processor time of one process; None for no limit but the time-outs."""


class BackgroundSettings(Table):
    """Background tasks, `[background]`; no project may set them."""

    max_tasks: int = Field(default=16, ge=1, le=10_000)
    """Commands and subagents of one session that run in the background at the same time."""
    max_output_mb: int = Field(default=1000, ge=1)
    """MB (10⁶ bytes) that one background task may print; one that prints more is stopped."""
    at_exit: Literal["ask", "stop", "keep"] = "ask"
    """Handling of commands that still run when panpan ends. ask: they are stopped if nobody is there to be asked."""
    at_timeout: Literal["stop", "go_on"] = "stop"
    """Handling of a command in the foreground when its time is up; go_on: it goes on in the background."""
    wake: bool = True
    """True if the end of a background task starts a turn when none runs."""


class NetworkSettings(Table):
    """Access of all features to the web, `[web]`; no project may set it."""

    allowed_domains: Hosts = ()
    """Hosts, with their subdomains, that pages and search results may come from; empty for all."""
    blocked_domains: Hosts = ()
    """Hosts, with their subdomains, that nothing comes from; stronger than the allowed ones."""
    user_agent: Annotated[str, Field(min_length=1, max_length=300), AfterValidator(_one_line)] | None = None
    """User-Agent header; None for panpan and its version, which the browser adds to its own."""
    proxy: Annotated[SecretStr, AfterValidator(_proxy)] | None = None
    """Proxy for pages, searches, downloads and the browser: `http://`, `https://` or `socks5://`, with a port, and with
    user and password if it needs them. Since it may hold these, it is a secret."""
    private_hosts: Annotated[tuple[Annotated[Name, AfterValidator(_private_host)], ...], Field(strict=False)] = ()
    """Hosts of the user that may be requested although they are not public: `files.lab.example`, `*.lab.example`, and
    for numeric addresses `10.2.0.7` or `10.2.0.0/16`. They are reached without the proxy."""

    @property
    def proxy_url(self) -> str | None:
        """The proxy's address, with its password if it has one."""
        return None if self.proxy is None else self.proxy.get_secret_value()


class PackageSettings(Table):
    """Package managers, `[packages]`; no project may set them."""

    index: WebAddress | None = None
    """Index for pip and uv, such as a mirror; None for the one in their configuration."""
    mirrors: Annotated[tuple[WebAddress, ...], Field(strict=False, max_length=5)] = ()
    """Indexes that pip and uv try in turn if the index cannot be reached; not for calls that write a lock file."""
    extra_indexes: Annotated[tuple[WebAddress, ...], Field(strict=False)] = ()
    """Indexes that pip and uv use in addition."""
    channels: Names = ()
    """Channels of conda and new pixi projects, names or addresses, after those of the call; empty for their own."""
    channel_alias: WebAddress | None = None
    """Address below which conda finds channels that have only a name, such as a mirror; None for conda's own."""
    channel_mirrors: Annotated[tuple[WebAddress, ...], Field(strict=False, max_length=5)] = ()
    """Addresses that conda tries in turn if a channel cannot be reached."""
    pip_timeout_s: float = Field(default=600.0, ge=1, le=86_400)
    """Seconds that a call of pip may take."""
    conda_timeout_s: float = Field(default=900.0, ge=1, le=86_400)
    """Seconds that a call of conda may take."""
    uv_timeout_s: float = Field(default=300.0, ge=1, le=86_400)
    """Seconds that a call of uv may take."""
    pixi_timeout_s: float = Field(default=300.0, ge=1, le=86_400)
    """Seconds that a call of pixi may take."""


class WindowSettings(Table):
    """Use of the model's context window, `[compaction]`."""

    enabled: bool = True
    """True if panpan makes the conversation shorter before it overflows the window. `/compact` always works."""
    window_tokens: int | None = Field(default=None, ge=4_000)
    """Tokens of the window, if panpan does not know it or should use less of it; None for the model's window."""

    def usable_window(self, window_tokens: int | None) -> int | None:
        """Return the smaller of the model's window and the setting; None if neither is known."""
        if self.window_tokens is None:
            return window_tokens
        return self.window_tokens if window_tokens is None else min(self.window_tokens, window_tokens)


class SessionSettings(Table):
    """Saved sessions, `[sessions]`; no project may set them."""

    title: Literal["auto", "model", "first-words"] = "auto"
    """Title of a session until the user names it. first-words: their first words; model: a title that the model `fast`
    makes of these in the background, for a fraction of a cent, or the session's own model if there is none; auto: as
    model if a user watches, but only at the session's own provider, else as first-words."""


class UiSettings(Table):
    """Look of the terminal, `[ui]`; no project may set it."""

    theme: ThemeSetting = "auto"
    """Colours; auto: light or dark, as the terminal says."""
    vim: bool = False
    """True if the editor has the keys of vi."""
    plain: bool = False
    """True if nothing moves: no spinner and no cursor movement, for screen readers and simple terminals."""
    notify: Literal["auto", "bell", "osc9", "off"] = "auto"
    """Signal at the end of a long turn and at a question; auto: OSC 9 where the terminal knows it, else the
    bell."""
    status_line: Name | None = None
    """Command whose first line of output is the status line; None for panpan's own."""


class Settings(Table):
    """The checked settings of one run, from all sources; `settings[WebSettings]` is the table of a feature."""

    version: Literal[1] = 1
    """Format of the settings file."""

    model: Name | None = None
    """Model, alias, or `provider/model`; None: the default of the vendor for which there is a key."""
    fallback_models: Names = ()
    """Models, aliases, or `provider/model`, that are asked in turn if the model is overloaded or unavailable."""
    provider: Name | None = None
    """Name of the provider, even if the model's name would choose another one."""
    base_url: WebAddress | None = None
    """Address of the chosen provider, instead of its own."""
    api_key: Secret | None = None
    """Key of the chosen provider; it is safer in the environment."""
    api_key_env: Name | None = None
    """Environment variable that holds the key of the chosen provider."""
    providers: Mapping[Name, ProviderSettings] = Field(default_factory=dict)
    """Further places that serve models, by name."""
    aliases: Mapping[Name, Name] = Field(default_factory=dict)
    """Short names for models, such as `fast`."""

    max_output_tokens: int | None = Field(default=None, ge=1)
    """Limit on the tokens of one reply, thinking included; None for the model's own."""
    thinking: bool = False
    """True if the model thinks before it answers, if it can."""
    thinking_budget_tokens: int = Field(default=10_000, ge=1024)
    """Tokens of thinking, for models that take a number; 1,024 is the least that Anthropic's API accepts."""
    thinking_display: ThinkingDisplay | None = None
    """Form of the thinking that Anthropic's API sends: a summary, or nothing of it; None: a summary."""
    task_budget_tokens: int | None = Field(default=None, ge=1)
    """Tokens that the model is told it has for the work, where Anthropic's API can tell it; it is no limit."""
    betas: Annotated[tuple[Annotated[Name, AfterValidator(_one_line)], ...], Field(strict=False)] = ()
    """Features of Anthropic's API that are not open to all yet, by their names, such as `context-1m-2025-08-07`."""
    effort: Effort | None = None
    """Work that the model puts into an answer, as a word; None: the model's own choice."""
    output_style: str | None = Field(default=None, min_length=1)
    """Output style, in which the model speaks: its name, its file, or JSON; None: panpan's usual way."""
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Randomness of the answers; None: the model's own."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Share of the likeliest words that answers are drawn from; None: the model's own."""
    top_k: int | None = Field(default=None, ge=1)
    """Number of the likeliest words that answers are drawn from, for servers that know it; None: the model's own."""

    permission: PermissionSettings = PermissionSettings.model_construct()
    """Permissions, `[permission]`."""
    sandbox: SandboxSettings = SandboxSettings.model_construct()
    """Sandbox of commands, `[sandbox]`."""
    environment: EnvironmentSettings = EnvironmentSettings.model_construct()
    """Environment of commands, `[environment]`."""
    limits: LimitSettings = LimitSettings.model_construct()
    """Limits on one command, `[limits]`."""
    background: BackgroundSettings = BackgroundSettings.model_construct()
    """Background tasks, `[background]`."""
    web: NetworkSettings = NetworkSettings.model_construct()
    """Access to the web, `[web]`."""
    packages: PackageSettings = PackageSettings.model_construct()
    """Package managers, `[packages]`."""
    tools: ToolSettings = ToolSettings.model_construct()
    """Tools that the model is offered, `[tools]`."""
    capabilities: Mapping[Name, bool | Mapping[Name, JsonValue]] = Field(default_factory=dict)
    """Capabilities of packages and folders that are on, by name: true, or a table with its settings."""
    additional_directories: Annotated[tuple[Folder, ...], Field(strict=False)] = ()
    """Folders outside the project that the tools may use as if they were in it; those of all sources are joined."""
    protected_directories: Annotated[tuple[Folder, ...], Field(strict=False)] = ()
    """Folders that only you may change, whatever flags and rules allow; a workspace or an additional directory that
    lies in one is not protected. They can be read like others, and those of all sources are joined."""
    plugin_folders: Annotated[tuple[Folder, ...], Field(strict=False)] = ()
    """Folders of plug-ins that are on, as they are now, such as one that you are writing."""
    plugin_folders_without_mcp: Annotated[tuple[Folder, ...], Field(strict=False)] = ()
    """Further folders of plug-ins, whose MCP servers do not count."""

    max_rounds: int | None = Field(default=None, ge=1)
    """Limit on the rounds of one turn; None for 10,000 if a user watches, else 50."""
    max_budget_usd: float | None = Field(default=None, gt=0)
    """Limit on the US dollars that one session may cost, its subagents included; None for no limit."""
    max_tokens: int | None = Field(default=None, ge=1)
    """Limit on the tokens of one session, input and replies of all requests together; None for no limit. The limit on
    one reply is `max_output_tokens`."""
    max_seconds: float | None = Field(default=None, gt=0)
    """Limit on the seconds of all turns of one session, without the time that questions wait for the user; None for no
    limit."""
    idle_timeout_s: float | None = Field(default=None, gt=0, le=86_400)
    """Seconds without a byte from the provider after which a request fails; None for 120, or 600 for local servers."""
    retry: RetrySettings = RetrySettings.model_construct()
    """Retries of requests, `[retry]`."""
    compaction: WindowSettings = WindowSettings.model_construct()
    """Use of the context window, `[compaction]`."""
    sessions: SessionSettings = SessionSettings.model_construct()
    """Saved sessions, `[sessions]`."""
    ui: UiSettings = UiSettings.model_construct()
    """Look of the terminal, `[ui]`."""

    @property
    def key_variables(self) -> Sequence[str]:
        return [name for _, value in self if isinstance(value, Table) for name in value.key_variables]

    def __getitem__(self, kind: type[TableT]) -> TableT:
        """Return the table of a feature."""
        found = getattr(self, kind.table, None)
        if isinstance(found, kind):
            return found
        # these settings were made without `settings_type`
        return kind(**found.model_dump(exclude_unset=True)) if isinstance(found, Table) else kind()

    def named(self, kind: type[TableT]) -> Mapping[str, TableT]:
        """Return the tables of a feature that the user has named."""
        return getattr(self, kind.table, {})

    def __reduce__(self) -> tuple[Any, ...]:
        return _copied, (self.model_fields_set, dict(self))


def _copied(fields_set: set[str], values: dict[str, Any]) -> Settings:
    """Return unpickled settings in another process, in which `settings_type` is another class."""
    return settings_type().model_construct(fields_set, **values)


@cache
def settings_type() -> type[Settings]:
    """Return the settings with the tables of the features, which are those in `capabilities/*/settings.py`.

    The features are in a layer above this package, so it finds their tables and knows none by name.
    """
    fields: dict[str, Any] = {}
    for file in sorted(Path(__file__).parents[1].glob("capabilities/*/settings.py")):
        declared = vars(import_module(f"panpan.capabilities.{file.parent.name}.settings")).values()
        fields |= {
            kind.table: (Mapping[Name, kind], Field(default_factory=dict))  # type: ignore[valid-type]
            if kind.is_named
            else (kind, Field(default_factory=kind.model_construct))
            for kind in declared
            if isinstance(kind, type) and issubclass(kind, Table) and kind.table
        }
    return create_model("Settings", __base__=Settings, __module__=__name__, **fields)


MERGED_LISTS = frozenset(
    {
        ("permission", "allow"),
        ("permission", "ask"),
        ("permission", "deny"),
        ("additional_directories",),
        ("protected_directories",),
        ("plugin_folders",),
        ("plugin_folders_without_mcp",),
        ("sandbox", "domains"),
        ("sandbox", "writable"),
        ("sandbox", "outside"),
        ("environment", "pass_env"),
    }
)
"""Keys whose lists are joined over all sources; every other value replaces that of a weaker source."""
