"""The system prompt: the same text in every session, so that the providers' prompt caches hit from the first request.

Nothing that depends on the day, the folder or the mode belongs here; such things are reminders in the conversation.
"""

from importlib.resources import files


def system_prompt(override: str | None = None, append: str | None = None) -> str:
    """Return the system prompt of a session: panpan's own or what replaces it, then what is appended."""
    base = _own_prompt() if override is None else override.strip()
    return "\n\n".join(part for part in (base, (append or "").strip()) if part)


def _own_prompt() -> str:
    return files(__package__).joinpath("system_prompt.md").read_text(encoding="utf-8").strip()
