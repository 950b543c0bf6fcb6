"""compare.py of a kit: it finds and judges numbers as panpan does, with the standard library alone."""

import ast
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.repro.checking.extraction import find_numbers
from panpan.repro.checking.judging import judge_all
from panpan.repro.checking.results import CheckReport, ClaimRun, DataCheck
from panpan.repro.claims import written_number
from panpan.repro.claims.claim import Claim, Extract
from panpan.repro.kit import compare
from panpan.system.sandbox.command_sandbox import CommandSandbox
from panpan.system.text.cell_width import cell_width
from tests.repro.toy_kits import check_of, receipt_of

OUTPUT = "\x1b[32mloss: 0.5\x1b[0m\r\nloss: 0.25\nscore 83.1 % (5)\nscore: none\n, n = 1,234.5\nF1\tx\n"
FILES = {
    "m.json": '{"test": {"acc": 0.830, "n": 1e-3, "a.b": {"c": "12,5"}}, "folds": [1, 2.50], "is": true, "no": NaN}',
    "n.json": "41.50",
    "bad.json": "{",
    "t.csv": "\ufeffmethod;f1;p\nours;35.6;0.10\ntheirs;-0.5;1\nthird;30;0.2\n",
    "twice.csv": "a,a,b\n1,2,3\n",
    "log/l.txt": "epoch 1: 3\nepoch 2: 4\n",
}
EXTRACTS: list[dict[str, Any]] = [
    *[{"output": pattern} for pattern in ("loss: (.*)", "score ([^(]*)", "score: (.*)", r"n = (\S+)", "gone (.)")],
    *[{"output": pattern} for pattern in ("^F1\t(x)|^F1\t(y)", "(?:loss: (0.2)5)|score", "loss: ([0-9.]+)$")],
    *[{"json": "m.json", "at": at} for at in ("test.acc", "test.n", "test.a.b.c", "folds.1", "folds.-1", "folds.2")],
    *[{"json": "m.json", "at": at} for at in ("is", "no", "test", "test.acc.x")],
    *[{"json": name} for name in ("n.json", "bad.json", "gone.json", "../m.json", "link.json")],
    *[{"csv": "t.csv", "where": where, "column": "f1"} for where in ({"method": "ours"}, {"p": "0.1"}, {"p": "1.0"})],
    *[{"csv": "t.csv", "where": {"method": "theirs"}, "column": column} for column in ("f1", "p", "method", "gone")],
    *[{"csv": "t.csv", "where": {}, "column": "f1"}, {"csv": "twice.csv", "where": {}, "column": "a"}],
    *[{"csv": "twice.csv", "where": {}, "column": "b"}, {"csv": "t.csv", "where": {"gone": "1"}, "column": "f1"}],
    *[{"file": name, "match": r"epoch \d: (\d)"} for name in ("log/l.txt", "gone.txt", "m.json", "log")],
]


async def test_numbers_are_found_where_a_check_finds_them(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (tmp_path / "m.json").write_text("1")
    (folder / "link.json").symlink_to(tmp_path / "m.json")
    output = tmp_path / "output.txt"
    output.write_bytes(OUTPUT.encode())

    theirs = await find_numbers([Extract.model_validate(one) for one in EXTRACTS], folder, output, CommandSandbox())
    ours = [_number(one, folder, output) for one in EXTRACTS]

    assert ours == [one.number for one in theirs]
    assert sum(map(bool, ours)) >= 15


def _number(extract: dict[str, Any], folder: Path, output: Path) -> str:
    try:
        return compare.find_number(extract, folder, output)
    except compare.NoNumberError as error:
        return "" if str(error) else "no reason"


@given(st.text("0123456789.,'-\u2212+eE%± x^\u00d7·()\u2009\u00a0⁻²", max_size=12))
def test_read_number_agrees_with_that_of_checks(text: str) -> None:
    theirs = written_number.read_number(text)
    ours = compare.read_number(text)

    assert str(ours) == str(theirs.value if theirs else None)


@pytest.mark.parametrize(
    "text", ["1,234.5", "83.1 %", "1e-3", "\u22120.5", "0,5", "1.2 \u00d7 10⁻³", "83.1 ± 0.3", "1" * 300, "nan"]
)
def test_read_number_agrees_on_what_people_write(text: str) -> None:
    theirs = written_number.read_number(text)

    assert str(compare.read_number(text)) == str(theirs.value if theirs else None)


FINITE = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12)


