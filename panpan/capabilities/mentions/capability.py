"""Mentions: files that the user names with an `@` go along with what they say."""

from panpan.capabilities.mentions.mentions import Viewers, with_mentions
from panpan.config.known_secrets import provider_keys
from panpan.core.tool import FileViewer, FolderViewer
from panpan.session.capability import Capability
from panpan.types.attachments import NamesBehindAt
from panpan.types.messages import UserMessage


class Mentions(Capability):
    """Adds the files behind an `@`, and warns of each that stays out."""

    name = "mentions"

    async def prepared(self, message: UserMessage) -> UserMessage:
        session = self.session
        others = session.find(NamesBehindAt)
        keys = provider_keys(session.setup.env, session.settings)
        message, notes = await with_mentions(
            message,
            session.tool_context,
            Viewers(session.find(FileViewer), session.find(FolderViewer)),
            agents=() if others is None else others.names_behind_at,
            keys=keys,
            gate=session.gate,
        )
        for note in notes:
            session.warn(note)
        return message
