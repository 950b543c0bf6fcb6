"""Questions of servers to the user: a form to fill in, or an address to open.

The rule: a person answers, and sees which server asks. Nothing is opened by itself, and an address is shown as it
would be resolved.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

from panpan.system.text.terminal_text import clean_line
from panpan.types.permission import Choice, UserAnswer, UserAsker, UserQuestion

MOST_FIELDS = 20
"""Most fields of a form; a longer one is declined."""
_AT_ONCE = 4
"""Questions that are put to the user together."""
_MAX_CHARS = 500
_HEADER_CHARS = 12
_DECLINE = "Decline"
_SKIP = "Leave it out"
_OPENED = "I have opened it"
_WRITE = "Write an answer"
_OWN_LABELS = frozenset({_DECLINE, _SKIP, _WRITE, _OPENED})
"""Answers of panpan's own; a value of a field that reads so stands in quotes."""
_YES, _NO = "Yes", "No"


class FormError(Exception):
    """An answer does not fit its field; the text says why."""


async def ask_form(server: str, message: str, schema: Mapping[str, Any], ask: UserAsker) -> Mapping[str, Any]:
    """Put the fields of a form to the user, and return the answer for the server.

    Args:
        server: Name of the server.
        message: What the server says about it.
        schema: Its `requestedSchema`.
        ask: Asks the user.
    """
    properties = schema.get("properties")
    fields = dict(properties) if isinstance(properties, Mapping) else {}
    if len(fields) > MOST_FIELDS:
        return {"action": "decline"}
    required = schema.get("required")
    needed = set(required) if isinstance(required, Sequence) else set()
    content: dict[str, Any] = {}
    left = [(name, one if isinstance(one, Mapping) else {}) for name, one in fields.items()]
    if not left:
        questions = [UserQuestion(server[:_HEADER_CHARS], _said(server, message), (Choice("Agree"), Choice(_DECLINE)))]
        answers = await ask(questions)
        agrees = bool(answers) and "Agree" in (answers or [UserAnswer()])[0].chosen
        return {"action": "accept", "content": {}} if agrees else {"action": "cancel" if answers is None else "decline"}
    note = _said(server, message)
    while left:
        now, left = left[:_AT_ONCE], left[_AT_ONCE:]
        questions = [_question(server, note, name, field, name in needed) for name, field in now]
        answers = await ask(questions)
        if answers is None:
            return {"action": "cancel"}
        if any(_DECLINE in answer.chosen for answer in answers):
            return {"action": "decline"}
        again: list[tuple[str, Mapping[str, Any]]] = []
        for (name, field), answer in zip(now, answers, strict=True):
            try:
                value = read_answer(field, answer, is_needed=name in needed)
            except FormError as error:
                again.append((name, {**field, "panpan:problem": str(error)}))
                continue
            if value is not None:
                content[name] = value
        left = again + left
    return {"action": "accept", "content": content}


async def ask_to_open(server: str, message: str, url: str, ask: UserAsker) -> Mapping[str, Any]:
    """Show an address to the user, and return the answer for the server."""
    question = f"{_said(server, message)}\nIt wants you to open this address: {shown_address(url)}"
    answers = await ask([UserQuestion(server[:_HEADER_CHARS], question, (Choice(_OPENED), Choice(_DECLINE)))])
    if answers is None:
        return {"action": "cancel"}
    return {"action": "accept" if _OPENED in answers[0].chosen else "decline"}


def shown_address(url: str) -> str:
    """Return an address with its host in ASCII, so that no letters look like others."""
    try:
        host = urlsplit(url).hostname or ""
        plain = url if host.isascii() else url.replace(host, host.encode("idna").decode(), 1)
    except (ValueError, UnicodeError):
        return f"(an address that cannot be read) {clean_line(ascii(url))[:_MAX_CHARS]}"
    return clean_line(plain.encode("ascii", "backslashreplace").decode())[:_MAX_CHARS]


def _said(server: str, message: str) -> str:
    return f"The MCP server {server} asks: {clean_line(message)[:_MAX_CHARS]}"


