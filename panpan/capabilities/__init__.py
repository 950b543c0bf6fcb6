"""The features, a folder each, and the public names for a feature of your own. `docs/capabilities.md` shows how.

Each feature is a `Capability`, and none imports another.
"""

from panpan.public_names import loader

TYPE_CHECKING = False  # as type checkers know it; `typing` would cost some milliseconds

if TYPE_CHECKING:
    from panpan.core.conversation import Conversation
    from panpan.core.hooks import Addition, Hook, Round, ToolCall
    from panpan.models.provider_kind import KnownModel, NamedProvider, ProviderKind
    from panpan.session.agent import Agent
    from panpan.session.capability import Capability, beside
    from panpan.session.command import Command, Terminal
    from panpan.session.context import SessionContext
    from panpan.session.reminders.source import ReminderSource
    from panpan.types.messages import SystemReminder, UserMessage
    from panpan.types.permission import Allow, Ask, Decision, Deny, PermissionQuestion, Reason

__all__ = [
    "Addition",
    "Agent",
    "Allow",
    "Ask",
    "Capability",
    "Command",
    "Conversation",
    "Decision",
    "Deny",
    "Hook",
    "KnownModel",
    "NamedProvider",
    "PermissionQuestion",
    "ProviderKind",
    "Reason",
    "ReminderSource",
    "Round",
    "SessionContext",
    "SystemReminder",
    "Terminal",
    "ToolCall",
    "UserMessage",
    "beside",
]

__getattr__ = loader(
    __name__,
    {
        "Addition": "panpan.core.hooks",
        "Agent": "panpan.session.agent",
        "Allow": "panpan.types.permission",
        "Ask": "panpan.types.permission",
        "Capability": "panpan.session.capability",
        "Command": "panpan.session.command",
        "Conversation": "panpan.core.conversation",
        "Decision": "panpan.types.permission",
        "Deny": "panpan.types.permission",
        "Hook": "panpan.core.hooks",
        "KnownModel": "panpan.models.provider_kind",
        "NamedProvider": "panpan.models.provider_kind",
        "ProviderKind": "panpan.models.provider_kind",
        "PermissionQuestion": "panpan.types.permission",
        "Reason": "panpan.types.permission",
        "ReminderSource": "panpan.session.reminders.source",
        "Round": "panpan.core.hooks",
        "SessionContext": "panpan.session.context",
        "SystemReminder": "panpan.types.messages",
        "Terminal": "panpan.session.command",
        "ToolCall": "panpan.core.hooks",
        "UserMessage": "panpan.types.messages",
        "beside": "panpan.session.capability",
    },
)
