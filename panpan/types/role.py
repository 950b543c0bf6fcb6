"""The meaning of a piece of text, apart from shapes, since the first screen needs it and not them."""

from typing import Literal, TypeAlias

Role: TypeAlias = Literal[
    "accent",  # panpan's own marks
    "dim",  # what may be overlooked
    "strong",
    "emphasis",
    "struck",
    "heading",
    "link",
    "good",
    "bad",
    "warn",
    "added",
    "removed",
    "added_word",  # what differs within a changed line
    "removed_word",
    "added_row",  # the ground of a changed line, and of what differs in it
    "removed_row",
    "added_row_word",
    "removed_row_word",
    "hunk",
    "question",  # the frame of what waits for the user
    "plan",  # plan mode
    "user",  # what the user said
    "user_row",  # and the ground below it
    "code",
    "keyword",  # from here on: within code
    "name",
    "string",
    "number",
    "comment",
    "agent_red",  # from here on: what the definition of a subagent asks for
    "agent_blue",
    "agent_green",
    "agent_yellow",
    "agent_purple",
    "agent_orange",
    "agent_pink",
    "agent_cyan",
]
"""Meaning of a piece of text, which has a colour of its own in each theme."""
