"""A cassette holds what the session's own model said: a subagent's result is recorded, and never made anew."""

from pathlib import Path

import pytest

from panpan.capabilities.cassettes.replay import Mode
from tests.capabilities.cassettes.cassette_fixtures import Place

INNER = """
version = 1

[[reply]]
[[reply.tool_use]]
name = "Bash"
input = { command = "echo made > by_subagent.txt" }

[[reply]]
text = "I made it."
"""
OUTER = """
version = 1

[[reply]]
[[reply.tool_use]]
name = "Task"
input = { description = "make it", prompt = "make a file", model = "cassette:INNER" }

[[reply]]
text = "Done."
"""


@pytest.mark.parametrize("mode", ["strict", "semantic", "live-tools"])
async def test_subagent_report_is_played_without_a_subagent(tmp_path: Path, mode: Mode) -> None:
    place, inner = Place(tmp_path), tmp_path / "inner.toml"
    inner.write_text(INNER)

    recorded = await place.record("have it made", tape=OUTER.replace("INNER", str(inner)))
    made = place.workspace / "by_subagent.txt"
    assert made.exists()
    (result,) = recorded.results.values()
    assert "I made it." in result.text
    assert not result.is_error
    made.unlink()
    inner.unlink()

    report = await place.replay(mode, cwd=place.workspace if mode == "live-tools" else None)

    assert (report.is_same, report.error, report.turns) == (True, "", 1), report
    assert not made.exists()
