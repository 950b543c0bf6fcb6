"""Check of `panpan doctor`: the MCP servers, and those that cannot be used."""

from collections.abc import Iterable

from panpan.capabilities.mcp.approvals import Approvals
from panpan.capabilities.mcp.entries import GivenServers, environment_of, how_to_get_library, read_entries
from panpan.capabilities.mcp.settings import McpServerSettings
from panpan.cli_kit.doctor import Check, FeatureChecks, Machine


def check_servers(machine: Machine) -> Iterable[Check]:
    """Report how many MCP servers there are, and what keeps others from being used."""
    if machine.loaded is None:
        return
    loaded, locations = machine.loaded, machine.locations
    own = loaded.settings.named(McpServerSettings)
    environment = environment_of(machine.env, loaded.settings)
    known = read_entries(own, loaded.places, GivenServers(), environment, locations.project_root)
    if known.entries:
        yield Check("MCP servers", "ok", f"{len(known.entries):,} known: panpan mcp list")
        if command := how_to_get_library():
            yield Check("MCP servers", "note", f"none can be used; install the library: {command}")
    approvals = Approvals(locations.home / "mcp", locations.project_root)
    for entry in known.entries.values():
        if entry.settings.enabled and approvals.waits_for(entry):
            yield Check("MCP servers", "note", f"{entry.name} waits for your yes: panpan mcp approve {entry.name}")
    for problem in (*known.problems, *known.asides):
        yield Check("MCP servers", "note", problem)


CHECKS: FeatureChecks = {"programs": check_servers}
