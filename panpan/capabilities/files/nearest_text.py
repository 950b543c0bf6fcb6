"""Why a text was not found: the nearest place in the file and how it differs, told to the model that asked for it.

It only explains; nothing is ever changed on the strength of a near match. Its work is bounded whatever the sizes.
"""

import re

from panpan.types.dataclass import dataclass

_MAX_LINES = 50_000
"""Lines of the file that are compared; the file may have more."""
_MAX_LINE_CHARS = 400
_MAX_SHOWN_LINES = 12
_MAX_PAIRS = 4
_MIN_SCORE = 60.0
"""Similarity in percent below which a place is no help."""
_LINE_NUMBER = re.compile(r" *\d+\t")


@dataclass(frozen=True, slots=True)
class _Place:
    """Lines of the file that are like the text; `start` counts from 0."""

    start: int
    lines: list[str]


def explain_missing(text: str, wanted: str) -> str:
    """Return advice that follows on "… was not found in FILE"; `text` is the file's, and does not hold `wanted`."""
    if "\r" in wanted and wanted.replace("\r\n", "\n") in text:
        return r'; it is there with "\n" line breaks, so leave out the "\r"'
    bare = _without_line_numbers(wanted)
    if bare is not None and bare in text:
        return "; leave out the line numbers and tabs that Read puts before each line"
    lines = text.split("\n")[:_MAX_LINES]
    wanted_lines = wanted.removesuffix("\n").split("\n")
    if place := _same_but_for_whitespace(lines, wanted_lines):
        return _tell_whitespace(place, wanted_lines)
    if place := _nearest(lines, wanted_lines):
        return _tell_nearest(place)
    return ", and nothing in the file is like it; Read the file again and copy the text exactly"


def _without_line_numbers(wanted: str) -> str | None:
    lines = wanted.split("\n")
    if any(line and not _LINE_NUMBER.match(line) for line in lines):
        return None
    return "\n".join(_LINE_NUMBER.sub("", line, count=1) for line in lines)


def _key(line: str) -> str:
    """Return the line without any whitespace."""
    return "".join(line.split())


def _same_but_for_whitespace(lines: list[str], wanted: list[str]) -> _Place | None:
    """Return the first place that differs in nothing but blanks and tabs; its ends may lie within lines."""
    keys = [_key(line) for line in wanted]
    if not any(keys):
        return None
    last = len(keys) - 1
    file_keys = [_key(line) for line in lines]
    for start in range(len(lines) - last):
        if last == 0:
            is_same = keys[0] in file_keys[start]
        else:
            is_same = (
                file_keys[start].endswith(keys[0])
                and file_keys[start + last].startswith(keys[last])
                and file_keys[start + 1 : start + last] == keys[1:last]
            )
        if is_same:
            return _Place(start, lines[start : start + last + 1])
    return None


def _nearest(lines: list[str], wanted: list[str]) -> _Place | None:
    """Return the place that is most like the wanted lines.

    The longest of them are looked for one by one, and the block around each find is compared as a whole.
    """
    from rapidfuzz import fuzz, process

    cut = [line[:_MAX_LINE_CHARS] for line in lines]
    longest = sorted(range(len(wanted)), key=lambda number: -len(wanted[number].strip()))[:3]
    scorer = fuzz.partial_ratio if len(wanted) == 1 else fuzz.ratio
    best, best_score = None, _MIN_SCORE
    whole = "\n".join(wanted)[: _MAX_LINE_CHARS * 10]
    for number in longest:
        line = wanted[number][:_MAX_LINE_CHARS]
        if not line.strip():
            continue
        for _, _, found in process.extract(line, cut, scorer=scorer, limit=3, score_cutoff=_MIN_SCORE):
            start = max(0, found - number)
            block = lines[start : start + len(wanted)]
            score = scorer(whole, "\n".join(block)[: _MAX_LINE_CHARS * 10])
            if score > best_score:
                best, best_score = _Place(start, block), score
    return best


def _tell_whitespace(place: _Place, wanted: list[str]) -> str:
    """Show the lines that differ, with every blank and tab visible."""
    pairs = [
        (place.start + 1 + at, there, asked)
        for at, (there, asked) in enumerate(zip(place.lines, wanted, strict=True))
        if not _agrees(there, asked, is_first=at == 0, is_last=at == len(wanted) - 1)
    ]
    if not pairs:
        return f"; {_where(place)} has it, but without the line break at its end"
    told = [f"; {_where(place)} differs only in whitespace (· is a space, → a tab):"]
    for number, there, asked in pairs[:_MAX_PAIRS]:
        told += [f"{number:>6}\tfile: {_visible(there)}", f"      \tyours: {_visible(asked)}"]
    if len(pairs) > _MAX_PAIRS:
        told.append(f"      \tand {len(pairs) - _MAX_PAIRS} more lines")
    return "\n".join(told)


def _agrees(there: str, asked: str, *, is_first: bool, is_last: bool) -> bool:
    """Return whether the line of the file is as asked; the text may begin and end within a line."""
    if is_first and is_last:
        return asked in there
    return there.endswith(asked) if is_first else there.startswith(asked) if is_last else there == asked


def _tell_nearest(place: _Place) -> str:
    told = [f"; the nearest text is {_where(place)}, which reads:"]
    shown = place.lines[:_MAX_SHOWN_LINES]
    told += [f"{number:>6}\t{line[:_MAX_LINE_CHARS]}" for number, line in enumerate(shown, place.start + 1)]
    if len(place.lines) > len(shown):
        told.append(f"      \t… {len(place.lines) - len(shown)} more lines")
    told.append("Read that part again and copy it exactly")
    return "\n".join(told)


def _where(place: _Place) -> str:
    first, last = place.start + 1, place.start + len(place.lines)
    return f"line {first}" if first == last else f"lines {first}-{last}"


def _visible(line: str) -> str:
    """Return the line with blanks, tabs and the like made visible."""
    return line[:_MAX_LINE_CHARS].replace("\t", "→").replace(" ", "·").replace("\r", "␍").replace("\u00a0", "⍽")
