"""Finding numbers after a run: in the output, in JSON, CSV and text files, and why there is none."""

import tracemalloc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.repro.checking.extraction import find_numbers
from panpan.repro.checking.result_files import Found, numbers_in_csv, numbers_in_json
from panpan.repro.claims.claim import Extract
from panpan.system.sandbox.command_sandbox import CommandSandbox

OUTPUT = "epoch 1 accuracy: 0.50\n\x1b[32mepoch 2 accuracy: 1,234.5\x1b[0m\rdone\n"
CSV = "method;seed;f1\nmean;0;0,51\nmean;1;0,52\ntrimmed mean;0;0,831\n"


def found(folder: Path, *extracts: Mapping[str, Any], output: str = OUTPUT, **options: Any) -> Sequence[Found]:
    """Numbers that are found in a folder after a run."""
    (folder / "run").mkdir(exist_ok=True)
    (folder / "output.txt").write_text(output)
    given = [Extract.model_validate(extract) for extract in extracts]

    async def find() -> Sequence[Found]:
        return await find_numbers(given, folder / "run", folder / "output.txt", CommandSandbox(), **options)

    return anyio.run(find)


def test_numbers_of_one_run_come_in_the_order_of_the_claims(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "m.json").write_text('{"test.acc": 0.8310, "folds": [{"f1": 0.5}, {"f1": "83.1 %"}]}')
    (run / "table.csv").write_text(CSV)
    (run / "log.txt").write_text("loss = 2e-3\n")
    numbers = found(
        tmp_path,
        {"output": r"accuracy: ([0-9.,]+)$"},
        {"json": "m.json", "at": "test.acc"},
        {"file": "log.txt", "match": "loss = (.*)"},
        {"json": "m.json", "at": "folds.-1.f1"},
        {"csv": "table.csv", "where": {"method": "mean", "seed": "1.0"}, "column": "f1"},
        {"output": r"epoch (\d)"},
    )
    assert [one.number for one in numbers] == ["1,234.5", "0.8310", "2e-3", "83.1 %", "0,52", "2"]
    assert not any(one.problem for one in numbers)


@pytest.mark.parametrize(
    ("extract", "problem"),
    [
        ({"output": "f1: (.*)"}, 'the output has nothing that fits the pattern "f1: (.*)"; it ends with "done"'),
        ({"output": "(epoch)"}, 'the match of "(epoch)" in the output is "epoch", which is no number'),
        ({"json": "gone.json"}, "gone.json is missing after the run; the command did not write it"),
        ({"json": "bad.json"}, "bad.json:2: is not valid JSON: expecting property name"),
        ({"json": "m.json", "at": "test.f1"}, "m.json has no test.f1: test has acc, n, x"),
        ({"json": "m.json", "at": "test.acc.7"}, "m.json has no test.acc.7: test.acc is a list of 1"),
        ({"json": "m.json", "at": "test"}, "m.json: test is a table, which is no number"),
        ({"json": "m.json", "at": "test.n"}, 'm.json: test.n is "NaN", which is no number'),
        ({"json": "m.json", "at": "test.x"}, "m.json: test.x is null, which is no number"),
        ({"csv": "t.csv", "column": "f2"}, 't.csv has no column "f2"; it has method, seed, f1'),
        ({"csv": "t.csv", "column": "f1"}, "t.csv has 3 rows; choose one with where"),
        ({"csv": "t.csv", "column": "f1", "where": {"method": "x"}}, "t.csv has no row with method = x"),
        ({"csv": "t.csv", "column": "method", "where": {"seed": "1"}}, 'method with seed = 1 is "mean", which is no'),
        ({"file": "link.txt", "match": "(.*)"}, "link.txt is not in the folder of the run"),
        ({"file": "sub", "match": "(.*)"}, "sub is no regular file"),
        ({"file": "empty.txt", "match": "(.*)x"}, 'fits the pattern "(.*)x"; it is empty'),
        ({"file": "large.txt", "match": "(.*)"}, "large.txt is too large (20 MB); at most 20 MB are read"),
    ],
)
def test_number_that_is_missing_has_a_sentence(tmp_path: Path, extract: Mapping[str, Any], problem: str) -> None:
    run = tmp_path / "run"
    (run / "sub").mkdir(parents=True)
    (run / "m.json").write_text('{"test": {"acc": [1], "n": NaN, "x": null}}')
    (run / "bad.json").write_text("{\n]")
    (run / "t.csv").write_text(CSV)
    (run / "empty.txt").touch()
    (tmp_path / "secret.txt").write_text("5")
    (run / "link.txt").symlink_to(tmp_path / "secret.txt")
    with (run / "large.txt").open("wb") as file:
        file.truncate(20_000_001)
    (one,) = found(tmp_path, extract)
    assert bool(one.number) != bool(one.problem)
    assert problem in one.problem


