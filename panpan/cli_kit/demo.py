"""Scenes of `panpan demo`. One with a model of its own is what `local_scene` returns in the `demo.py` of a feature."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from panpan.types.dataclass import dataclass

TEST_COMMAND = "python3 -m unittest"


@dataclass(frozen=True, slots=True)
class Scene:
    """What a demo shows."""

    introduction: str
    """Printed first; `{project}` stands for the folder."""
    prompts: Sequence[str]
    """Sent one after the other, each when the turn before has ended."""
    model: str
    """As for `--model`."""
    fault: Callable[[Path], str] = lambda _: ""
    """Says what is wrong with the project afterwards, besides its tests; empty where nothing is."""
    farewell: str = ""
    """Printed last, whatever came out."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """Replaced in the copy of the project before the demo begins: old text by new."""