@given(FINITE, st.sampled_from(["83.1", "0.98", "12", "1.2e-10", "5e3", "0.0"]), st.integers(1, 6))
def test_numbers_are_shown_as_those_of_checks(value: Decimal, claimed: str, more: int) -> None:
    like = written_number.read_number(claimed)
    assert like is not None

    assert compare.shown_number(value, like.value, more) == written_number.shown_number(value, like, more=more)


NUMBERS = st.integers(340, 360).map(lambda number: f"{number / 100:.2f}")
TOLERANCES = st.sampled_from([{}, {"absolute": 0.02}, {"relative": 0.01}, {"exact": True}, {"runs": 3}])


@st.composite
def checked_claims(draw: st.DrawFn) -> CheckReport:
    """Return the check of a claim; its command may be deterministic or not, and a run may fail."""
    takes_seed, is_stable = draw(st.booleans()), draw(st.booleans())
    seeds = [None] if not takes_seed else draw(st.lists(st.integers(0, 4), min_size=1, max_size=5, unique=True))
    fields = {
        "id": "toy",
        "value": draw(NUMBERS),
        "command": "run {seed}" if takes_seed else "run",
        "extract": {"output": "(.*)", "scale": draw(st.sampled_from([1.0, 0.1]))},
        "tolerance": draw(TOLERANCES),
        "seed": draw(st.sampled_from([None, 0, 1])),
        "seeds": draw(st.sampled_from([(), (1, 0)])),
        "spread": draw(st.sampled_from([None, 0.03])),
    }
    runs = list[ClaimRun]()
    for seed in seeds:
        number = draw(NUMBERS | st.just(""))
        for attempt in range(1, 1 + (2 if is_stable else draw(st.integers(2, 4)))):
            number = number if is_stable else draw(NUMBERS)
            problem = "" if number else "no number"
            one = ClaimRun(seed=seed, attempt=attempt, number=number, problem=problem, receipt=receipt_of(seed or 0))
            runs.append(one)
    data = draw(st.sampled_from([(), (DataCheck(path="a", problem="a is other data"),)]))
    claim = Claim.model_validate(fields)
    return CheckReport(judgements=judge_all([claim], {"toy": runs}, obstacles={}, data=data), data=data)


@given(checked_claims())
def test_same_numbers_get_the_verdict_of_the_check(report: CheckReport) -> None:
    check = report.model_dump(mode="json")
    left = [(run["seed"], run["number"]) for run in check["judgements"][0]["runs"]]
    again = list[tuple[int | None, str]]()
    for run in compare.runs_of(check):
        again.append(next(one for one in left if one[0] == run["seed"]))
        left.remove(again[-1])

    verdict, reason = compare.judge(check["judgements"][0], again, "".join(one.problem for one in report.data))

    assert (verdict, bool(reason)) == (report.judgements[0].verdict, True)
    deterministic = len({number for seed, number in again if seed == again[0][0]}) == 1
    assert deterministic or len(again) >= 2


def test_other_number_than_in_the_check_is_no_deviation() -> None:
    judgement = check_of("").model_dump(mode="json")["judgements"][2]

    assert compare.judge(judgement, [(0, "35.6")])[0] == "deviates"
    assert compare.judge(judgement, [(0, "34.2")])[0] == "not reproducible"
    assert compare.judge(judgement, [(0, "36.5")])[0] == "reproduced"
    assert compare.judge(judgement, [(0, "")])[0] == "not run"


def test_runs_of_names_each_command_and_seed_once() -> None:
    runs = compare.runs_of(check_of("").model_dump(mode="json"))

    assert [(run["command"], run["claims"]) for run in runs] == [
        ("python experiment.py 0", [0, 1, 2]),
        ("python experiment.py 1", [1]),
        ("python experiment.py 2", [1]),
    ]
    assert runs[0]["files"] == ["out/metrics.json", "table.csv"]


