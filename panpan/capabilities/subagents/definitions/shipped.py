"""The definitions that panpan brings along: in `agents/` of a checkout, in `panpan/_shipped/agents` once installed."""

from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from panpan.capabilities.subagents.definitions.files import read_text
from panpan.capabilities.subagents.definitions.places import Place
from panpan.types.agent import AgentDefinition

SOURCE = "panpan"


def shipped_definitions() -> Iterator[AgentDefinition]:
    """Yield the definitions that are shipped, by their names."""
    folder = _folder()
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".md"):
            text = file.read_text(encoding="utf-8")
            definition, _ = read_text(text, SOURCE, Place(Path(file.name)), file.name.removesuffix(".md"))
            if definition is not None:
                yield definition


def _folder() -> Traversable:
    package = files("panpan")
    installed = package.joinpath("_shipped", "agents")
    checkout = Path(str(package)).parent / "agents"
    return checkout if checkout.is_dir() and not installed.is_dir() else installed
