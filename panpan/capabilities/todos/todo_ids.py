"""Which id each todo of a new list has: that of the old list, where it is the same thing to do."""

from collections.abc import Callable, Sequence
from itertools import count

from panpan.types.display import ChecklistItem


def with_ids(wanted: Sequence[ChecklistItem], before: Sequence[ChecklistItem]) -> tuple[ChecklistItem, ...]:
    """Return the list with ids, of which none stands twice.

    A todo keeps its id where its content is the same as before, else where the words are that say it is being done;
    others get new numbers.
    """
    ids: dict[int, str] = {}
    _match(wanted, before, ids, lambda todo: todo.content)
    _match(wanted, before, ids, lambda todo: todo.active_form)
    known = {todo.id for todo in before}
    free = (str(number) for number in count(1) if str(number) not in known)
    return tuple(
        draft.model_copy(update={"id": ids[place] if place in ids else next(free)})
        for place, draft in enumerate(wanted)
    )


def _match(
    wanted: Sequence[ChecklistItem],
    before: Sequence[ChecklistItem],
    ids: dict[int, str],
    words: Callable[[ChecklistItem], str],
) -> None:
    """Add to `ids`, by place, those of todos that have the same words and whose id is not given yet."""
    by_words: dict[str, list[str]] = {}
    for todo in reversed(before):
        by_words.setdefault(words(todo), []).append(todo.id)
    given = set(ids.values())
    for place, draft in enumerate(wanted):
        same = by_words.get(words(draft), [])
        while place not in ids and same:
            if (found := same.pop()) not in given:
                ids[place] = found
                given.add(found)