def test_program_imports_the_standard_library_alone() -> None:
    tree = ast.parse(Path(compare.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}

    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_installed_compares_versions(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / "requirements.txt"
    versions = {name: compare.metadata.version(name) for name in ("pytest", "anyio")}
    lines = [f"{name}=={version} \\\n    --hash=sha256:00\n" for name, version in versions.items()]
    for extra, code in (("", 0), ("# a comment\n", 0), ("anyio==0.0.1\n", 1), ("anyio>=1\n", 1), ("no-such==1\n", 1)):
        lock.write_text("".join(lines) + extra)
        assert compare.main(["installed", str(lock)]) == code
    assert capsys.readouterr().out == ""


def test_all_lists_of_packages_must_be_installed(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("pytest==" + compare.metadata.version("pytest"))
    for text, code in (("# Python 3.11.2\n", 0), ("anyio==0.0.1\n", 1)):
        (tmp_path / "packages.txt").write_text(text)
        assert (
            compare.main(["installed", *(str(tmp_path / f"{name}.txt") for name in ("requirements", "packages"))])
            == code
        )


def test_other_packages_are_named_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    version = compare.metadata.version("anyio")
    same, listing = f"# Python 3.{sys.version_info[1]}.99\nanyio=={version}\n", tmp_path / "packages.txt"
    listing.write_text(same)
    assert compare.main(["packages", str(listing)]) == 0
    assert capsys.readouterr().out == ""

    listing.write_text(f"{same}missing-a==1\npytest==0.1\n")
    assert compare.main(["packages", str(listing)]) == 0
    pytest_here = f"pytest {compare.metadata.version('pytest')} instead of 0.1"
    told = f"packages that differ from those of the check: {pytest_here}, missing-a is missing\n\n"
    assert capsys.readouterr().out == told

    listing.write_text("# Python 3.6.1\n" + "".join(f"missing-{number}==1\n" for number in range(9)))
    compare.main(["packages", str(listing)])
    out = capsys.readouterr().out
    assert f"check: Python 3.{sys.version_info[1]} instead of 3.6, missing-0 is missing," in out
    assert out.endswith("and 5 more\n\n")


def test_data_tells_missing_and_changed_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("abc")
    listing = tmp_path / "data.sha256"
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, example B.1
    listing.write_text(f"{digest}  a.csv\n")
    assert compare.main(["data", str(listing), str(tmp_path)]) == 0
    (tmp_path / "a.csv").write_text("abd")
    assert compare.main(["data", str(listing), str(tmp_path)]) == 0
    assert "a.csv is not the file of the check" in capsys.readouterr().out
    (tmp_path / "a.csv").unlink()
    assert compare.main(["data", str(listing), str(tmp_path)]) == 2


def test_results_of_links_and_pipes_are_no_numbers(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({"test": {"accuracy": 0.8}}))
    place = tmp_path / "results/001"
    (place / "files/out").mkdir(parents=True)
    (place / "exit").write_text("0\n")
    (place / "output.txt").write_text("mean: 2.5\n")
    (place / "files/out/metrics.json").symlink_to(secret)

    found = compare.results(check_of("").model_dump(mode="json"), tmp_path / "results")

    assert found[0]["runs"] == [{"seed": 0, "number": "2.5", "problem": ""}]
    assert "is not in the folder" in found[1]["runs"][0]["problem"]
    assert "missing after the run" in found[2]["runs"][0]["problem"]


@given(st.text(max_size=150), st.text(max_size=150))
def test_no_line_of_a_table_has_more_than_100_columns(name: str, reason: str) -> None:
    judgement = check_of("").model_dump(mode="json")["judgements"][1]
    one = {**compare.outcome(judgement, [], ""), "id": name, "value": name, "reason": reason}

    assert max(map(cell_width, compare.table([one]).splitlines())) <= 100


def test_numbers_of_several_runs_are_a_range() -> None:
    judgement = check_of("").model_dump(mode="json")["judgements"][1]
    numbers = ("0.8681318681318682", "0.9754385964912", "0.9")
    runs = [{"seed": seed, "number": number, "problem": ""} for seed, number in enumerate(numbers)]
    found = compare.outcome(judgement, runs, "")

    assert found["here"] == "86.813 to 97.544, 3 runs"
    assert [run["number"] for run in found["runs"]] == list(numbers)
    assert compare.outcome(judgement, runs[:1], "")["here"] == "86.813"


def test_sentences_have_the_digits_that_tell_numbers_apart() -> None:
    judgement = check_of("").model_dump(mode="json")["judgements"][0]
    exact = {**judgement, "claim": {**judgement["claim"], "tolerance": {"exact": True}}}

    assert compare.judge(judgement, [(0, "2.5000000000000004")]) == ("reproduced", "2.5 here")
    assert compare.judge(exact, [(0, "2.5000000000000004")])[1].startswith("2.5000000000000004 here")


def test_agreement_names_the_claims_with_other_verdicts() -> None:
    same, other = {"id": "a", "is_same": True}, {"id": "b", "is_same": False}

    assert compare.agreement([same]) == "all verdicts are those of the check"
    assert compare.agreement([same, other]) == "not as in the check: b"


def test_table_does_nothing_on_a_terminal() -> None:
    outcome = {
        "id": "a\x1b[2J",
        "value": "1",
        "verdict": "not run",
        "reason": "b\x07",
        "checked": "not run",
        "here": "-",
        "runs": [],
    }

    assert "\x1b" not in compare.table([outcome])
    assert "\x07" not in compare.table([outcome])
