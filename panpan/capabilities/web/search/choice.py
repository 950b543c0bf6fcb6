"""Which search engine is asked: the one that the user's settings name, or the first that has what it needs.

The rule: what asks for no key and is no interface for programs is asked only where the user says so, and where there is
none, a sentence says what would make one.
"""

from collections.abc import Mapping
from typing import Literal

from panpan.capabilities.web.domain_lists import DomainLists
from panpan.capabilities.web.search.brave import Brave
from panpan.capabilities.web.search.duckduckgo import DuckDuckGo
from panpan.capabilities.web.search.engine import SearchEngine
from panpan.capabilities.web.search.exa import Exa
from panpan.capabilities.web.search.searxng import SearXng
from panpan.capabilities.web.search.tavily import Tavily
from panpan.capabilities.web.search.web_searcher import WebSearcher
from panpan.config.settings import WebSettings
from panpan.errors import ToolError
from panpan.system.web.guarded_client import GuardedClient
from panpan.system.web.network import WebNetwork
from panpan.types.dataclass import dataclass

HOW = (
    'put a key into {tavily}, {brave} or {exa}, or set web.searxng_url, or web.search = "duckduckgo", which needs no '
    "key"
)


@dataclass(frozen=True, slots=True)
class NoEngine:
    """There is none to ask."""

    why: str
    """What is missing, and what to do."""
    is_mistake: bool
    """Whether the user wants one and would miss it."""


def searcher_of(
    settings: WebSettings, env: Mapping[str, str], network: WebNetwork, user_agent: str
) -> WebSearcher | NoEngine:
    """Return what asks the engine of a session.

    Args:
        settings: The user's.
        env: The environment, which holds the keys.
        network: How the outside is reached.
        user_agent: What the engine is told of who asks.
    """
    engine = chosen_engine(settings, env)
    if isinstance(engine, NoEngine):
        return engine
    own = (settings.searxng_url,) if isinstance(engine, SearXng) and settings.searxng_url else ()
    client = GuardedClient(network, user_agent=user_agent, own=own)
    domains = DomainLists.read(settings.allowed_domains, settings.blocked_domains)
    return WebSearcher(engine, client, domains, timeout_s=settings.timeout_s)


def chosen_engine(settings: WebSettings, env: Mapping[str, str]) -> SearchEngine | NoEngine:
    """Return which engine is asked.

    Args:
        settings: The user's.
        env: The environment, which holds the keys.
    """
    variables = {"tavily": settings.tavily_key_env, "brave": settings.brave_key_env, "exa": settings.exa_key_env}
    match settings.search:
        case "off":
            return NoEngine('web.search is "off"', is_mistake=False)
        case "duckduckgo":
            return DuckDuckGo()
        case "searxng":
            if settings.searxng_url is None:
                return NoEngine('web.search is "searxng"; say in web.searxng_url where it is', is_mistake=True)
            return _searxng(settings.searxng_url)
        case "tavily" | "brave" | "exa" as name:
            engine = _with_key(name, variables[name], env)
            return engine or NoEngine(f'web.search is "{name}", and {variables[name]} holds no key', is_mistake=True)
        case "auto":
            for name in ("tavily", "brave", "exa"):
                if engine := _with_key(name, variables[name], env):
                    return engine
            if settings.searxng_url is not None:
                return _searxng(settings.searxng_url)
            return NoEngine(HOW.format_map(variables), is_mistake=False)


def _with_key(name: Literal["tavily", "brave", "exa"], variable: str, env: Mapping[str, str]) -> SearchEngine | None:
    key = env.get(variable, "").strip()
    if not key or any(not 0x20 < ord(character) < 0x7F for character in key):
        return None  # what is no key cannot be sent as one, either
    refused = f"look at the key in {variable}"
    match name:
        case "tavily":
            return Tavily(key, refused)
        case "brave":
            return Brave(key, refused)
        case "exa":
            return Exa(key, refused)


def _searxng(url: str) -> SearchEngine | NoEngine:
    try:
        return SearXng(url)
    except ToolError as exc:
        return NoEngine(f"web.searxng_url cannot be used: {exc}", is_mistake=True)
