"""Settings of pages, searches and the browser."""

from typing import Literal

from pydantic import Field

from panpan.config.settings import Name, NetworkSettings, WebAddress


class WebSettings(NetworkSettings):
    """Pages, searches and the browser, `[web]`; set by the user alone."""

    table = "web"

    search: Literal["auto", "tavily", "brave", "exa", "searxng", "duckduckgo", "off"] = "auto"
    """Search engine of WebSearch; auto: the first of them that has a key or an address, none where none has."""
    tavily_key_env: Name = "TAVILY_API_KEY"
    """Environment variable that holds the key of tavily.com."""
    brave_key_env: Name = "BRAVE_API_KEY"
    """Environment variable that holds the key of Brave Search."""
    exa_key_env: Name = "EXA_API_KEY"
    """Environment variable that holds the key of exa.ai."""
    searxng_url: WebAddress | None = None
    """Address of a SearXNG instance, such as `http://127.0.0.1:8888`; it may be on this machine or its network."""
    timeout_s: float = Field(default=30.0, ge=1, le=600)
    """Seconds that a server may take for the head of an answer, and between two pieces of it."""
    robots: bool = True
    """True if pages that a site's robots.txt closes to programs are left alone."""
    pace_s: float = Field(default=2.0, ge=0, le=60)
    """Seconds between two requests to the same host; up to a second is added, by chance."""
    browser: Name = "auto"
    """Program that shows pages which need a browser, an absolute path; auto: the system's Chromium; off: none."""
    stealth: bool = False
    """True if the browser hides that a program drives it."""
    pages: int = Field(default=4, ge=1, le=16)
    """Pages that the browser has open at the same time."""
    login_window: bool = True
    """True if a window may be opened in which the user logs in to a site themselves."""

    @property
    def key_variables(self) -> tuple[str, ...]:
        return self.tavily_key_env, self.brave_key_env, self.exa_key_env
