from pathlib import Path

import pytest

from panpan.cli import trust_command
from panpan.cli.trust_command import ask_for_trust
from panpan.config.locations import Locations
from panpan.config.sources import load_settings
from panpan.config.trust import Untrusted, trust_of

RULES = 'permission.allow = ["Bash(npm *)"]\n'


class Opening:
    """Sessions that are opened one after the other in a folder, by a user whose answers are ready."""

    def __init__(self, folder: Path) -> None:
        self.settings = folder / "project" / ".panpan" / "settings.toml"
        self.settings.parent.mkdir(parents=True)
        self.places = Locations(folder / "home", folder / "project")
        self.questions: list[str] = []
        self.warnings: list[str] = []

    async def asks(self, answer: bool | None = True) -> bool:
        """Open one, and return whether a question was put."""
        before = len(self.questions)

        async def ask(question: str) -> bool | None:
            self.questions.append(question)
            return answer

        await ask_for_trust(self.places, {}, {}, ask, self.warnings.append)
        return len(self.questions) > before

    @property
    def allowed(self) -> tuple[str, ...]:
        return load_settings(self.places.project_root, {}, {}, self.places).settings.permission.allow


@pytest.fixture
def opening(tmp_path: Path) -> Opening:
    return Opening(tmp_path)


async def test_trust_question_is_asked_once_and_yes_counts(opening: Opening) -> None:
    opening.settings.write_text(RULES)

    assert await opening.asks()
    assert not await opening.asks()

    assert opening.allowed == ("Bash(npm *)",)
    assert opening.questions[0].splitlines() == [
        f"{opening.places.project_root} is not trusted. It has files that could run programs or configure panpan:",
        "  .panpan/settings.toml (says how panpan works and what runs without a question)",
        '    +permission.allow = ["Bash(npm *)"]',
        "Its settings that do not count yet:",
        '  permission.allow = ["Bash(npm *)"]',
        "Do you trust these files? [y/n] ",
    ]


async def test_trust_question_after_no_waits_for_a_change(opening: Opening) -> None:
    opening.settings.write_text(RULES)

    assert await opening.asks(False)
    assert not await opening.asks()
    assert opening.allowed == ()

    opening.settings.write_text(RULES + 'effort = "high"\n')
    assert await opening.asks()
    assert opening.allowed == ("Bash(npm *)",)


async def test_trust_question_without_an_answer_is_asked_again(opening: Opening) -> None:
    opening.settings.write_text(RULES)

    assert await opening.asks(None)
    assert opening.allowed == ()
    assert await opening.asks()


async def test_trust_question_shows_the_difference_of_a_change(opening: Opening) -> None:
    opening.settings.write_text(RULES)
    await opening.asks()
    opening.settings.write_text('permission.allow = ["Bash"]\n')

    assert opening.allowed == ()
    assert await opening.asks()
    assert opening.questions[1].splitlines()[:5] == [
        f"{opening.places.project_root} changed since you trusted it:",
        "  changed: .panpan/settings.toml (says how panpan works and what runs without a question)",
        "    @@ -1 +1 @@",
        '    -permission.allow = ["Bash(npm *)"]',
        '    +permission.allow = ["Bash"]',
    ]
    assert opening.allowed == ("Bash",)


@pytest.mark.parametrize(
    "text", ["", 'permission.deny = ["Write"]\npermission.mode = "plan"\n', 'base_url = "http://x"\n']
)
async def test_trust_question_is_skipped_if_trust_changes_nothing(opening: Opening, text: str) -> None:
    opening.settings.write_text(text)
    (opening.places.project_root / ".env").write_text("A=1\n")

    assert not await opening.asks()
    assert trust_of(opening.places).state == Untrusted()


async def test_trust_question_is_skipped_for_unreadable_files(opening: Opening) -> None:
    opening.settings.write_text(RULES)
    (opening.places.project_root / ".mcp.json").symlink_to("/etc/hostname")

    assert not await opening.asks()
    assert opening.allowed == ()


async def test_trust_question_is_skipped_for_long_settings(opening: Opening) -> None:
    opening.settings.write_text(RULES + "#\n" * trust_command.MAX_LINES)

    assert not await opening.asks()
    assert "look at it with `panpan trust`" in opening.warnings[0]
    assert opening.allowed == ()


async def test_trust_covers_the_files_as_shown_in_the_question(opening: Opening) -> None:
    opening.settings.write_text(RULES)

    async def ask(question: str) -> bool:
        opening.settings.write_text('permission.allow = ["Bash"]\n')
        return True

    await ask_for_trust(opening.places, {}, {}, ask, opening.warnings.append)

    assert opening.allowed == ()
    opening.settings.write_text(RULES)
    assert opening.allowed == ("Bash(npm *)",)
