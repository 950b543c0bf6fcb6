"""Ids as the SDK knows them, made from ours and turned back without any state.

Ours are UUIDs of version 7, whose digits sort by time, so that `msg_…`, `ses_…` and `prt_…` do as well.
"""

from typing import Literal, TypeAlias
from uuid import UUID

from panpan.hub.operations.table import NotFoundError
from panpan.hub.wire import WireError
from panpan.system.text.terminal_text import clean_line

Prefix: TypeAlias = Literal["ses", "msg", "prt", "per", "que"]
_DIGITS = 32
_PART_DIGITS = 4
"""Digits of the number of a part in its message."""
_QUESTION_DIGITS = 8


def wire_id(prefix: Prefix, own: str) -> str:
    """Return the SDK's id of something of ours; an id that is no UUID, such as an imported one, stays as it is."""
    return f"{prefix}_{own.replace('-', '') if _is_uuid(own) else own}"


def own_id(prefix: Prefix, given: str) -> str:
    """Return our id of something that the SDK names.

    Raises:
        NotFoundError: It is no such id, so that there is nothing of that name.
    """
    begin, _, rest = given.partition("_")
    if begin != prefix or not rest:
        raise NotFoundError(f"{clean_line(given)[:100]!r} is not known; ids of this kind begin with {prefix}_")
    return _dashed(rest) if len(rest) == _DIGITS else rest


def new_message_id(given: str) -> str:
    """Return our id for a message that the client names beforehand.

    Raises:
        WireError: It is none that sorts by its time.
    """
    begin, _, rest = given.partition("_")
    own = _dashed(rest)
    if begin != "msg" or not _is_uuid(own) or UUID(own).version != 7:
        raise WireError(
            "messageID is msg_ and the 32 hexadecimal digits of a UUID of version 7; leave it out for a new one"
        )
    return own


def part_id(message: str, number: int) -> str:
    """Return the id of a part, from our id of its message and its number there."""
    return f"{wire_id('prt', message)}{number:0{_PART_DIGITS}x}"


def question_id(prefix: Literal["per", "que"], epoch: str, number: int) -> str:
    """Return the id of a question, which no other question of another time has.

    Args:
        prefix: `per` for one about a call, `que` for others.
        epoch: Id of the numbering.
        number: Number of the question.
    """
    return f"{wire_id(prefix, epoch)}{number:0{_QUESTION_DIGITS}x}"


def place_of_question(prefix: Literal["per", "que"], given: str) -> tuple[str, int]:
    """Return the epoch and the number of a question.

    Raises:
        NotFoundError: It is no such id.
    """
    rest = own_id(prefix, given)
    epoch, number = rest[:-_QUESTION_DIGITS], rest[-_QUESTION_DIGITS:]
    try:
        return _dashed(epoch), int(number, 16)
    except ValueError as error:
        raise NotFoundError(f"there is no question {clean_line(given)[:100]!r}") from error


def time_of(own: str) -> int:
    """Return the time in an id of ours, in milliseconds since 1970; 0 if it has none."""
    return UUID(own).int >> 80 if _is_uuid(own) and UUID(own).version == 7 else 0


def _dashed(digits: str) -> str:
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False
