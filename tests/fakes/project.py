"""A project of the test's own, in which whole sessions run; a scripted model answers them over loopback."""

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from panpan.api import open_session
from panpan.config.models import vendor_named
from panpan.types.content import StatusItem
from panpan.types.events import CommandRan
from panpan.types.messages import AssistantMessage, Message, ToolResultMessage
from tests.model_server import RecordedRequest, call, say, serving


@dataclass(frozen=True)
class Ran:
    """Turns of a session that is over."""

    messages: Sequence[Message]
    """The whole conversation."""
    shown: Sequence[str]
    """Output of slash commands."""
    status: Sequence[StatusItem]
    """Status after the last turn."""
    requests: Sequence[RecordedRequest]
    """Requests to the model, as its server got them."""

    @property
    def results(self) -> list[str]:
        """Results of calls, as the model got them."""
        return [message.text for message in self.messages if isinstance(message, ToolResultMessage)]

    @property
    def answers(self) -> list[str]:
        """Texts of the model, without its calls."""
        return [message.text for message in self.messages if isinstance(message, AssistantMessage)]


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
        shown: list[str] = []
        with serving(script) as server:
            address = server.url if place.dialect == "anthropic" else server.openai_url
            env = self.env | {place.key_variables[0]: "sk-test-0123456789abcdef", place.base_url_variable: address}
            async with open_session(self.folder, env=env, warn=self.warnings.append, **options) as session:
                for prompt in prompts:
                    async with aclosing(session.submit(prompt)) as events:
                        shown += [event.text async for event in events if isinstance(event, CommandRan)]
                messages, status = tuple(session.conversation.messages), session.capabilities.status()
        return Ran(messages, shown, status, server.requests)
