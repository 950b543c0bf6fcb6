"""Scenes of `panpan demo`. A feature with a model of its own returns one from `local_scene` in its `demo.py`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from panpan.types.dataclass import dataclass

TEST_COMMAND = "python3 -m unittest"


@dataclass(frozen=True, slots=True)
class Scene:
    """Script of a demo."""

    introduction: str
    """Printed first; `{project}` is replaced by the folder."""
    prompts: Sequence[str]
    """Sent one after the other, each after the end of the turn before."""
    model: str
    """Model, as for `--model`."""
    fault: Callable[[Path], str] = lambda _: ""
    """Returns a problem with the project afterwards, besides its tests; "" if there is none."""
    farewell: str = ""
    """Printed last, whatever the result."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """Changes of the copy of the project before the demo begins: new text by old."""
