"""Counts the words of files: a capability with a tool, a hook, a setting and a reminder."""

from collections.abc import Iterable, Sequence

from pydantic import BaseModel, Field

from panpan.capabilities import Agent, Capability, Deny, Hook, Reason, ReminderSource, Round, SystemReminder, ToolCall
from panpan.tools import Effects, Tool, ToolContext, tool


class Settings(BaseModel):
    """Keys of `[capabilities.word_count]`."""

    most_calls: int = Field(default=3, ge=1, description="Calls that one session may make.")


async def count_words(path: str, ctx: ToolContext) -> str:
    """Count the words of a text file."""
    return f"{len(ctx.paths.resolve(path, access='read').read_text().split())} words"


async def longest_word(path: str, ctx: ToolContext) -> str:
    """Return the longest word of a text file."""
    return max(ctx.paths.resolve(path, access="read").read_text().split(), key=len, default="")


class Limit(Hook):
    """Denies calls beyond the most that the settings allow."""

    def __init__(self, most: int) -> None:
        self.most, self.made = most, 0

    async def before_tool(self, call: ToolCall) -> Deny | None:
        self.made += call.tool.name == "count_words"
        return Deny(Reason(f"{self.most} counts are enough")) if self.made > self.most else None


class Watch(ReminderSource):
    """Tells the model that there is a tool for counting."""

    async def reminders(self, round_: Round) -> Sequence[SystemReminder]:
        return [SystemReminder(text="Words are counted with count_words.", cause="word_count")]


class WordCount(Capability):
    """Lets the model count words."""

    name = "word_count"
    settings_model = Settings

    def tools(self, agent: Agent) -> Iterable[Tool[BaseModel]]:
        for function in (count_words, longest_word):
            yield tool(function, effects=lambda args, ctx: Effects(reads=(args.path,)), only_reads=True)

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        return (Limit(self.settings.most_calls),)

    def reminders(self, agent: Agent) -> Iterable[ReminderSource]:
        return (Watch(),)
