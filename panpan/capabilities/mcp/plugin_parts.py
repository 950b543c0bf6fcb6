"""MCP servers of a plug-in, for a person who may enable it."""

from panpan.capabilities.mcp.entries import AnyVariable, GivenServers, read_entries
from panpan.cli_kit.plugin_parts import PartReader, PartReport, RunningPart
from panpan.config.places import Places


def _servers(places: Places) -> PartReport:
    known = read_entries({}, places, GivenServers(), AnyVariable(), places.trust.files.root)
    running = [
        RunningPart(f"MCP server {entry.name}: {'; '.join(entry.described())}", entry.place)
        for entry in known.entries.values()
    ]
    return PartReport("MCP servers", list(known.entries), running, problems=known.problems, notes=known.asides)


READ: PartReader = _servers
