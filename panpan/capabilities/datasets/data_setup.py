"""What downloads of data sets need of the session."""

from collections.abc import Callable, Mapping

from panpan.config.settings import Settings
from panpan.system.web.domain_lists import DomainLists
from panpan.system.web.guarded_client import GuardedClient
from panpan.system.web.network import WebNetwork
from panpan.types.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class UnpackLimits:
    """How large the content of an archive may be."""

    max_bytes: int
    """Of all files together."""
    max_ratio: float
    """Times the size of the archive."""
    max_places: int = 2_000_000
    """Files and folders; of those folders that several lie in some are counted more than once."""


@dataclass(frozen=True, slots=True)
class DataSetup:
    """How the outside is asked for data, and how much of it may come."""

    client: GuardedClient
    hub: str
    """Address of the hub for data sets."""
    token: str
    """The user's token for the hub; empty: he has none."""
    max_bytes: int
    """Of one download."""
    unpack_limits: UnpackLimits
    domains: DomainLists
    """Of which hosts something is taken."""
    new_restriction: Callable[[str, str], str | None]
    """Returns the rule that speaks of an address, the second, and not of another one, the first."""


def data_setup_of(
    settings: Settings,
    env: Mapping[str, str],
    network: WebNetwork,
    user_agent: str,
    new_restriction: Callable[[str, str], str | None] = lambda _, __: None,
) -> DataSetup:
    """Return what the downloads of a session need.

    Args:
        settings: The user's.
        env: The environment, which holds the token.
        network: How the outside is reached.
        user_agent: What servers are told of who asks.
        new_restriction: As in `DataSetup`.
    """
    data, web = settings.data, settings.web
    most = int(data.max_gb * 10**9)
    return DataSetup(
        client=GuardedClient(network, user_agent=user_agent, own=(data.hub,)),
        hub=data.hub,
        token=env.get(data.hub_token_env, "").strip(),
        max_bytes=most,
        unpack_limits=UnpackLimits(most, data.max_ratio),
        domains=DomainLists.read(web.allowed_domains, web.blocked_domains),
        new_restriction=new_restriction,
    )