def _question(server: str, note: str, name: str, field: Mapping[str, Any], is_needed: bool) -> UserQuestion:
    about = " ".join(str(field[key]) for key in ("title", "description") if isinstance(field.get(key), str))
    problem = f" ({field['panpan:problem']})" if "panpan:problem" in field else ""
    options = list(_options(field))
    more = f" One of: {', '.join(options)}." if len(options) > _AT_ONCE - 1 else ""
    text = clean_line(f"{name}{f': {about}' if about else ''}{problem}{more}")[:_MAX_CHARS]
    default = field.get("default")
    labels = options[: _AT_ONCE - 1]
    if not labels and default is not None:
        labels = [_label(default)]
    if not labels and not is_needed:
        labels = [_SKIP]
    if len(labels) < _AT_ONCE - 1 and not is_needed and _SKIP not in labels:
        labels.append(_SKIP)
    labels.append(_DECLINE)
    if len(labels) < 2:
        labels.insert(0, _WRITE)
    choices = [Choice(label, "the default" if label == _label(default) else "") for label in dict.fromkeys(labels)]
    return UserQuestion(server[:_HEADER_CHARS], f"{note}\n{text}", choices, allows_several=field.get("type") == "array")


def _label(value: Any) -> str:
    if isinstance(value, bool):
        return _YES if value else _NO
    label = clean_line(str(value))[:100]
    return f"“{label}”" if label in _OWN_LABELS else label


def _options(field: Mapping[str, Any]) -> Iterator[str]:
    """Yield the values that a field may have, for people."""
    if field.get("type") == "boolean":
        yield from (_YES, _NO)
        return
    yield from (label for label, _ in _values(field))


def _values(field: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the values that a field may have, each with its label."""
    inner = field.get("items") if field.get("type") == "array" else field
    if not isinstance(inner, Mapping):
        return
    names = inner.get("enumNames")
    if isinstance(values := inner.get("enum"), Sequence) and not isinstance(values, str):
        labels = names if isinstance(names, Sequence) and len(names) == len(values) else values
        yield from ((_label(label), value) for label, value in zip(labels, values, strict=True))
    for key in ("oneOf", "anyOf"):
        options = inner.get(key)
        for one in options if isinstance(options, list) else ():
            if isinstance(one, Mapping) and "const" in one:
                yield _label(one.get("title") or one["const"]), one["const"]


def read_answer(field: Mapping[str, Any], answer: UserAnswer, *, is_needed: bool) -> Any:
    """Return the value of a field that an answer means; None leaves it out.

    Raises:
        FormError: The answer does not fit.
    """
    typed = answer.text.strip()
    words = [*(label for label in answer.chosen if label not in (_SKIP, _WRITE)), *([typed] if typed else [])]
    default = field.get("default")
    if not words:
        if default is not None and _SKIP not in answer.chosen:
            return default
        if is_needed:
            raise FormError("it needs an answer")
        return None
    if default is not None and words == [_label(default)] and not list(_values(field)):
        return default
    known = dict(_values(field))
    match field.get("type"):
        case "boolean":
            return _one_of(words[0], {_YES: True, _NO: False, "true": True, "false": False, "y": True, "n": False})
        case "array":
            picked = [label for label in words if label != typed]
            return [_one_of(word.strip(), known) for word in (*picked, *typed.split(",")) if word.strip()]
        case "integer" | "number" as kind:
            return _number(words[0], field, is_whole=kind == "integer")
        case _ if known:
            return _one_of(words[0], known)
        case _:
            return _text(words[0], field)


def _one_of(word: str, known: Mapping[str, Any]) -> Any:
    for label, value in known.items():
        if word.casefold() in (label.casefold(), str(value).casefold()):
            return value
    raise FormError(f"it has to be one of {', '.join(known)}")


def _number(word: str, field: Mapping[str, Any], *, is_whole: bool) -> float | int:
    try:
        number: float | int = int(word) if is_whole else float(word)
    except ValueError:
        raise FormError(f"it has to be a {'whole ' if is_whole else ''}number") from None
    if not isfinite(number):
        raise FormError("it has to be a number")
    least, most = field.get("minimum"), field.get("maximum")
    if isinstance(least, int | float) and number < least:
        raise FormError(f"it has to be at least {least:g}")
    if isinstance(most, int | float) and number > most:
        raise FormError(f"it has to be at most {most:g}")
    return number


def _text(word: str, field: Mapping[str, Any]) -> str:
    least, most = field.get("minLength"), field.get("maxLength")
    if isinstance(least, int) and len(word) < least:
        raise FormError(f"it has to have at least {least} characters")
    if isinstance(most, int) and len(word) > most:
        raise FormError(f"it has to have at most {most} characters")
    return word
