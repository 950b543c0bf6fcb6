"""Markdown with its code taken out: what stands in a code span or a fenced block is shown, not meant."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<rest>.*)")
_RUN = re.compile(r"`+")


def without_code(markdown: str) -> str:
    """Return `markdown` without fenced blocks and code spans (CommonMark 0.31, sections 4.5 and 6.1)."""
    return _without_spans("\n".join(_lines_outside_fences(markdown)))


def _lines_outside_fences(markdown: str) -> Iterator[str]:
    fence = ""
    for line in markdown.splitlines():
        match = _FENCE.match(line)
        if fence:
            is_end = match and match["mark"][0] == fence[0] and len(match["mark"]) >= len(fence)
            if is_end and match and not match["rest"].strip():
                fence = ""
            yield ""
        elif match and not (match["mark"][0] == "`" and "`" in match["rest"]):
            fence = match["mark"]
            yield ""
        else:
            yield line


def _without_spans(text: str) -> str:
    """Remove each run of backticks together with what lies between it and the next run of the same length."""
    runs = [(match.start(), match.end()) for match in _RUN.finditer(text)]
    starts_by_length: dict[int, list[int]] = defaultdict(list)
    for start, end in runs:
        starts_by_length[end - start].append(start)
    kept: list[str] = []
    position = 0
    for start, end in runs:
        if start < position:
            continue
        starts = starts_by_length[end - start]
        following = bisect_right(starts, start)
        if following == len(starts):
            continue  # opens nothing
        kept.append(text[position:start])
        position = starts[following] + (end - start)
    kept.append(text[position:])
    return " ".join(kept)
