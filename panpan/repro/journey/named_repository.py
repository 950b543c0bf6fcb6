"""The repository that a paper names, for a journey that was given none.

The rule: a paper is a stranger's. Its repository is cloned only if the user says so, only from a public host or one
that the user has opened (`web.private_hosts`), and from the place that was checked: no redirect leads elsewhere.
"""

from dataclasses import replace
from pathlib import Path

from panpan.errors import AnswerNeededError, ConfigError, ToolError
from panpan.repro.journey.given import Given
from panpan.repro.journey.parts import Parts
from panpan.repro.papers.repository_addresses import NamedRepositories, NamedRepository, is_known, repository_address
from panpan.system.git.fetching import GitAddress, git_address
from panpan.system.text.terminal_text import listed
from panpan.system.web.network import WebNetwork
from panpan.system.web.url_guard import guard_url, plain_url

_MOST_TOLD = 6


async def named_repository(paper: Path, parts: Parts, network: WebNetwork, *, says_yes: bool) -> Given | None:
    """Return the one repository that a paper names; None if it names none.

    Args:
        paper: The paper.
        parts: Reads the paper and asks the user.
        network: The outside, as the user has set it up.
        says_yes: True if it is cloned without a question.

    Raises:
        AnswerNeededError: The paper names several, or the user has not said yes.
        ConfigError: The paper cannot be read, or its repository is on no public host.
    """
    named = await parts.repositories(paper)
    able = tuple(one for one in named.repositories if _may_be_fetched(one, network))
    candidates = NamedRepositories(repositories=able).candidates
    if not candidates:
        return None
    if len(candidates) > 1:
        flags = listed([f"--repo {one}" for one in candidates], _MOST_TOLD)
        raise AnswerNeededError(f"the paper names {len(candidates):,} repositories; add one of them: {flags}")
    (address,) = candidates
    if not says_yes and not await parts.may_clone(address):
        raise AnswerNeededError(f"{address} was not cloned; name the repository of the paper with --repo")
    return Given("repository", address, address=await _checked(address, network))


def _may_be_fetched(named: NamedRepository, network: WebNetwork) -> bool:
    """True if an address has the form that the reader of papers gives it, and leads to no closed host."""
    location = named.address.partition("#")[0]
    try:
        plain_url(location, network.private)
        return repository_address(location) == location and git_address(named.address) is not None
    except (ToolError, ConfigError):
        return False


async def _checked(text: str, network: WebNetwork) -> GitAddress:
    """Return an address with the places that its host may have."""
    address = git_address(text)
    assert address is not None
    if is_known(address.location) or network.proxy is not None:  # a proxy looks up the names of hosts itself
        return address
    try:
        guarded = await guard_url(address.location, network.resolve, network.private)
    except ToolError as error:
        raise ConfigError(f"the paper names {text}, which cannot be fetched: {error}") from error
    return replace(address, is_at=(f"{guarded.plain.host}:{guarded.plain.port}", *guarded.addresses))
