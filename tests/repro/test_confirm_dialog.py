"""`panpan repro confirm`: nothing is confirmed that was not shown and answered."""

import os
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import pytest

from panpan.errors import AnswerNeededError
from panpan.repro.claims.claims_file import load_claims
from panpan.repro.claims.confirmations import Confirmations
from panpan.repro.papers.confirming import confirm
from panpan.session.command import Option
from tests.prepared_command import PREPARED
from tests.terminal_emulator.terminal import Terminal

CLAIMS = """\
# mine
[[claim]]
id = "table-1/mean"  # the main result
table = "Table 1"
row = "Mean"
value = "81.2"
unit = "%"
spread = 0.3
command = "python train.py --seed {seed}"
extract = { output = 'acc: ([0-9.]+)' }
seed = 0
quote = "Mean | 81.2 ± 0.3"
page = 4

[[claim]]
id = "table-1/huber"
value = "85.9"
command = "python \\u202ehuber.py"
extract = { json = "m.json", at = "acc", scale = 100 }
tolerance = { relative = 0.01 }

[[claim]]
id = "table-1/later"
value = "1.5"
"""


class Answers:
    """Answers questions by the beginnings of options, and keeps all that was shown."""

    def __init__(self, *answers: str | None) -> None:
        self._answers = list(answers)
        self.titles: list[str] = []
        self.told: list[str] = []

    async def tell(self, text: str) -> None:
        self.told.append(text)

    async def choose(self, title: str, options: Sequence[Option]) -> int | None:
        self.titles.append(title)
        answer = self._answers.pop(0)
        if answer is None:
            return None
        return next(at for at, option in enumerate(options) if option.label.startswith(answer))


