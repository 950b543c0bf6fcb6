"""Mentions: files that the user names with an `@` go along with what they say."""

from panpan.capabilities.mentions.mentions import with_mentions
from panpan.capabilities.subagents.agent_mentions import names_behind_at
from panpan.capabilities.subagents.definitions.load import AgentDefinitions
from panpan.config.known_secrets import provider_keys
from panpan.session.capability import Capability
from panpan.types.messages import UserMessage


class Mentions(Capability):
    """Adds the files behind an `@`, and warns of each that stays out."""

    name = "mentions"

    async def prepared(self, message: UserMessage) -> UserMessage:
        session = self.session
        definitions = session.find(AgentDefinitions)
        agents = names_behind_at([] if definitions is None else [one.name for one in definitions.all])
        keys = provider_keys(session.setup.env, session.settings)
        message, notes = await with_mentions(message, session.tool_context, agents=agents, keys=keys, gate=session.gate)
        for note in notes:
            session.warn(note)
        return message
