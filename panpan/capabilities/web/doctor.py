"""Checks of `panpan doctor`: the search engine and the browser. Nothing is sent, and no browser is started."""

import os
from collections.abc import Iterable
from importlib.util import find_spec

from panpan.capabilities.web.browser.running_chromium import DRIVER, find_chromium
from panpan.capabilities.web.settings import WebSettings
from panpan.capabilities.web.web_search import SearchUnavailable, choose_engine
from panpan.cli_kit.doctor import Check, FeatureChecks, Machine
from panpan.errors import ToolError
from panpan.models.network_variables import network_variables
from panpan.system.environment import how_to_install


def check_search(machine: Machine) -> Iterable[Check]:
    """Yield the search engine that WebSearch would ask."""
    if machine.loaded is None:
        return
    engine = choose_engine(machine.loaded.settings[WebSettings], machine.env)
    if isinstance(engine, SearchUnavailable):
        yield Check("web search", "missing" if engine.is_mistake else "optional", "no WebSearch", engine.why)
        return
    found = f"asks {engine.title} at {engine.host}"
    if proxies := [name for name in network_variables() if name.lower() in ("http_proxy", "https_proxy", "all_proxy")]:
        yield Check("web search", "note", found, f"the tools of the web go there directly, not over {proxies[0]}")
    else:
        yield Check("web search", "ok", found)


def check_browser(machine: Machine) -> Iterable[Check]:
    """Yield the browser for pages that need one."""
    loaded = machine.loaded
    chosen = loaded.settings[WebSettings].browser if loaded is not None else "auto"
    if loaded is not None and chosen == "off":
        yield Check("browser", "note", f"the browser is switched off by {loaded.origins['web.browser']}")
        return
    has_driver = find_spec("playwright") is not None
    how = "" if has_driver else f"Playwright, which drives it, is missing; run: {how_to_install(DRIVER)}"
    try:
        found = find_chromium(chosen, os.pathsep.join(machine.program_folders), machine.env)
    except ToolError as exc:
        advice = "; ".join(filter(None, (str(exc), how)))
        yield Check("browser", "optional" if chosen == "auto" else "missing", "no browser", advice)
    else:
        yield Check("browser", "ok", found) if has_driver else Check("browser", "optional", found, how)


CHECKS: FeatureChecks = {"web": check_search, "programs": check_browser}