class Place:
    """A folder with claims, and a home."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "work"
        self.folder.mkdir()
        self.file = self.folder / "claims.toml"
        self.file.write_text(CLAIMS, encoding="utf-8")
        self.env = {"HOME": str(root), "PANPAN_HOME": str(root / "home"), "PATH": os.environ["PATH"]}
        self.confirmations = Confirmations(self.folder, root / "home")

    def confirm(self, *answers: str | None, says_yes: bool = False) -> Answers:
        asked = Answers(*answers)
        anyio.run(partial(confirm, self.folder, says_yes=says_yes, env=self.env, questions=asked))
        return asked

    @property
    def confirmed(self) -> list[str]:
        """Ids of the confirmed claims of the file."""
        claims = load_claims(self.folder).claims.claim
        return [claim.id for claim in claims if self.confirmations.confirms(claim)]

    def editor(self, script: str) -> None:
        """Let the editor be a shell script that gets the file as `$1`."""
        path = self.folder.parent / "editor"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        self.env["VISUAL"] = str(path)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_claim_is_shown_whole_before_it_is_confirmed(place: Place) -> None:
    asked = place.confirm("One by one", "Yes", "Yes")
    _, first, second = asked.titles
    assert 'The paper says: 81.2 ± 0.3 % (Table 1, row "Mean", page 4)' in first
    assert "it reads: Mean | 81.2 ± 0.3" in first
    assert "Command: python train.py --seed {seed}" in first
    assert "Its number: last match of acc: ([0-9.]+) in the output" in first
    assert "Tolerance: half a unit of the last written digit" in first
    assert "Seed of the paper: 0" in first
    assert "Command: python <U+202E>huber.py" in second
    assert "Its number: acc in m.json, times 100" in second
    assert "Tolerance: ±1.000% of the value" in second
    assert place.confirmed == ["table-1/mean", "table-1/huber"]


def test_answer_is_kept_before_the_next_question(place: Place) -> None:
    with pytest.raises(AnswerNeededError, match=r"1 claim of .*claims\.toml waits for you"):
        place.confirm("One by one", "Yes", None)
    assert place.confirmed == ["table-1/mean"]


def test_left_dialog_confirms_nothing(place: Place) -> None:
    for answers in ((None,), ("Leave",), ("One by one", None), ("One by one", "Leave it", "Stop"), ("All", "No")):
        with pytest.raises(AnswerNeededError, match=r"2 claims of .*claims\.toml wait for you") as raised:
            place.confirm(*answers)
        assert raised.value.exit_code == 5
    assert place.confirmed == []


def test_next_command_is_named_but_not_within_a_reproduction(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.confirm("All", "Yes, confirm these 2 claims")
    assert capsys.readouterr().out == "all claims that can run are confirmed; check them with panpan repro check\n"

    (place.folder / "state.json").write_text('{"what": "panpan reproduction"}')
    (place.folder / "source").mkdir()
    place.file.write_text(CLAIMS.replace("train.py", "other.py"))
    place.confirm("Yes")
    assert capsys.readouterr().out == "all claims that can run are confirmed\n"


def test_all_are_listed_before_one_answer_confirms_them(place: Place) -> None:
    asked = place.confirm("All", "Yes, confirm these 2 claims")
    assert ["Claim: table-1/mean" in asked.told[0], "Claim: table-1/huber" in asked.told[1]] == [True, True]
    assert place.confirmed == ["table-1/mean", "table-1/huber"]


def test_yes_beforehand_confirms_all_that_can_run(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.confirm(says_yes=True).titles == []
    assert capsys.readouterr().out == "confirmed 2 claims\n"
    assert place.confirmed == ["table-1/mean", "table-1/huber"]
    assert place.file.read_text(encoding="utf-8") == CLAIMS


def test_claim_that_changed_is_asked_about_with_the_change(place: Place) -> None:
    place.confirm(says_yes=True)
    place.file.write_text(CLAIMS.replace("train.py", "evil.py").replace("seed = 0", "seed = 0\nconfirmed = true"))
    assert place.confirmed == ["table-1/huber"]
    asked = place.confirm("Yes")
    assert "Changed since you confirmed it: command was 'python train.py --seed {seed}'" in asked.titles[0]
    assert place.confirmed == ["table-1/mean", "table-1/huber"]


def test_claims_that_cannot_run_are_named_not_asked(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    place.confirm(says_yes=True)
    capsys.readouterr()
    assert place.confirm().titles == []
    assert capsys.readouterr().out.startswith(
        "nothing to confirm; 1 claim cannot run yet, such as table-1/later: no com"
    )


def test_edited_claim_is_shown_again_and_keeps_comments(place: Place) -> None:
    place.editor(
        """sed -i 's/"81.2"/"81.3"/; s/^extract.*/extract = { json = "n.json", at = "a.b" }/; /^seed/d' "$1" """
    )
    asked = place.confirm("One by one", "Edit", "Yes", "Yes")
    assert "The paper says: 81.3 ± 0.3 %" in asked.titles[2]
    text = place.file.read_text(encoding="utf-8")
    assert 'id = "table-1/mean"  # the main result\n' in text
    assert 'extract = {json = "n.json", at = "a.b"}' in text
    assert "seed = 0" not in text
    assert place.confirmed == ["table-1/mean", "table-1/huber"]


def test_wrong_edit_comes_back_with_the_problem(place: Place, tmp_path: Path) -> None:
    place.editor(f"""cp "$1" "{tmp_path}/$(date +%s%N)"; sed -i 's/^value.*/value = [1]/' "$1" """)
    with pytest.raises(AnswerNeededError):
        place.confirm("One by one", "Edit", "Stop")
    texts = [path.read_text() for path in sorted(tmp_path.glob("1*"))]
    assert len(texts) == 2
    assert texts[1].startswith("# claims.toml:")
    assert "value" in texts[1].splitlines()[0]
    assert place.file.read_text(encoding="utf-8") == CLAIMS


def test_editor_that_fails_changes_nothing(place: Place) -> None:
    place.editor("exit 3")
    with pytest.raises(AnswerNeededError):
        asked = Answers("One by one", "Edit", "Stop")
        anyio.run(partial(confirm, place.folder, env=place.env, questions=asked))
    assert asked.told == ["editor ended with exit code 3, so the text is unchanged"]
    assert place.file.read_text(encoding="utf-8") == CLAIMS


def test_removed_claim_leaves_the_rest_as_it_was(place: Place) -> None:
    place.confirm("One by one", "Yes", "Remove")
    text = place.file.read_text(encoding="utf-8")
    assert (
        text
        == CLAIMS[: CLAIMS.index('[[claim]]\nid = "table-1/huber"')]
        + CLAIMS[CLAIMS.index('[[claim]]\nid = "table-1/later"') :]
    )
    assert place.confirmed == ["table-1/mean"]


def test_command_without_a_terminal_exits_with_5(place: Place) -> None:
    env = {**os.environ, **place.env}
    argv = PREPARED.argv("repro", "confirm", str(place.folder), env=env)
    ended = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert ended.returncode == 5
    assert f"on a terminal, run: panpan repro confirm {place.folder}, or confirm all with --yes" in ended.stderr
    assert place.confirmed == []


def test_command_asks_on_a_terminal(place: Place) -> None:
    env = {**os.environ, **place.env}
    argv = PREPARED.argv("repro", "confirm", env=env)
    with Terminal(argv, env=env, cwd=place.folder, rows=40) as terminal:
        terminal.wait_for("2 claims wait for you: Table 1.")
        terminal.send("1")
        terminal.wait_for("(1 of 2)")
        terminal.send("1")
        terminal.wait_for("(2 of 2)")
        terminal.wait_for("Command: python <U+202E>huber.py")
        terminal.send("1")
        terminal.wait_for("all claims that can run are confirmed")
        assert terminal.wait() == 0
    assert place.confirmed == ["table-1/mean", "table-1/huber"]
