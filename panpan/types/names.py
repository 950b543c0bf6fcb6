"""Names of tools and agents as models and people write them: `bash` is `Bash` where nothing else could be meant."""

from collections.abc import Collection


def known_name(name: str, known: Collection[str]) -> str:
    """Return the known name that differs from `name` in case alone; `name` itself where there is none, or several."""
    if name in known:
        return name
    lower = name.casefold()
    found = [one for one in known if one.casefold() == lower]
    return found[0] if len(found) == 1 else name
