"""What one call is going to do, whole, before anybody says yes to it.

The rule: a question tells it from here, and what runs is that and nothing else: a call whose plan has become another
one since does not run.
"""

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from panpan.capabilities.packages.target import Target
from panpan.core.effects import PathUse, SandboxUse
from panpan.errors import ToolError
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.text.terminal_text import clean_line
from panpan.types.dataclass import dataclass

if TYPE_CHECKING:
    from panpan.capabilities.packages.step import Step, Undo

_MOST_CHARS = 1_000
"""Of a command line in a question."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one call is going to do."""

    target: Target
    commands: tuple[tuple[str, ...], ...] = ()
    """Each a program and its arguments; the next one runs where the one before went well."""
    cwd: Path | None = None
    """Where they run; None: in the working directory."""
    env: tuple[tuple[str, str], ...] = ()
    """Variables that they get besides."""
    timeout_s: float = 30.0
    hosts: tuple[str, ...] = ()
    """What is fetched from; none: nothing is."""
    instead: tuple[tuple[tuple[str, ...], ...], ...] = ()
    """The commands with each mirror, in whose place they run where the index before is not reached."""
    mirror_hosts: tuple[str, ...] = ()
    """What is fetched from then."""
    named: tuple[str, ...] = ()
    """What else the user has to know."""
    uses: tuple[PathUse, ...] = ()
    """What is touched beside the environment."""
    files: tuple[Path, ...] = ()
    """Manifests and lock files that may change."""
    asked: frozenset[str] = frozenset()
    """Normalised names of the packages that the call names."""
    digests: tuple[str, ...] = ()
    """Of files on which it rests, in hex."""
    runs_code: bool = False
    """Whether it is to run a program of the project, and not to change packages."""
    wheels: str | None = None
    """The folder of wheels that is installed from."""
    step: "Step | None" = None
    """What is taken back; None: it goes forward."""
    undo: "Undo | None" = None
    """How that is done."""

    @property
    def lines(self) -> Iterator[str]:
        """Return its command lines, as a shell would take them."""
        return (shlex.join(command) for command in self.commands)

    @property
    def explanation(self) -> str:
        """What it does, for the question whether it may."""
        said = " and then ".join(self.lines)
        said = f"{said[:_MOST_CHARS]}…" if len(said) > _MOST_CHARS else said
        what = "in" if self.runs_code else "for the environment"
        parts = [f"it runs `{said}` {what} {self.target}" if said else f"it changes {self.target}"]
        if self.step is not None:
            parts.insert(0, f"it takes back `{self.step.manager} {clean_line(self.step.what)}`")
        if self.hosts:
            mirrors = f" (where that is not reached: {', '.join(self.mirror_hosts)})" if self.mirror_hosts else ""
            parts.append(f"it fetches from {', '.join(self.hosts)}{mirrors}")
        if self.files and not self.runs_code:
            parts.append(f"it may change {', '.join(file.name for file in self.files)}")
        if self.named:
            parts.append(f"not from an index alone: {'; '.join(self.named)}")
        return "; ".join(parts)

    async def wish(self, sandbox: CommandSandbox) -> SandboxUse:
        """Return what it needs of the sandbox: the network, unless all hosts are granted to commands."""
        if not self.hosts:
            return "on"
        if sandbox.is_on and _are_granted((*self.hosts, *self.mirror_hosts), sandbox):
            working = (await sandbox.choice()).sandbox
            return "on" if working is not None and working.can_grant_domains else "network"
        return "network"


def _are_granted(hosts: tuple[str, ...], sandbox: CommandSandbox) -> bool:
    from panpan.system.sandbox.domain_grants import DomainGrants
    from panpan.system.web.url_guard import plain_authority

    if not sandbox.domains:
        return False
    grants = DomainGrants(sandbox.domains)
    try:
        asked = [plain_authority(host) for host in hosts]
    except ToolError:
        return False  # it is not known which hosts that are
    return all(grants.covers(authority, authority.port or 443) for authority in asked)


def without(environment: Mapping[str, str], beginnings: tuple[str, ...], kept: frozenset[str]) -> dict[str, str]:
    """Return an environment without a package manager's own variables, which could lead it to another place.

    Args:
        environment: What commands get.
        beginnings: What the names of its variables begin with.
        kept: Names that stay all the same.
    """
    return {name: value for name, value in environment.items() if name in kept or not name.startswith(beginnings)}
