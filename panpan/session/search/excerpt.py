"""The place of a message that a search is about, on one line."""

import re
from collections.abc import Mapping
from typing import Any

from panpan.session.search.said import said_in

BEFORE_CHARS = 40
"""What is shown of a message before the first word that was searched."""
MOST_CHARS = 160


def excerpt_of(record: Mapping[str, Any], wanted: str) -> str:
    """Return what a record says around the first of the wanted words, or its beginning; not cleaned for a terminal."""
    text = " ".join(said_in(record).split())
    words = [word for word in re.findall(r"\w+", wanted) if len(word) > 1] or re.findall(r"\w+", wanted)
    places = [match.start() for word in words if (match := re.search(rf"(?i)(?<!\w){re.escape(word)}", text))]
    begin = max(min(places, default=0) - BEFORE_CHARS, 0)
    cut = text[begin : begin + MOST_CHARS]
    return f"{'…' * (begin > 0)}{cut}{'…' * (begin + MOST_CHARS < len(text))}"
