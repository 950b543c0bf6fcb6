"""Output styles of a plug-in, for a person who may enable it."""

from pathlib import Path

from panpan.capabilities.output_styles.styles import OutputStyles
from panpan.cli_kit.plugin_parts import PartReader, PartReport
from panpan.config.places import Places


def _styles(places: Places) -> PartReport:
    found = OutputStyles(places, Path("/"))
    own = {plugin.plugin.name for plugin in places.plugins}
    names = [name for name in found.all if name.partition(":")[0] in own and ":" in name]
    return PartReport("output styles", names, problems=found.problems)


READ: PartReader = _styles
