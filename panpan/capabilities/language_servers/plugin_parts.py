"""Language servers of a plug-in, for a person who may enable it."""

from panpan.capabilities.language_servers.settings import servers_of_plugins
from panpan.cli_kit.plugin_parts import PartReader, PartReport, RunningPart
from panpan.config.places import Places


def _servers(places: Places) -> PartReport:
    found, problems = servers_of_plugins(places)
    running = [
        RunningPart(f"language server {name}, in projects that you trust: {' '.join(settings.command)}", "")
        for name, settings in found.items()
    ]
    return PartReport("language servers", list(found), running, problems)


READ: PartReader = _servers
