"""The features, a folder each, and the public names for a feature of your own. `docs/capabilities.md` shows how.

Each feature is a `Capability`, and none imports another.
"""

from panpan.public_names import loader

TYPE_CHECKING = False  # type checkers know this name; importing `typing` takes milliseconds

if TYPE_CHECKING:
    from panpan.config.models import ModelFacts
    from panpan.core.conversation import Conversation
    from panpan.core.hooks import Addition, Hook, Round, ToolCall
    from panpan.models.provider_kind import KnownModel, NamedProvider, ProviderKind
    from panpan.models.reply import ReplyBuilder
    from panpan.session.agent import Agent
    from panpan.session.capability import Capability, concurrently
    from panpan.session.command import Command, Option, Terminal, say
    from panpan.session.context import SessionContext
    from panpan.session.reminders import ReminderSource
    from panpan.types.content import (
        ChecklistDisplay,
        ChecklistItem,
        DiffDisplay,
        FileDiff,
        Span,
        TableDisplay,
        TextDisplay,
        table,
        text,
    )
    from panpan.types.llm import Provider
    from panpan.types.messages import SystemReminder, UserMessage
    from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionQuestion, Reason

__all__ = [
    "Addition",
    "Agent",
    "Allow",
    "Ask",
    "Capability",
    "ChecklistDisplay",
    "ChecklistItem",
    "Command",
    "Conversation",
    "Decision",
    "Deny",
    "DiffDisplay",
    "FileDiff",
    "Hook",
    "KnownModel",
    "ModelFacts",
    "NamedProvider",
    "Option",
    "PermissionQuestion",
    "Provider",
    "ProviderKind",
    "Reason",
    "ReminderSource",
    "ReplyBuilder",
    "Round",
    "SessionContext",
    "Span",
    "SystemReminder",
    "TableDisplay",
    "Terminal",
    "TextDisplay",
    "ToolCall",
    "UserMessage",
    "concurrently",
    "say",
    "table",
    "text",
]

__getattr__ = loader(
    __name__,
    {
        "Addition": "panpan.core.hooks",
        "Agent": "panpan.session.agent",
        "Allow": "panpan.types.permission",
        "Ask": "panpan.types.permission",
        "Capability": "panpan.session.capability",
        "ChecklistDisplay": "panpan.types.content",
        "ChecklistItem": "panpan.types.content",
        "Command": "panpan.session.command",
        "Conversation": "panpan.core.conversation",
        "Decision": "panpan.types.permission",
        "Deny": "panpan.types.permission",
        "DiffDisplay": "panpan.types.content",
        "FileDiff": "panpan.types.content",
        "Hook": "panpan.core.hooks",
        "KnownModel": "panpan.models.provider_kind",
        "ModelFacts": "panpan.config.models",
        "NamedProvider": "panpan.models.provider_kind",
        "Option": "panpan.session.command",
        "PermissionQuestion": "panpan.types.permission",
        "Provider": "panpan.types.llm",
        "ProviderKind": "panpan.models.provider_kind",
        "Reason": "panpan.types.permission",
        "ReminderSource": "panpan.session.reminders",
        "ReplyBuilder": "panpan.models.reply",
        "Round": "panpan.core.hooks",
        "SessionContext": "panpan.session.context",
        "Span": "panpan.types.content",
        "SystemReminder": "panpan.types.messages",
        "TableDisplay": "panpan.types.content",
        "Terminal": "panpan.session.command",
        "TextDisplay": "panpan.types.content",
        "ToolCall": "panpan.core.hooks",
        "UserMessage": "panpan.types.messages",
        "concurrently": "panpan.session.capability",
        "say": "panpan.session.command",
        "table": "panpan.types.content",
        "text": "panpan.types.content",
    },
)
