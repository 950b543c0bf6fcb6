"""Places of printed numbers, and the answers about them that count."""

import json
from pathlib import Path

import pytest

from panpan.repro.claims.claim import Claim
from panpan.repro.journey.printed_numbers import Place, printed_numbers
from panpan.repro.journey.simple_questions import chosen_place, completed_claims

README = "Run:\n```sh\n$ python3 run.py --seed 1\npip install numpy\n```\n`cat README.md` and `run.py` run nothing.\n"
PLACES = (
    Place("python3 run.py", "majority accuracy", is_percent=True),
    Place("python3 run.py", "majority recall", is_percent=True),
    Place("python3 run.py", "loss", is_percent=False),
    Place("python3 run.py", "test loss", is_percent=False),
)


def claim(row: str, column: str = "", value: str = "3.50", unit: str = "") -> Claim:
    return Claim(id=f"{row}/{column}", row=row, column=column, value=value, unit=unit)


def answer(before: str, command: str = "python3 run.py") -> str:
    return json.dumps({"command": command, "before": before})


@pytest.mark.parametrize(
    ("line", "texts"),
    [
        ('print(f"mean: {x:.2f}")', [("mean", False)]),
        ('print(f"loss {a} acc {100 * b:.1f}%")', [("loss", True), ("acc", True)]),
        ('print("test mean:", x)', [("test mean", False)]),
        ('cat("mean =", x, "\\n")', [("mean", False)]),
        ('printf "\\nmean %f\\n" x', [("mean", False)]),
        ('x = {"mean": 3}', []),
        ('print("done")', []),
    ],
)
def test_texts_before_numbers_are_read(tmp_path: Path, line: str, texts: list[tuple[str, bool]]) -> None:
    (tmp_path / "README.md").write_text(README)
    (tmp_path / "run.py").write_text(f"x = 1\n{line}\n")

    found = printed_numbers(tmp_path, ["README.md", "run.py"])

    assert [(place.text, place.is_percent) for place in found] == texts
    assert {place.command for place in found} <= {"python3 run.py --seed 1"}


def test_scripts_run_if_a_readme_names_no_command(tmp_path: Path) -> None:
    for name in ("run.py", "test_run.py"):
        (tmp_path / name).write_text('print(f"mean: {x}")\n')

    found = printed_numbers(tmp_path, ["run.py", "test_run.py"])

    assert found == [Place("python3 run.py", "mean", is_percent=False)]


@pytest.mark.parametrize(
    "text", ["majority recall", "majority recall: 0.0", "majority accuracy: 0\nmajority recall: 0"]
)
def test_place_that_names_row_and_column_is_taken(text: str) -> None:
    one = claim("majority", "recall", "83.1", "%")

    assert chosen_place(one, answer(text), PLACES) == PLACES[1]


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (claim("majority", "recall", "83.1", "%"), answer("majority accuracy")),  # another column
        (claim("keyword", "recall", "83.1", "%"), answer("majority recall")),  # another row
        (claim("majority", "recall", "0.831"), answer("majority recall")),  # a fraction of a percentage
        (claim("loss"), answer("loss")),  # "test loss" has that text, too
        (claim("test loss"), answer("test loss", "grep -rn loss .")),  # an invented command
        (claim("test loss"), "I do not know."),
        (claim("test loss"), "[]"),
        (claim("test loss", value="low"), answer("test loss")),
    ],
)
def test_answer_that_may_be_wrong_is_not_taken(one: Claim, text: str) -> None:
    assert chosen_place(one, text, PLACES) is None


def test_two_numbers_at_one_place_are_left_open() -> None:
    place = PLACES[3]
    first, second = claim("test loss", "a", "1.0"), claim("test loss", "b", "2.0")

    assert completed_claims([(first, place), (second, place)]) == []
    assert len(completed_claims([(first, place), (first, place)])) == 2
