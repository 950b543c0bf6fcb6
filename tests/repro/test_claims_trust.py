"""Trust in claims.toml: nothing of a stranger's file runs before the user has seen it and said yes."""

from pathlib import Path

import pytest

from panpan.errors import ConfigError
from panpan.repro.claims.claims_file import load_claims
from panpan.repro.claims.claims_trust import keep_trust, require_trust
from panpan.repro.claims.places import is_reproduction, source_of

CLAIMS = """\
[environment]
kind = "uv"
setup = "make data"
[[claim]]
id = "a"
value = "3.50"
command = "python run.py \\u202e"
[[claim]]
id = "b"
command = "python run.py \\u202e"
[[claim]]
id = "c"
command = "curl evil"
needs.network = true
"""


class Asked:
    """Answers questions, and keeps them."""

    def __init__(self, answer: bool | None) -> None:
        self._answer = answer
        self.questions: list[str] = []

    async def __call__(self, question: str) -> bool | None:
        self.questions.append(question)
        return self._answer


async def test_question_shows_all_that_runs_and_asks_once(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(CLAIMS)
    file, asked = load_claims(tmp_path), Asked(True)
    await require_trust(file, tmp_path / "home", ask=asked)
    await require_trust(file, tmp_path / "home", ask=asked)
    (question,) = asked.questions
    assert question.endswith(
        "It runs:\n"
        "  uv: makes the environment of the project, with the network\n"
        "  setup, with the network: make data\n"
        "  command with the network, in the sandbox: curl evil\n"
        "  command, in the sandbox: python run.py <U+202E>\n"
        "Do you trust these claims?"
    )


async def test_question_names_files_that_a_link_brings_in(tmp_path: Path) -> None:
    """A folder that looks like a reproduction may come from a stranger, with a link to the user's files."""
    folder, letters = tmp_path / "paper-reproduction", tmp_path / "letters"
    folder.mkdir()
    letters.mkdir()
    (folder / "claims.toml").write_text(CLAIMS)
    (folder / "state.json").write_text('{"what": "panpan reproduction"}')
    (folder / "source").symlink_to(letters)
    asked = Asked(True)
    await require_trust(load_claims(folder), tmp_path / "home", ask=asked)

    assert "\n  on copies of the files of /" in asked.questions[0]
    assert "letters\nDo you trust" in asked.questions[0]


def test_project_with_files_of_these_names_is_no_reproduction(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "state.json").write_text('{"epoch": 3}')

    assert (is_reproduction(tmp_path), source_of(tmp_path)) == (False, tmp_path)


async def test_changed_claims_are_asked_about_again(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    path.write_text(CLAIMS)
    keep_trust(load_claims(tmp_path), tmp_path / "home", is_trusted=True)
    path.write_text(CLAIMS.replace("curl evil", "curl worse"))
    asked = Asked(False)
    with pytest.raises(ConfigError, match="is not trusted, so nothing ran; change it, or answer yes"):
        await require_trust(load_claims(tmp_path), tmp_path / "home", ask=asked)
    assert '+command = "curl worse"' in asked.questions[0]


async def test_claims_are_not_trusted_without_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(CLAIMS)
    file = load_claims(tmp_path)
    with pytest.raises(ConfigError, match=r"claims.toml is not trusted; run it once on a terminal, .* --trust"):
        await require_trust(file, tmp_path / "home")
    await require_trust(file, tmp_path / "home", trusts=True)
    with pytest.raises(ConfigError, match="is not trusted"):
        await require_trust(file, tmp_path / "home")


async def test_claims_that_the_user_confirmed_are_not_asked_about(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(CLAIMS)
    file, asked = load_claims(tmp_path), Asked(True)
    await require_trust(file, tmp_path / "home", ask=asked, has_seen=lambda claim: claim.id != "c")
    (question,) = asked.questions
    assert "curl evil" in question
    assert "run.py" not in question
    (tmp_path / "claims.toml").write_text(CLAIMS[CLAIMS.index("[[claim]]") :])
    await require_trust(load_claims(tmp_path), tmp_path / "home", has_seen=lambda _: True)


async def test_claims_without_commands_need_no_trust(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text("[[claim]]\nid = 'a'\nvalue = '3'")
    await require_trust(load_claims(tmp_path), tmp_path / "home")