def test_pattern_that_takes_too_long_costs_only_its_own_number(tmp_path: Path) -> None:
    text = f"{'a' * 40}!\nx = 3\n"
    endless, good = {"output": "(a+)+$"}, {"output": "x = (.)"}
    numbers = found(tmp_path, good, endless, good, output=text, within_s=0.5)
    assert [one.number for one in numbers] == ["3", "", "3"]
    assert 'the pattern "(a+)+$" takes more than 0.5 s or too much memory; make it simpler' in numbers[1].problem


def test_text_of_a_stranger_cannot_drive_the_terminal(tmp_path: Path) -> None:
    (one,) = found(tmp_path, {"output": "(no)"}, output="\x1b]0;title\x07bad \u202e" + "x" * 500)
    assert "\x1b" not in one.problem
    assert "\u202e" not in one.problem
    assert len(one.problem) < 200


NUMBERS = st.floats(-1e9, 1e9).map(repr) | st.integers(-(10**9), 10**9).map(str)


@given(NUMBERS, st.lists(st.sampled_from(["a", "b.c", "0", "é"]), max_size=4))
def test_json_number_is_found_as_it_is_written(number: str, keys: Sequence[str]) -> None:
    (one,) = numbers_in_json(text_with(keys, number), "m.json", [".".join(keys)])
    assert one.number == number


def text_with(keys: Sequence[str], number: str) -> bytes:
    """Nested tables with a number in the innermost."""
    return ("".join(f'{{"{key}": ' for key in keys) + number + "}" * len(keys)).encode()


@given(st.lists(NUMBERS, min_size=1, max_size=5), st.sampled_from(",;\t"))
def test_csv_number_is_found_in_its_row(numbers: Sequence[str], delimiter: str) -> None:
    rows = [f"row {at}{delimiter}{number}" for at, number in enumerate(numbers)]
    data = "\r\n".join([f"name{delimiter}value", *rows]).encode()
    extracts = [
        Extract.model_validate({"csv": "t.csv", "where": {"name": f"row {at}"}, "column": "value"})
        for at in range(len(numbers))
    ]
    assert [one.number for one in numbers_in_csv(data, "t.csv", extracts)] == numbers


@given(st.binary(max_size=60), st.text(max_size=5))
def test_any_file_ends_in_a_number_or_a_problem(data: bytes, at: str) -> None:
    extract = Extract.model_validate({"csv": "t.csv", "column": "a"})
    for one in (*numbers_in_json(data, "m.json", [at]), *numbers_in_csv(data, "t.csv", [extract])):
        assert bool(one.number) != bool(one.problem)


def test_csv_file_of_many_short_rows_takes_little_memory() -> None:
    extract = Extract.model_validate({"csv": "m.csv", "column": "b", "where": {"a": "2.0"}})
    data = b"a,b\n" + b"1,1\n" * 50_000 + b"2,5\n"
    tracemalloc.start()
    try:
        (found,) = numbers_in_csv(data, "m.csv", [extract])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert found.number == "5"
    assert peak < 10 * len(data)


@pytest.mark.parametrize("cell", ["0.1", "0.10", "1e-1", "10.0e-2", ".1", "0,1"])
def test_row_is_chosen_by_the_same_number_in_other_digits(cell: str) -> None:
    extract = Extract.model_validate({"csv": "m.csv", "column": "b", "where": {"a": "0.1"}})
    (found,) = numbers_in_csv(f"a;b\n0.11;7\nnan;8\n{cell};5\n".encode(), "m.csv", [extract])

    assert found.number == "5"
