"""Finds the numbers of claims after runs, and compares them with the paper's. Each kit has a copy.

It needs Python 3.9 or later and nothing else, and is called by reproduce.sh:

    python3 compare.py installed REQUIREMENTS...        exit 0 if all of them are installed here, in these versions
    python3 compare.py packages PACKAGES                prints a line if packages here are not those of the list
    python3 compare.py data DATA.sha256 FOLDER...       exit 2 if a file is missing; each is told that differs
    python3 compare.py table CHECK RESULTS [OUT]        prints the table and how it agrees; exit 1 if a claim deviates
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
import sys
import unicodedata
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal, localcontext
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MAX_FILE_BYTES = 20_000_000
"""Most that is read of one file of a run."""
_SEED = "{seed}"
_EXACT = Context(prec=700, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN)
_MAX_CHARS = 200
_MAX_EXPONENT = 300
_MOST_SHOWN = 5
_FEW_SEEDS = 3
"""Fewest seeds that show a deviation where the paper names no seed, and fewest runs for Student's distribution."""


class NoNumberError(Exception):
    """There is no number; the text says why."""


# Runs


def runs_of(check: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the runs of a check that are made again.

    Each command and seed runs once; as often as in the check where that gave several numbers. Each run has `command`,
    `seed`, `timeout_s`, `files` that its claims need, and the numbers `claims` of judgements.
    """
    found: dict[tuple[str, Any], dict[str, Any]] = {}
    for place, judgement in enumerate(check["judgements"]):
        claim = judgement["claim"]
        for run in judgement["runs"]:
            if run.get("receipt") is None:
                continue
            key = (command_of(claim, run.get("seed")), run.get("seed"))
            new = {"command": key[0], "seed": key[1], "timeout_s": 0.0, "files": [], "claims": [], "times": 1}
            one = found.setdefault(key, new)
            one["timeout_s"] = max(one["timeout_s"], claim["timeout_s"])
            one["claims"] += [place] if place not in one["claims"] else []
            one["files"] += [name for name in _files_of(claim.get("extract")) if name not in one["files"]]
            numbers = [number for seed, number in _runs_before(judgement) if seed == key[1]]
            one["times"] = max(one["times"], len(numbers) if len(set(map(read_number, numbers))) > 1 else 1)
    return [run for run in found.values() for _ in range(run.pop("times"))]


def run_name(number: int) -> str:
    """Return the folder of a run below the results; runs are counted from 1."""
    return f"{number:03d}"


def command_of(claim: Mapping[str, Any], seed: int | None) -> str:
    """Return the line of a claim's command with the seed in its place."""
    command = str(claim["command"])
    return command if seed is None else command.replace(_SEED, str(seed))


def _files_of(extract: Mapping[str, Any] | None) -> list[str]:
    return [str(extract[key]) for key in ("json", "csv", "file") if extract and extract.get(key)]


# Numbers

_ALIKE = {
    **dict.fromkeys(map(ord, "\u2212\u2010\u2011\u2012\u2013\u2014\ufe63\uff0d"), "-"),
    **dict.fromkeys(map(ord, "\u00a0\u2007\u2009\u202f"), "\u2009"),
    ord("\u2019"): "'",
    ord("\uff05"): "%",
}
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻", "0123456789+-")
_NUMBER = re.compile(
    r"""
    (?P<sign> [+-] )?
    (?:
        (?P<grouped> [1-9][0-9]{0,2} (?P<mark> [,'_\u2009] ) [0-9]{3} (?: (?P=mark) [0-9]{3} )* )
        (?: \. (?P<rest> [0-9]* ) )?
      | (?P<dotted> [1-9][0-9]{0,2} (?: \. [0-9]{3} )+ ) , (?P<tail> [0-9]* )
      | (?P<plain> [0-9]+ (?: [.,] [0-9]* )? | [.,] [0-9]+ )
    )
    (?:
        [eE] (?P<exponent> [+-]? [0-9]{1,4} )
      | \s* [x\u00d7\u00b7*] \s* 10
        (?: (?: \^ | \*\* ) \{? (?P<power> [+-]? [0-9]{1,4} ) \}? | (?P<signed> [+-] [0-9]{1,4} ) )
    )?
    \s* %?
    (?: \s* (?: ± | \+/- | \+- ) .* | \s* \( .* \) )?
    """,
    re.VERBOSE,
)
_SEQUENCE = re.compile(
    r"""
    (?:\x1b\[|\x9b) [\x30-\x3f]* [\x20-\x2f]* [\x40-\x7e]
  | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]) [^\x07\x1b\x80-\x9f\n]* (?:\x07|\x1b\\|\x9c)
  | \x1b [\x20-\x2f]+ [\x30-\x7e]
  | \x1b [\x30-\x5a\x5c-\x7e]
    """,
    re.VERBOSE,
)
"""Sequences that colour a terminal and the like."""
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def read_number(text: str) -> Decimal | None:
    """Return the number that a text is, with its digits: 1,234.5, 83.1 %, 1e-3, 83.1 ± 0.3; None if it is none."""
    if len(text) > _MAX_CHARS:
        return None
    plain = text.strip().translate(_ALIKE)
    plain = re.sub(r"(?<=10)[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]+", lambda raised: "^" + raised[0].translate(_RAISED), plain)
    found = _NUMBER.fullmatch(plain)
    if found is None:
        return None
    if found["grouped"]:
        digits = re.sub("[^0-9]", "", found["grouped"]) + f".{found['rest'] or ''}"
    elif found["dotted"]:
        digits = f"{found['dotted'].replace('.', '')}.{found['tail']}"
    else:
        digits = found["plain"].replace(",", ".")
    exponent = found["exponent"] or found["power"] or found["signed"] or "0"
    value = Decimal(f"{found['sign'] or ''}{digits}e{exponent}")
    is_bounded = value.adjusted() <= _MAX_EXPONENT and _exponent(value) >= -_MAX_EXPONENT
    return value if is_bounded else None


def shown_number(value: Decimal, claimed: Decimal, more: int = 2) -> str:
    """Return a measured number for readers, with up to `more` digits behind those of the claimed one."""
    step = _exponent(claimed)
    if (value and not -8 <= value.adjusted() <= 8) or step > 0:
        return f"{value:.{max(4 + more, 6)}g}"
    places = max(-step + more, 0)
    text = f"{value:.{places}f}"
    least = len(text) - places + max(-step, 0) if places else len(text)
    while len(text) > least and text.endswith("0"):
        text = text[:-1]
    return text[:-1] if text.endswith(".") else text


def _apart(values: Sequence[Decimal], claimed: Decimal) -> str:
    """Return measured numbers for readers, with as many digits as tell them from the claimed one."""
    plain, others = shown_number(claimed, claimed), [value for value in values if value != claimed]
    more = 2
    while more < 100 and any(shown_number(value, claimed, more) == plain for value in others):
        more += 1
    return _some([shown_number(value, claimed, more) for value in values])


def _some(texts: Sequence[str]) -> str:
    shown = list(dict.fromkeys(texts))
    return ", ".join(shown[:_MOST_SHOWN]) + (", …" if len(shown) > _MOST_SHOWN else "")


def _exponent(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return exponent if isinstance(exponent, int) else 0


def find_number(extract: Mapping[str, Any] | None, folder: Path, output: Path) -> str:
    """Return the number that an extract names, as it is written there.

    Args:
        extract: The claim's table `extract`.
        folder: Folder of the files that the run wrote.
        output: File with what the run printed.

    Raises:
        NoNumberError: It is not there.
    """
    extract = extract or {}
    if extract.get("json") is not None:
        name = str(extract["json"])
        found = _in_json(_strict(_data_of(folder, name), name), name, str(extract.get("at") or ""))
    elif extract.get("csv") is not None:
        name = str(extract["csv"])
        where = extract.get("where") or {}
        found = _in_csv(_strict(_data_of(folder, name), name), name, where, str(extract.get("column") or ""))
    elif extract.get("file") is not None:
        name = str(extract["file"])
        found = _last_match(str(extract.get("match") or ""), _data_of(folder, name), name)
    else:
        found = _last_match(str(extract.get("output") or ""), _data_of(output.parent, output.name), "the output")
    if read_number(found) is None:
        raise NoNumberError(f"{found[:80]!r} is no number")
    return found.strip()


def _strict(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NoNumberError(f"{name} is not UTF-8") from error


def _last_match(pattern: str, data: bytes, place: str) -> str:
    """Return the group of the last match in which it takes part."""
    text = _CONTROL.sub("", _SEQUENCE.sub("", data.decode("utf-8", "replace")))
    text = re.sub(r"\r\n?", "\n", text)
    try:
        matches = [match[1] for match in re.finditer(pattern, text, re.MULTILINE) if match[1] is not None]
    except (re.error, IndexError) as error:
        raise NoNumberError(f"the pattern is wrong: {error}") from error
    if not matches:
        raise NoNumberError(f"nothing in {place} fits the pattern")
    return matches[-1]


class _Literal(str):
    """A number of a JSON file as it stands there."""

    __slots__ = ()


def _in_json(text: str, name: str, at: str) -> str:
    try:
        here = json.loads(text, parse_float=_Literal, parse_int=_Literal, parse_constant=_Literal)
    except (ValueError, RecursionError) as error:
        raise NoNumberError(f"{name} is not valid JSON: {error}") from error
    parts = at.split(".") if at else []
    while parts:
        length, here = _step(here, parts)
        if not length:
            raise NoNumberError(f"{name} has no {at}")
        parts = parts[length:]
    if not isinstance(here, str):
        raise NoNumberError(f"{at or name} is no number")
    return here


def _step(value: Any, parts: Sequence[str]) -> tuple[int, Any]:
    """Return how many of the parts name something in a value, and that; a key may have dots, the longest one counts."""
    if isinstance(value, list) and re.fullmatch("-?[0-9]{1,9}", parts[0], re.ASCII):
        index = int(parts[0])
        return (1, value[index]) if -len(value) <= index < len(value) else (0, None)
    if isinstance(value, dict):
        for length in range(len(parts), 0, -1):
            key = ".".join(parts[:length])
            if key in value:
                return length, value[key]
    return 0, None


def _in_csv(text: str, name: str, where: Mapping[str, str], column: str) -> str:
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    try:
        lines = [row for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if row]
    except csv.Error as error:
        raise NoNumberError(f"{name} is not valid CSV: {error}") from error
    columns = [one.strip() for one in lines[0]] if lines else []
    for one in (column, *where):
        if columns.count(one) != 1:
            raise NoNumberError(f"{name} has {'several columns' if one in columns else 'no column'} {one}")
    rows = [dict(zip(columns, line)) for line in lines[1:]]  # noqa: B905 - Python 3.9 has no strict
    chosen = [row for row in rows if all(_is_same(row.get(key, ""), value) for key, value in where.items())]
    if len(chosen) != 1:
        raise NoNumberError(f"{name} has {len(chosen) or 'no'} such rows; the claim needs one")
    return chosen[0].get(column, "")


def _is_same(found: str, wanted: str) -> bool:
    """True for the same text, and for the same number such as 0.10 and 0.1."""
    one, other = read_number(found), read_number(wanted)
    return found.strip() == wanted.strip() or (one is not None and one == other)


def _data_of(folder: Path, name: str) -> bytes:
    """Return a file below a folder; links out of it, pipes and large files count as missing."""
    try:
        top, path = folder.resolve(), (folder / name).resolve()
        if not path.is_relative_to(top):
            raise NoNumberError(f"{name} is not in the folder of the run")
        if not path.is_file():
            raise NoNumberError(f"{name} is missing after the run")
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise NoNumberError(f"{name} cannot be read after the run: {error}") from error
    if len(data) > MAX_FILE_BYTES:
        raise NoNumberError(f"{name} is larger than {MAX_FILE_BYTES // 1_000_000} MB")
    return data


# Judging


def judge(
    judgement: Mapping[str, Any], runs: Sequence[tuple[int | None, str]], data_problem: str = ""
) -> tuple[str, str]:
    """Return the verdict of a claim and a sentence, from new runs beside those of the check.

    The rules are those of the check. That ran each command before, so that its numbers show what is deterministic.

    Args:
        judgement: The check's judgement of it.
        runs: Seed and number of each new run; the number is empty if there is none.
        data_problem: Sentence about data that was not the paper's in the check; empty if there is none.
    """
    claim = judgement["claim"]
    if not runs:
        return str(judgement["verdict"]), str(judgement["reason"])
    claimed, values = read_number(str(claim["value"])), _scaled(claim, runs)
    if claimed is None or not values:
        return "not run", "there is no number to compare"
    reference = _reference(claim, values)
    here = values.get(reference, [])
    near = [value for value in here if abs(_EXACT.subtract(value, claimed)) <= _tolerance(claim, claimed)]
    if here and len(near) == len(here):
        return "reproduced", f"{_some([shown_number(value, claimed) for value in here])} here"
    if _is_within_spread(claim, claimed, values, has_near=bool(near)):
        return "within spread", "the claimed value lies in the spread of the runs or of the paper"
    shown = _apart(here, claimed)
    if data_problem:
        return "not reproducible", f"{shown} here, with other data: {data_problem}"
    before = _scaled(claim, _runs_before(judgement))
    if any(len({*numbers, *before.get(seed, [])}) > 1 for seed, numbers in values.items()):
        return "not reproducible", f"{shown} here, and the same command and seed give other numbers each time"
    if not here:
        return "not run", f"the run with the paper's seed {claim['seed']} gave no number"
    if _SEED in claim["command"] and claim.get("seed") is None and len(values) < _FEW_SEEDS:
        return "not run", f"{shown} here; {len(values)} seeds decide nothing as the paper names none"
    return "deviates", f"{shown} here, as in the check"


def _runs_before(judgement: Mapping[str, Any]) -> list[tuple[int | None, str]]:
    return [(run.get("seed"), "" if run["problem"] else str(run["number"])) for run in judgement["runs"]]


def _scaled(claim: Mapping[str, Any], runs: Sequence[tuple[int | None, str]]) -> dict[int | None, list[Decimal]]:
    """Return the numbers of each seed in the unit of the claim; all under None if the command takes no seed."""
    scale = Decimal(repr((claim.get("extract") or {}).get("scale", 1.0)))
    found: dict[int | None, list[Decimal]] = {}
    for seed, text in runs:
        value = read_number(text)
        if value is not None:
            key = seed if _SEED in claim["command"] else None
            found.setdefault(key, []).append(value if scale == 1 else _EXACT.multiply(value, scale))
    return {seed: sorted(found[seed]) for seed in sorted(found, key=lambda seed: (seed is not None, seed or 0))}


def _reference(claim: Mapping[str, Any], values: Mapping[int | None, Sequence[Decimal]]) -> int | None:
    """Return the seed that counts first: the paper's, else the first that is given, else 0, else one that ran."""
    if _SEED not in claim["command"]:
        return None
    if claim.get("seed") is not None:
        return int(claim["seed"])
    first = int(claim["seeds"][0]) if claim.get("seeds") else 0
    return first if first in values else next(iter(values))


def _tolerance(claim: Mapping[str, Any], claimed: Decimal) -> Decimal:
    given = claim.get("tolerance") or {}
    if given.get("exact"):
        return Decimal(0)
    if given.get("absolute") is not None:
        return Decimal(repr(given["absolute"]))
    if given.get("relative") is not None:
        return _EXACT.multiply(Decimal(repr(given["relative"])), abs(claimed))
    return _half_of(claimed)


def _half_of(claimed: Decimal) -> Decimal:
    """Return half a unit of the last written digit."""
    return Decimal((0, (5,), _exponent(claimed) - 1))


def _is_within_spread(
    claim: Mapping[str, Any], claimed: Decimal, by_seed: Mapping[Any, Sequence[Decimal]], *, has_near: bool
) -> bool:
    """True if some runs of a command that is not deterministic match, or the spread of runs or of the paper holds it.

    A seed that gives the same number each time counts as one run.
    """
    if (claim.get("tolerance") or {}).get("exact"):
        return False
    values = [one for found in by_seed.values() for one in (found[:1] if found[0] == found[-1] else found)]
    half, count, spread = _half_of(claimed), len(values), claim.get("spread")
    with localcontext(_EXACT) as context:
        context.prec = 60
        mean = sum(sorted(values), Decimal()) / count
        low, high = min(values), max(values)
        if count >= _FEW_SEEDS:
            variance = sum(sorted((value - mean) ** 2 for value in values), Decimal()) / (count - 1)
            width = Decimal(t_quantile(count - 1)) * (variance * (1 + Decimal(1) / count)).sqrt()
            low, high = mean - width, mean + width
        if has_near or (count > 1 and low - half <= claimed <= high + half):
            return True
        return spread is not None and abs(mean - claimed) <= Decimal(repr(spread)) + half


def t_quantile(freedom: int) -> float:
    """Return the t for which 95 % of Student's distribution lie between -t and t."""
    low, high = 0.0, math.pi / 2
    for _ in range(200):
        angle = (low + high) / 2
        if angle in (low, high):
            break
        low, high = (angle, high) if _share_within(angle, freedom) < 0.95 else (low, angle)
    return math.sqrt(freedom) * math.sin(low) / math.cos(low)


def _share_within(angle: float, freedom: int) -> float:
    """Return the share within ±√freedom·tan(angle): Abramowitz and Stegun, 26.7.3 and 26.7.4."""
    square, is_odd = math.cos(angle) ** 2, freedom % 2
    term = math.cos(angle) if is_odd else 1.0
    total = 0.0 if freedom == 1 else term
    for number in range(2 + is_odd, freedom - 1, 2):
        term *= square * (number - 1) / number
        total += term
    return 2 / math.pi * (angle + math.sin(angle) * total) if is_odd else math.sin(angle) * total


# The table

_COLUMNS = 100
"""Most columns of a line."""
_WIDEST = (_COLUMNS, 14, 28, 16, 16)
"""Most columns of each cell; the names of claims get what is left."""
_HOLDS = {"reproduced", "within spread"}
"""Verdicts that change places where a command is not deterministic."""


def results(check: Mapping[str, Any], folder: Path) -> list[dict[str, Any]]:
    """Return the outcome of each claim of a check, from the results that reproduce.sh has gathered in a folder."""
    problem = "; ".join(str(one["problem"]) for one in check.get("data") or () if one.get("problem"))
    found: dict[int, list[dict[str, Any]]] = {}
    for number, run in enumerate(runs_of(check), 1):
        place = folder / run_name(number)
        for index in run["claims"]:
            extract = check["judgements"][index]["claim"].get("extract")
            found.setdefault(index, []).append({"seed": run["seed"], **_number_after(place, extract)})
    every = enumerate(check["judgements"])
    return [outcome(judgement, found.get(index, []), problem) for index, judgement in every]


def _number_after(place: Path, extract: Mapping[str, Any] | None) -> dict[str, str]:
    try:
        ended = _data_of(place, "exit").decode("utf-8", "replace").strip()
        if ended != "0":
            return {"number": "", "problem": f"the command failed with exit code {ended}"}
        number = find_number(extract, place / "files", place / "output.txt")
    except NoNumberError as error:
        return {"number": "", "problem": str(error)}
    return {"number": number, "problem": ""}


def outcome(judgement: Mapping[str, Any], runs: list[dict[str, Any]], data_problem: str) -> dict[str, Any]:
    """Return the outcome of a claim from new runs, each with `seed`, `number` and `problem`."""
    verdict, reason = judge(judgement, [(run["seed"], run["number"]) for run in runs], data_problem)
    if verdict == "not run" and runs and not any(run["number"] for run in runs):
        reason = runs[0]["problem"]
    return {
        "id": judgement["claim"]["id"],
        "value": judgement["claim"]["value"],
        "verdict": verdict,
        "reason": reason,
        "checked": judgement["verdict"],
        "is_same": verdict == judgement["verdict"] or {verdict, judgement["verdict"]} <= _HOLDS,
        "here": _range(judgement["claim"], [(run["seed"], run["number"]) for run in runs]),
        "runs": runs,
    }


def _range(claim: Mapping[str, Any], runs: Sequence[tuple[int | None, str]]) -> str:
    """Return the number of runs for readers, or the range and count of several, in the unit of the claim."""
    claimed = read_number(str(claim["value"]))
    values = [value for those in _scaled(claim, runs).values() for value in those]
    if claimed is None or not values:
        return "-"
    low, high = (shown_number(end, claimed) for end in (min(values), max(values)))
    if min(values) == max(values):
        return low
    return f"{low if low == high else f'{low} to {high}'}, {len(values)} runs"


def table(outcomes: Sequence[Mapping[str, Any]]) -> str:
    """Return the table for people: the claim, the paper's value, the numbers here, both verdicts, and the reasons."""
    rows = [("claim", "paper", "here", "verdict", "in the check")]
    rows += [(one["id"], one["value"], one["here"], one["verdict"], one["checked"]) for one in outcomes]
    shown = [[_shown(str(cell)) for cell in row] for row in rows]
    widths = [min(max(_cells(row[column]) for row in shown), most) for column, most in enumerate(_WIDEST)]
    widths[0] = min(widths[0], _COLUMNS - sum(widths[1:]) - 2 * (len(widths) - 1))
    lines = ["  ".join(map(_cell, row, widths)).rstrip() for row in shown]
    reasons = [f"{_shown(str(one['id']))}: {_shown(str(one['reason']))}" for one in outcomes if one["reason"]]
    return "\n".join([*lines, "", *(line for reason in reasons for line in wrapped(reason))]) + "\n"


def agreement(outcomes: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence that says if the verdicts are those of the check."""
    others = [_shown(str(one["id"])) for one in outcomes if not one["is_same"]]
    return f"not as in the check: {', '.join(others)}" if others else "all verdicts are those of the check"


def wrapped(text: str) -> list[str]:
    """Return the lines of a sentence, of at most 100 columns."""
    lines = [""]
    for word in text.split():
        if lines[-1].strip() and _cells(lines[-1]) + 1 + _cells(word) > _COLUMNS:
            lines.append("  ")
        lines[-1] += " " if lines[-1].strip() else ""
        for char in word:
            if _cells(lines[-1] + char) > _COLUMNS:
                lines.append("  ")
            lines[-1] += char
    return lines


def _cell(text: str, width: int) -> str:
    """Return a text of exactly this width, cut in its middle if it is longer."""
    begin = end = len(text) // 2
    while _cells(text) > width and _cells(text[:begin]) + _cells(text[end:]) > width - 1:
        begin, end = (begin - 1, end) if begin > len(text) - end else (begin, end + 1)
    text = text if begin == end else f"{text[:begin]}…{text[end:]}"
    return text + " " * (width - _cells(text))


def _cells(text: str) -> int:
    """Return the columns that a text takes on a terminal."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(bool(unicodedata.combining(char)) for char in text)


def _shown(text: str) -> str:
    """Return a text that does nothing on a terminal."""
    return "".join(char if char.isprintable() else "?" for char in text)


# Data and packages


def data_problems(listing: str, folders: Sequence[Path]) -> Iterator[tuple[bool, str]]:
    """Yield for each file of a listing of sha256sum that is not as listed: True if it is missing, and a sentence."""
    for line in listing.splitlines():
        digest, _, name = line.partition("  ")
        path = next((top / name for top in folders if (top / name).is_file()), None)
        if not name:
            continue
        if path is None:
            yield True, f"{name} is missing"
        elif _digest(path) != digest.strip():
            yield False, f"{name} is not the file of the check: its SHA-256 differs"


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            found.update(chunk)
    return found.hexdigest()


def missing_packages(requirements: str) -> list[str]:
    """Return the lines of a lock that are not installed here in the version that is named."""
    missing, here = [], installed_packages()
    for line in requirements.replace("\\\n", " ").splitlines():
        wanted, _, marker = line.partition("#")[0].partition(";")
        found = re.fullmatch(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(\S+)(?:\s+--hash=\S+)*", wanted.strip())
        if not wanted.strip():
            continue
        if found is None or marker.strip() or here.get(_normalised(found.group(1))) != found.group(2):
            missing.append(wanted.strip())
    return missing


def other_packages(listing: str, here: Mapping[str, str], python: str) -> str:
    """Return a sentence about packages that are not those of a list; empty if they are.

    Args:
        listing: `locks/packages.txt`.
        here: Versions of the packages here, by name.
        python: Version of Python here, such as "3.11".
    """
    listed = [line.partition("==") for line in listing.splitlines() if line[:1] != "#"]
    before = re.match(r"# Python ([0-9]+\.[0-9]+)", listing)
    others = [f"Python {python} instead of {before[1]}"] if before and before[1] != python else []
    others += [
        f"{name} {here[name]} instead of {version}" for name, _, version in listed if here.get(name, version) != version
    ]
    others += [f"{name} is missing" for name, _, _ in listed if name not in here]
    more = f", and {len(others) - _MOST_SHOWN} more" if len(others) > _MOST_SHOWN else ""
    return f"packages that differ from those of the check: {', '.join(others[:_MOST_SHOWN])}{more}" if others else ""


def installed_packages() -> dict[str, str]:
    """Return the versions of the packages that Python finds here, by name."""
    found: dict[str, str] = {}
    for one in metadata.distributions():
        name = one.metadata["Name"]
        if name:
            found.setdefault(_normalised(name), one.version)
    return found


def _normalised(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def main(words: Sequence[str]) -> int:
    """Do what the words say; see the top of this file."""
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    name, paths = words[0], [Path(word) for word in words[1:]]
    text = paths[0].read_text(encoding="utf-8")
    if name == "installed":
        return int(any(missing_packages(path.read_text(encoding="utf-8")) for path in paths))
    if name == "packages":
        told = other_packages(text, installed_packages(), f"{sys.version_info[0]}.{sys.version_info[1]}")
        sys.stdout.writelines(f"{line}\n" for line in [*wrapped(_shown(told)), ""] if told)
        return 0
    if name == "data":
        problems = list(data_problems(text, paths[1:]))
        sys.stdout.writelines(f"{_shown(sentence)}\n" for _, sentence in problems)
        return 2 if any(is_missing for is_missing, _ in problems) else 0
    outcomes = results(json.loads(text), paths[1])
    sys.stdout.write(f"{table(outcomes)}\n{agreement(outcomes)}\n")
    for path in paths[2:]:
        path.write_text(json.dumps({"claims": outcomes}, indent=1), encoding="utf-8")
    return int(any(one["verdict"] == "deviates" for one in outcomes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
