"""What came from the web, as a model can read it.

The rule: what strangers send is taken apart in a process of its own (`page_maker.py`), which ends with the call. In
this one, a regular expression that meets its match would hold up all.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from panpan.capabilities.web.fetching import Kind
from panpan.capabilities.web.page_kind import Obstacle
from panpan.errors import ToolError
from panpan.system.processes.apart import MEMORY_BYTES, WITHIN_S, taken_apart
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.types.content import ImageBlock
from panpan.types.dataclass import dataclass

_MAX_BYTES = 50_000_000
"""Of what the process says: 5,000,000 characters in UTF-8, or a picture."""


@dataclass(frozen=True, slots=True)
class Came:
    """What came, and what has to be known of it to read it."""

    kind: Kind
    body: bytes
    url: str
    asked: str
    """The address that was asked for, which may be another one."""
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    charset: str | None = None
    wants_all: bool = False
    pages: str | None = None
    is_rendered: bool = False


@dataclass(frozen=True, slots=True)
class Made:
    """What became of it."""

    text: str = ""
    is_cut: bool = False
    title: str = ""
    extent: str = "all"
    """How much of a page the text is: `Extent` in `page_text.py`."""
    sends_on_to: str = ""
    """Where browsers go by themselves, as the page wrote it."""
    obstacle: Obstacle | None = None
    scans: Sequence[int] = ()
    """Pages of a PDF that hold pictures and no text."""
    what: str = ""
    """What a picture is."""
    picture: ImageBlock | None = None


async def made_of(
    came: Came, sandbox: CommandSandbox, *, within_s: float = WITHIN_S, memory_bytes: int = MEMORY_BYTES
) -> Made:
    """Return what came, as text or as a picture.

    Args:
        came: What came.
        sandbox: That of the session's commands.
        within_s: Seconds that it may take.
        memory_bytes: That may be used for it.

    Raises:
        ToolError: It is damaged, or takes too much time or memory.
    """
    module, asked, most = "panpan.capabilities.web.page_maker", question(came), _MAX_BYTES
    ended = await taken_apart(module, (), asked, sandbox, max_bytes=most, within_s=within_s, memory_bytes=memory_bytes)
    if ended.timed_out or ended.exit_code != 0 or ended.is_truncated:
        why = f"it took more than {within_s:g} s" if ended.timed_out else "it is damaged, or takes too much memory"
        raise ToolError(f"what came cannot be made text: {why}")
    return made_from(ended.stdout)


_TOLD = ("kind", "url", "asked", "status", "charset", "wants_all", "pages", "is_rendered")


def question(came: Came) -> bytes:
    """Return what the process is asked."""
    job = {name: getattr(came, name) for name in _TOLD} | {"headers": dict(came.headers)}
    return json.dumps(job).encode() + b"\n" + came.body


def made_from(answer: bytes) -> Made:
    """Return what the process has answered.

    Raises:
        ToolError: It could not read what came.
    """
    said: dict[str, Any] = json.loads(answer)
    if "error" in said:
        raise ToolError(said["error"])
    obstacle, picture = said.pop("obstacle", None), said.pop("picture", None)
    return Made(
        **said,
        obstacle=Obstacle(**obstacle) if obstacle else None,
        picture=ImageBlock.model_validate(picture) if picture else None,
    )
