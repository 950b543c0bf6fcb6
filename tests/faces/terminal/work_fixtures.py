"""A session on a terminal of fakes, with a model that answers when the test wants it."""

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio

from panpan.capabilities.shell.capability import UserCommands
from panpan.faces.terminal.session_client import SessionClient
from panpan.faces.terminal.views.turn_view import TurnCallbacks, TurnView
from panpan.faces.turn_text import WaitingTime
from panpan.hub.hub import Hub
from panpan.types.events import ModelEvent
from panpan.types.llm import ModelRequest
from panpan.types.messages import Message, UserMessage
from tests.faces.terminal.commands.command_fixtures import FakeTerminal
from tests.fakes.scripted_llm import Reply, ScriptedLLM, say
from tests.fakes.session import session_in


class HeldLLM:
    """Answers each request once it is let go; `requests` has the messages of each."""

    def __init__(self, *replies: Reply) -> None:
        self._scripted = ScriptedLLM(*(replies or [say(f"answer {number}") for number in range(9)]))
        self._may_answer = anyio.Semaphore(0)
        self.requests: list[Sequence[Message]] = []

    def let_go(self, requests: int = 1) -> None:
        """Let so many requests be answered."""
        for _ in range(requests):
            self._may_answer.release()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(list(request.messages))
        await self._may_answer.acquire()
        async for event in self._scripted.stream(request):
            yield event

    @property
    def asked(self) -> list[list[str]]:
        """Return the user's texts in each request."""
        return [
            [message.text for message in messages if isinstance(message, UserMessage)] for messages in self.requests
        ]


class FakeScreen(FakeTerminal):
    """A terminal that also shows turns."""

    def refresh(self) -> None:
        pass

    async def drain(self) -> None:
        await anyio.lowlevel.checkpoint()


def screen_in(cwd: Path, llm: Any, **parts: Any) -> FakeScreen:
    """Return a terminal whose session asks `llm` and has a shell; the session has to be entered."""
    cwd.mkdir(exist_ok=True)
    session = session_in(cwd, llm, **parts)
    session.capabilities.register(UserCommands(lambda: session.agent.context))
    return FakeScreen(session, {"HOME": str(cwd.parent)})


def view_on(screen: FakeScreen) -> TurnView:
    return TurnView(
        screen,
        screen.session.conversation,
        TurnCallbacks(),
        waiting=WaitingTime(lambda: 0.0),
    )


class NoDialogs:
    """Asks nobody; these sessions put no questions."""

    async def answer_to(self, question: Any) -> Any:
        raise AssertionError(question)


def connect(
    hub: Hub, screen: FakeScreen, view: TurnView, return_prompt: Callable[[str], None] = lambda text: None
) -> Callable[[Callable[[], bool]], SessionClient]:
    """Return what a `PromptQueue` connects with."""
    return lambda is_held_up: SessionClient(hub, view, NoDialogs(), return_prompt, is_held_up)


async def until(condition: Callable[[], object]) -> None:
    """Wait until something is true.

    Raises:
        TimeoutError: It never was.
    """
    with anyio.fail_after(20):
        while not condition():  # noqa: ASYNC110  # what is waited for has no event
            await anyio.sleep(0.005)
