"""The pytest plug-in: `@pytest.mark.cassette(PATH)` and the fixture `panpan_cassette`.

pytest loads this module wherever panpan is installed, so it imports nothing of panpan before a test asks for it.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from panpan.testing.cassette import Cassette

_MARKER = (
    "cassette(path, mode='strict', rules=True): play the recorded conversation at `path`, which is relative to the "
    "file of the test, through the fixture panpan_cassette"
)
_MODES = ("strict", "semantic", "live-tools")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plug-in."""
    group = parser.getgroup("panpan")
    group.addoption(
        "--panpan-record",
        action="store_true",
        help="record the cassettes that are missing, with real tools and the model of --panpan-model",
    )
    group.addoption("--panpan-model", metavar="NAME", help="the model to record with, as for panpan --model")


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def panpan_cassette(request: pytest.FixtureRequest, tmp_path: Path) -> "Cassette":
    """The cassette that the test's marker names; `run` it with the prompts of the test.

    Its `workspace` is an empty folder, to be filled before.
    """
    from panpan.testing.cassette import Cassette

    marker = request.node.get_closest_marker("cassette")
    if marker is None or len(marker.args) != 1:
        raise pytest.UsageError(
            "panpan_cassette needs a marker with one path: @pytest.mark.cassette('tapes/bug.jsonl')"
        )
    if unknown := set(marker.kwargs) - {"mode", "rules"}:
        raise pytest.UsageError(f"the marker cassette takes mode and rules, not {', '.join(sorted(unknown))}")
    mode = marker.kwargs.get("mode", "strict")
    if mode not in _MODES:
        raise pytest.UsageError(f"the marker cassette knows the modes {', '.join(_MODES)}, and not {mode!r}")
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Cassette(
        request.node.path.parent / marker.args[0],
        workspace,
        mode=mode,
        uses_current_rules=marker.kwargs.get("rules", True),
        records_missing=request.config.getoption("--panpan-record"),
        model=request.config.getoption("--panpan-model"),
    )
