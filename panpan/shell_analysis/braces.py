"""Braces with plain words between commas, such as `src/{a,b}` and `*.{ts,tsx}`: the words that bash makes of them.

Bash does it before all else and as text alone ("Brace Expansion" of its manual). The rule: what holds quotes,
expansions, braces within braces or sequences such as `{1..3}` stays one word of which nothing is known.
"""

import re
from collections.abc import Sequence
from itertools import product
from math import prod

from panpan.shell_analysis.facts import Word
from panpan.shell_analysis.words import word_of

MOST_WORDS = 64
"""That one word may become."""

_GROUP = re.compile(r"\{([^{},]*(?:,[^{},]*)+)\}")
_NOT_PLAIN = re.compile(r"""['"\\$`]""")


def with_braces_expanded(word: Word) -> Sequence[Word]:
    """Return what bash makes of the braces in an argument; the word itself where it has none that are plain."""
    if "{" not in word.source or _NOT_PLAIN.search(word.source):
        return (word,)
    *pieces, rest = _GROUP.split(word.source)
    texts, groups = pieces[::2], [group.split(",") for group in pieces[1::2]]
    if not groups or any("{" in text or "}" in text for text in (*texts, rest)):
        return (word,)
    if prod(map(len, groups)) > MOST_WORDS:
        return (word,)
    made = [
        "".join(part for pair in zip(texts, chosen, strict=True) for part in pair) + rest for chosen in product(*groups)
    ]
    return [word_of(source) for source in made] if all(made) else (word,)
