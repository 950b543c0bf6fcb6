"""The program as its subcommands get it. Each part is imported when it is used, so that each pays for its own."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from panpan.cli_kit.program import Program

if TYPE_CHECKING:
    from panpan.cli_kit.stdout import StdoutWriter
    from panpan.config.locations import Locations
    from panpan.config.sources import Loaded
    from panpan.core.tool import Tool
    from panpan.models.provider_kind import ProviderKinds
    from panpan.session.session import Session
    from panpan.types.events import Event


class Panpan(Program):
    """The `panpan` command."""

    def open_session(self, cwd: str | Path = ".", **wishes: Any) -> "AbstractAsyncContextManager[Session]":
        from panpan.app import open_session

        return open_session(cwd, **wishes)

    def tools_of_folder(self, cwd: Path, loaded: "Loaded", locations: "Locations") -> "Sequence[Tool[Any]]":
        from panpan.app import tools_of_folder

        return tools_of_folder(cwd, loaded, locations)

    def known_tools(self) -> Sequence[str]:
        from panpan.app import known_tools

        return known_tools()

    @property
    def provider_kinds(self) -> "ProviderKinds":
        from panpan.app import PROVIDER_KINDS

        return PROVIDER_KINDS

    def printer(self, out: "StdoutWriter", *, has_colour: bool) -> "Callable[[Event], Awaitable[None]]":
        from panpan.faces.plain.line_face import LineFace

        return LineFace(out, has_colour=has_colour).show
