"""The output style of a session: told to the model behind the first message, and again when the user changes it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from panpan.core.hooks import Hook, Round
from panpan.errors import ConfigError
from panpan.session.agent import Agent
from panpan.session.capability import Capability
from panpan.session.command import Command, Option, Terminal, number_options, say
from panpan.session.context import SessionContext
from panpan.session.reminders import ReminderSource
from panpan.session.session import Session
from panpan.system.text.terminal_text import clean_line
from panpan.types.messages import Message, SystemReminder

if TYPE_CHECKING:
    from panpan.capabilities.output_styles.styles import OutputStyle, OutputStyles

_STYLE = "style:"
_MOST_NUMBERED = 10
_REPLACES = (
    "It takes the place of what your instructions say under How to work, Research code and Answers. What they say of "
    "tools, permissions and of what counts holds on."
)
_USUAL_NAME = "default"
_USUAL = "The user no longer wants an output style: speak as your instructions say."


class OutputStylesCapability(Capability):
    """Tells the model how the user wants it to speak."""

    name = "output_styles"

    def __init__(self, session: SessionContext) -> None:
        super().__init__(session)
        self._chosen = session.settings.output_style
        origin = session.setup.loaded.origins.get("output_style")
        self._must_exist = origin is not None and origin.kind == "flag"
        if self._must_exist:
            _ = self.wanted  # a wrong flag opens no session

    @cached_property
    def styles(self) -> "OutputStyles":
        from panpan.capabilities.output_styles.styles import OutputStyles

        setup = self.session.setup
        return OutputStyles(setup.loaded.places, setup.cwd)

    @cached_property
    def wanted(self) -> "OutputStyle | None":
        """The style that the user wants; None: they said nothing, so a resumed session keeps its own."""
        if self._chosen is None:
            return None
        from panpan.capabilities.output_styles.styles import is_path

        try:
            # beside a relative path may lie a file of a project that nobody trusts
            if not self._must_exist and is_path(self._chosen) and not self._chosen.startswith(("/", "~/")):
                raise ConfigError(f"the output style {self._chosen} is a relative path; write the whole one")
            return self.styles.get(self._chosen)
        except ConfigError as error:
            if self._must_exist:
                raise
            self.session.warn(clean_line(f"{error}; no style is used"))
            return None

    @property
    def style_name(self) -> str:
        """Name of the style in force."""
        if self.wanted is not None:
            return self.wanted.name if self.wanted.prompt else _USUAL_NAME
        told = list(_told(self.session.conversation.messages))
        return (told[-1].cause.split(":", 2)[2] if told else "") or _USUAL_NAME

    def use(self, name: str) -> str:
        """Let the model speak so from the next message on; return the name of the style.

        Raises:
            ConfigError: There is no such style.
        """
        self.wanted = self.styles.get(name)
        return self.wanted.name

    def services(self) -> Iterable[object]:
        return (self,)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (KeptStyle(lambda: agent.conversation.messages),) if agent.is_main else ()

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        return (StyleInForce(self),) if agent.is_main else ()

    def described(self) -> Mapping[str, Callable[[], object]]:
        return {"output_style": lambda: self.style_name}

    @classmethod
    def commands(cls) -> Iterable[Command]:
        return (
            Command(
                "output-style",
                "Choose how the model speaks",
                _choose,
                arguments="[name]",
                is_immediate=True,
                has_picker=True,
                completions=_names,
            ),
        )


class StyleInForce(ReminderSource):
    """Tells the model of the style, each time that another one is in force than it was told last."""

    def __init__(self, capability: OutputStylesCapability) -> None:
        self._capability = capability

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        style, told = self._capability.wanted, list(_told(round_.conversation.messages))
        if style is None:
            return ()
        text = _text(style) if style.prompt else _USUAL
        if (told[-1].text if told else _USUAL) == text:
            return ()
        name = style.name if style.prompt else ""
        return [SystemReminder(text=text, cause=f"style:{len(told) + 1}:{name}")]


class KeptStyle(Hook):
    """Keeps the style in force when the conversation is compacted."""

    def __init__(self, messages: Callable[[], Sequence[Message]]) -> None:
        self._messages = messages

    async def pinned_reminders(self) -> Sequence[SystemReminder]:
        return list(_told(self._messages()))[-1:]


def _told(messages: Sequence[Message]) -> Iterable[SystemReminder]:
    return (one for one in messages if isinstance(one, SystemReminder) and one.cause.startswith(_STYLE))


def _text(style: "OutputStyle") -> str:
    replaces = "" if style.keeps_coding_instructions else f" {_REPLACES}"
    head = f"The user wants the output style {style.name}: speak so from now on, in every message.{replaces}"
    return f"{head} Do not speak about the style itself.\n\n{style.prompt}"


async def _choose(terminal: Terminal, wanted: str) -> None:
    capability = terminal.session[OutputStylesCapability]
    if not wanted:
        now = capability.style_name.casefold()
        every = list(capability.styles.all.values())
        options = [
            Option(clean_line(one.name), clean_line(one.description), one.name.casefold() == now) for one in every
        ]
        options = list(number_options(options)) if len(options) < _MOST_NUMBERED else options
        if (picked := await terminal.choose("How should the model speak?", options)) is None:
            return
        wanted = every[picked].name
    for problem in capability.styles.problems:
        say(terminal, clean_line(f"not used: {problem}"), "warn")
    name = clean_line(capability.use(wanted))
    say(terminal, f"output style from the next message on: {name}")
    say(terminal, f"for later sessions, set output_style = {name!r} in your settings", "dim")


def _names(session: Session) -> Sequence[str]:
    return list(session[OutputStylesCapability].styles.all)
