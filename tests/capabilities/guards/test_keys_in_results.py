from pathlib import Path

import pytest

from panpan.capabilities.guards.size_limits import RedactResults
from panpan.config.known_secrets import provider_keys
from panpan.config.settings import Settings
from panpan.system.text.redact import KnownKeys
from panpan.types.content import Base64Source, DiffDisplay, FileDiff, ImageBlock, PlanDisplay, SummaryDisplay, TextBlock
from panpan.types.events import Output
from tests.capabilities.guards.hook_fixtures import call_in

KEY = "sk-live-0123456789"
PICTURE = ImageBlock(source=Base64Source(media_type="image/png", data=KEY))


def hook() -> RedactResults:
    return RedactResults(KnownKeys([KEY]))


@pytest.mark.parametrize("is_error", [False, True])
async def test_key_is_redacted_in_every_text_and_the_model_is_told(tmp_path: Path, is_error: bool) -> None:
    output = Output((TextBlock(text=f"1\tKEY={KEY}"), PICTURE, TextBlock(text=f"({KEY})")), is_error=is_error)

    first, picture, second, note = (redacted := await hook().after_tool(call_in(tmp_path), output)).blocks

    assert (first, second) == (TextBlock(text="1\tKEY=[redacted]"), TextBlock(text="([redacted])"))
    assert picture == PICTURE
    assert isinstance(note, TextBlock)
    assert "do not write [redacted] over it" in note.text
    assert redacted.is_error is is_error


async def test_key_is_redacted_in_the_display(tmp_path: Path) -> None:
    diff = FileDiff(path=f"{KEY}.txt", diff=f"@@\n-{KEY}\n+x\n", added=1, removed=1)
    output = Output("edited", DiffDisplay(files=(diff,), notes=(f"1 new error: {KEY}",)))

    redacted = await hook().after_tool(call_in(tmp_path), output)
    summary = await hook().after_tool(call_in(tmp_path), Output("ok", SummaryDisplay(text=f"found {KEY}")))
    plan = await hook().after_tool(call_in(tmp_path), Output("ok", PlanDisplay(text=f"use {KEY}", summary=KEY)))

    clean = FileDiff(path="[redacted].txt", diff="@@\n-[redacted]\n+x\n", added=1, removed=1)
    assert redacted == Output("edited", DiffDisplay(files=(clean,), notes=("1 new error: [redacted]",)))
    assert summary.display == SummaryDisplay(text="found [redacted]")
    assert plan.display == PlanDisplay(text="use [redacted]", summary="[redacted]")


async def test_result_without_a_key_is_unchanged(tmp_path: Path) -> None:
    output = Output("sk-proj-of-a-test-0123456789", DiffDisplay(files=()))

    assert await hook().after_tool(call_in(tmp_path), output) is output


def test_redacted_keys_are_those_a_provider_could_get() -> None:
    settings = Settings.model_validate(
        {
            "api_key": "of-the-settings",
            "api_key_env": "MY_KEY",
            "providers": {"x": {"api_key": "of-a-provider", "api_key_env": "MY_OTHER_KEY"}},
        }
    )
    env = {
        "MY_KEY": "named-in-settings",
        "MY_OTHER_KEY": "named-by-provider",
        "ANTHROPIC_API_KEY": "of-a-vendor-1",
        "Z_AI_API_KEY": "of-a-vendor-2",
        "OPENAI_API_KEY": "",
        "GITHUB_TOKEN": "another-secret",
    }

    values = [*env.values(), "of-the-settings", "of-a-provider", "named-in-settings"]
    shown = [provider_keys(env, settings).redact(value) for value in values if value]

    assert shown == ["[redacted]"] * 4 + ["another-secret"] + ["[redacted]"] * 3
