"""The skills of a session: how they are found, listed for the model within bounds, and looked up by words.

The rule: the list never takes more than its share of the context window. Each skill in it has at least its first words;
one that has no room is found by words of its task.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import cached_property
from hashlib import blake2b

from panpan.capabilities.skills.skill_file import Skill, SkillError, read_skill
from panpan.config.places import Places
from panpan.session.context_usage import text_tokens
from panpan.types.pattern import compile_late

_SHARE = 0.02
"""Share of the context window that the list may take."""
_MOST_TOKENS = 4_000
"""Most tokens of the list, however large the window is."""
_PREAMBLE_TOKENS = 60
"""Tokens of the words around the list."""
_UNKNOWN_WINDOW = 100_000
"""Tokens of a window that is not known."""
FIRST_CHARS = 80
"""Characters that each listed skill has at least."""
_MOST_FOUND = 8
_WORDS = compile_late(r"\w+")


class SkillSet:
    """The skills of a session, by their names.

    Args:
        places: Where they are.
        own: Skills of panpan's own.
        only: Names of the skills that the model may load; None for all that are meant for it.
    """

    def __init__(self, places: Places, own: Sequence[Skill] = (), only: Collection[str] | None = None) -> None:
        self._places = places
        self._own = own
        self._only = only
        self.refused: list[str] = []
        """Files that hold no skill that can be used, each with the reason; whole once `all` was asked for."""
        self.asides: list[str] = []
        """Parts of the others that have no effect."""

    @property
    def are_for_model(self) -> bool:
        """True if the model may load one; reads no more than it takes to know."""
        return any(skill.is_for_model for skill in self._read([], []))

    @cached_property
    def all(self) -> Mapping[str, Skill]:
        """All skills by their names, sorted; of one name, the strongest."""
        found = {skill.name: skill for skill in self._own}
        for skill in self._read(self.refused, self.asides):
            if (weaker := found.get(skill.name)) is not None and weaker.place:
                self.asides.append(f"{weaker.place}: {skill.name} is also in {skill.place}, which counts")
            found[skill.name] = skill
        return dict(sorted(found.items()))

    def _read(self, refused: list[str], asides: list[str]) -> Iterator[Skill]:
        only = self._only
        for file in self._places.files(("commands", "skills"), refused):
            try:
                skill = read_skill(file)
            except SkillError as error:
                refused.append(str(error))
                continue
            asides += skill.problems
            yield skill if only is None or skill.name in only else replace(skill, is_for_model=False)

    def folder_of(self, skill: Skill) -> str:
        """Return the absolute folder of a skill's files; empty for one of panpan's own."""
        return str((self._places.trust.files.root / skill.place).parent) if skill.place else ""

    @property
    def for_model(self) -> Sequence[Skill]:
        """The skills that the model may load."""
        return [skill for skill in self.all.values() if skill.is_for_model]

    def near(self, words: str) -> Sequence[Skill]:
        """Return the skills for the model that words may mean, the best first."""
        wanted = {word.casefold() for word in _WORDS.findall(words)}
        usable = {skill.name: skill for skill in self.for_model}
        similar = get_close_matches(words.casefold(), usable, n=3)
        scores = {
            name: len(wanted & _words_of(f"{name} {skill.description}")) + 2 * (name in similar)
            for name, skill in usable.items()
        }
        best = sorted((name for name in usable if scores[name]), key=lambda name: (-scores[name], name))
        return [usable[name] for name in best[:_MOST_FOUND]]


def _words_of(text: str) -> set[str]:
    return {part.casefold() for word in _WORDS.findall(text) for part in (word, *word.split("_"))}


def room_tokens(window: int | None) -> int:
    """Return the most tokens of the list for a context window of so many; None: it is not known."""
    return min(int((window or _UNKNOWN_WINDOW) * _SHARE), _MOST_TOKENS) - _PREAMBLE_TOKENS


def catalogue(skills: Iterable[Skill], room: int) -> str:
    """Return the list for the model, a line each, in at most `room` tokens; empty if there are no skills."""
    every = sorted(skills, key=lambda skill: skill.name)
    if not every:
        return ""
    most = max(len(skill.description) for skill in every)
    kept = list(every)
    if _size(every, most) > room:
        most = FIRST_CHARS
        # those of the project first, since they are about the work at hand
        kept, left = [], room
        for skill in sorted(every, key=lambda skill: (not skill.is_of_project, skill.name)):
            if (left := left - text_tokens(_line(skill, most)) - 1) < 0:
                break
            kept.append(skill)
        if len(kept) == len(every):
            most = _longest(every, room)
    lines = [_line(skill, most) for skill in sorted(kept, key=lambda skill: skill.name)]
    if hidden := len(every) - len(kept):
        lines.append(f"{hidden:,} more have no room here; to find one, give words of the task as `skill`")
    return "\n".join(lines)


def digest_of(text: str) -> str:
    """Return a short digest of a list, so that it is told once."""
    return blake2b(text.encode(), digest_size=6).hexdigest()


def _longest(skills: Sequence[Skill], room: int) -> int:
    """Return to how many characters descriptions can be cut so that all fit."""
    low, high = FIRST_CHARS, max(len(skill.description) for skill in skills)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _size(skills, middle) <= room else (low, middle - 1)
    return low


def _size(skills: Sequence[Skill], most: int) -> int:
    return sum(text_tokens(_line(skill, most)) + 1 for skill in skills)


def _line(skill: Skill, most: int) -> str:
    text = skill.description
    return f"- {skill.name}: {text if len(text) <= most else f'{text[:most].rstrip()}…'}"
