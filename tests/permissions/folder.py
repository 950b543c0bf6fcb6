"""The gate of a throw-away project with settings of a test's own, and the real tools."""

from collections.abc import Mapping
from pathlib import Path

import anyio

from panpan.cli_kit.options import FLAGS
from panpan.config.locations import Locations
from panpan.config.sources import Names, load_settings
from panpan.system.sandbox.command_sandbox import FindSandbox
from panpan.types.permission import Decision, PermissionMode
from tests.fakes.every_tool import FolderGate
from tests.fakes.sandboxes import works_without_sealing


class Project:
    """A folder `project` beside a panpan home `home`."""

    def __init__(self, place: Path) -> None:
        self.root = place.resolve() / "project"
        self.home = place.resolve() / "home"
        self.settings = self.home / "settings.toml"
        (self.root / ".git").mkdir(parents=True)
        self.home.mkdir(mode=0o700)

    def gate(self, settings: str = "", *, find: FindSandbox = works_without_sealing, **overrides: object) -> FolderGate:
        """The gate with these settings of the user's, and flags by key with `__` for the dot."""
        self.settings.write_text(settings)
        env = {"PANPAN_HOME": str(self.home), "HOME": str(self.home.parent)}
        locations = Locations.find(self.root, env)
        flags = {key.replace("__", "."): value for key, value in overrides.items()} | {"names": Names(FLAGS)}
        return FolderGate(self.root, load_settings(self.root, env, flags, locations), locations, find=find)


def decide(gate: FolderGate, tool: str, arguments: Mapping[str, object], mode: PermissionMode = "default") -> Decision:
    """Return the gate's decision on a call."""
    return anyio.run(gate.judge, tool, arguments, mode).decision


def bash(gate: FolderGate, command: str, mode: PermissionMode = "default") -> Decision:
    """Return the gate's decision on a command."""
    return decide(gate, "Bash", {"command": command}, mode)
