"""Settings of pages, searches and the browser."""

from typing import Literal

from pydantic import Field

from panpan.config.settings import Name, NetworkSettings, WebAddress


class WebSettings(NetworkSettings):
    """Pages, searches and the browser, `[web]`; set by the user alone."""

    table = "web"

    search: Literal["auto", "tavily", "brave", "exa", "searxng", "duckduckgo", "off"] = "auto"
    """Search engine of WebSearch; auto: the first one that has a key or an address, if any."""
    tavily_key_env: Name = "TAVILY_API_KEY"
    """Environment variable that holds the key of tavily.com."""
    brave_key_env: Name = "BRAVE_API_KEY"
    """Environment variable that holds the key of Brave Search."""
    exa_key_env: Name = "EXA_API_KEY"
    """Environment variable that holds the key of exa.ai."""
    searxng_url: WebAddress | None = None
    """Address of a SearXNG instance, such as `http://127.0.0.1:8888`; it may be on this machine or in its network."""
    timeout_s: float = Field(default=30.0, ge=1, le=600)
    """Seconds until an answer begins, and between two pieces of it."""
    robots: bool = True
    """True if panpan leaves pages alone that a site's robots.txt closes to programs."""
    pace_s: float = Field(default=2.0, ge=0, le=60)
    """Seconds between two requests to the same host, and up to a second more by chance."""
    browser: Name = "auto"
    """Program for pages that need a browser, as an absolute path; auto: the system's Chromium; off: none."""
    stealth: bool = False
    """True if the browser hides that a program drives it."""
    pages: int = Field(default=4, ge=1, le=16)
    """Limit on the pages that the browser has open at the same time."""
    login_window: bool = True
    """True if panpan may open a window in which the user logs in to a site."""

    @property
    def key_variables(self) -> tuple[str, ...]:
        return self.tavily_key_env, self.brave_key_env, self.exa_key_env
