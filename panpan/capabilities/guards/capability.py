"""Guards of the loop: limits of rounds, replies and results, repeated calls, and keys that must not reach the model."""

from collections.abc import Iterable

from panpan.capabilities.guards.repeated_calls import RepeatedCalls
from panpan.capabilities.guards.size_limits import InterruptNotice, RedactResults, ReplyLimits, ResultSize, RoundLimit
from panpan.config.known_secrets import provider_keys
from panpan.core.hooks import Hook
from panpan.session.agent import Agent
from panpan.session.capability import Capability


class Guards(Capability):
    """Keeps a loop from going astray. The last one, so that it bounds what other hooks add to a result, too."""

    name = "guards"

    def hooks(self, agent: Agent) -> Iterable[Hook]:
        keys = provider_keys(self.session.setup.env, self.session.settings, self.session.setup.loaded.keys)
        return (
            RepeatedCalls(self.session.settings.permission.doom_loop),
            InterruptNotice(),
            RoundLimit(),
            ReplyLimits(),
            RedactResults(keys),
            ResultSize(lambda: agent.model.profile.max_result_chars),
        )
