"""Progress of a session, read from outside: its prompts, each once, and the spending of all its runs."""

from contextlib import aclosing
from pathlib import Path

from panpan.api import open_session
from panpan.config.locations import Locations
from panpan.session.stored.finding import log_of_id
from panpan.session.stored.progress import progress_of

ID = "0f9d1c3e-5a6b-4c7d-8e9f-0a1b2c3d4e5f"
TAPE = """version = 1
[[reply]]
text = "Looking."
usage = { input_tokens = 100, output_tokens = 10 }
[[reply.tool_use]]
name = "Glob"
input = { pattern = "*" }
[[reply]]
text = "done"
usage = { input_tokens = 200, output_tokens = 20 }
"""


async def say(place: Path, text: str) -> None:
    env = {"HOME": str(place), "PANPAN_HOME": str(place / "home")}
    overrides = {"model": f"cassette:{place / 'tape.toml'}"}
    async with (
        open_session(place / "work", session=ID, overrides=overrides, env=env) as session,
        aclosing(session.submit(text)) as events,
    ):
        async for _ in events:
            pass


async def test_progress_counts_prompts_and_spending_of_all_runs(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "tape.toml").write_text(TAPE)
    locations = Locations.find(tmp_path / "work", {"PANPAN_HOME": str(tmp_path / "home")})
    assert progress_of(log_of_id(locations, ID)).prompts == 0

    await say(tmp_path, "first")
    one = progress_of(log_of_id(locations, ID))
    await say(tmp_path, "second")
    two = progress_of(log_of_id(locations, ID))

    assert (one.prompts, two.prompts) == (1, 2)
    assert (one.spent.tokens, two.spent.tokens) == (330, 660)


async def test_log_is_found_by_id_from_another_folder(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "tape.toml").write_text(TAPE)
    await say(tmp_path, "first")
    elsewhere = Locations.find(tmp_path, {"PANPAN_HOME": str(tmp_path / "home")})

    log = log_of_id(elsewhere, ID)

    assert log is not None
    assert log.name == f"{ID}.jsonl"
    assert log_of_id(elsewhere, ID.replace("0f", "1f")) is None
