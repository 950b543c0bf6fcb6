"""A project of the test's own, in which whole sessions run; a scripted model answers them over loopback."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panpan.api import open_session
from panpan.config.models import vendor_named
from panpan.types.events import CommandRan, Event
from panpan.types.messages import AssistantMessage, ToolResultMessage
from tests.model_server import RecordedRequest, call, say, serving


@dataclass(frozen=True)
class Ran:
    """Turns of a session that is over."""

    events: Sequence[Event]
    requests: Sequence[RecordedRequest]
    """Requests to the model, as its server got them."""

    @property
    def results(self) -> list[str]:
        """Results of calls, as the model got them."""
        return [event.text for event in self.events if isinstance(event, ToolResultMessage)]

    @property
    def answers(self) -> list[str]:
        """Texts of the model, without its calls."""
        return [event.text for event in self.events if isinstance(event, AssistantMessage)]

    @property
    def shown(self) -> list[str]:
        """Output of slash commands."""
        return [event.text for event in self.events if isinstance(event, CommandRan)]


class Project:
    """A folder to work in and a home, both below `root`."""

    def __init__(self, root: Path) -> None:
        self.folder, self.home = root / "project", root / "home"
        self.folder.mkdir()
        self.home.mkdir()
        self.env = {"HOME": str(root), "PANPAN_HOME": str(self.home)}
        self.warnings: list[str] = []
        """Warnings of its sessions."""

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")

    async def run(
        self,
        *calls: tuple[str, Mapping[str, Any]],
        prompts: Sequence[str] = ("go",),
        vendor: str = "anthropic",
        **options: Any,
    ) -> Ran:
        """Run a turn for each prompt in one session. The model makes the calls one by one, then it says `done`.

        Args:
            calls: The name of a tool and its arguments.
            prompts: Prompts and slash commands of the user.
            vendor: Name of the vendor that the server stands for.
            options: Options of `open_session`.
        """
        place = vendor_named(vendor)
        assert place is not None
        assert place.base_url_variable is not None
        script = [*(call(name, arguments) for name, arguments in calls), *(say("done") for _ in prompts)]
        events: list[Event] = []
        with serving(script) as server:
            address = server.url if place.dialect == "anthropic" else server.openai_url
            env = self.env | {place.key_variables[0]: "sk-test-0123456789abcdef", place.base_url_variable: address}
            async with open_session(self.folder, env=env, warn=self.warnings.append, **options) as session:
                for prompt in prompts:
                    async with aclosing(session.submit(prompt)) as turn:
                        events += [event async for event in turn]
        return Ran(events, server.requests)
