"""Answers to a permission question, in the same words on every face.

The rule: an answer does exactly what it says. A saved rule is shown as it will hold, without the file it goes into.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from panpan.permissions.rules.suggestions import describe_pattern, describe_rule
from panpan.system.text.cell_width import cell_width
from panpan.system.text.terminal_text import escape_invisible
from panpan.types.dataclass import dataclass
from panpan.types.permission import Opening, PermissionAnswer, PermissionQuestion, ReasonKind

ALWAYS_ASKS = "Always asks: rules and --yes don't cover this."
"""Follows the reasons for asking about something protected."""
WHOLE_CALL = "The whole call:"
"""Heading of the arguments, which are shown if the diff above leaves out a part of the change."""
MAX_RULE_CELLS = 200
"""A longer rule cannot be saved: nobody would read it, and the question has to fit the screen."""

_LONG_COMMAND_CELLS = 40
"""A longer command is not repeated in an answer; it is shown above."""
_OBVIOUS: frozenset[ReasonKind] = frozenset({"not-allowed", "unknown", "read-only", "mode"})
"""Kinds of reasons that are not shown: the call does something, and no rule allows it yet."""
_TAB, _LINE_FEED = "<U+0009>", "<U+000A>"


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer to a permission question."""

    key: str
    """Letter that gives the answer."""
    text: str
    """Effect of the answer, in at most twelve words."""
    short: str
    """Shorter label, for little room."""
    given: PermissionAnswer
    is_lasting: bool = False
    """True if it also holds for later calls."""


def exact_line(text: str) -> str:
    """Return `text` on one line, with invisible characters spelled out."""
    return escape_invisible(text).replace("\t", _TAB).replace("\n", _LINE_FEED)


def _sentence(text: str) -> str:
    """Return a reason as a sentence."""
    return f"{text[:1].upper()}{text[1:]}." if text and not text.endswith((".", "?", "!")) else text


def why_it_matters(question: PermissionQuestion) -> str:
    """Return the reasons that may change the answer, as sentences; empty if the question says it all."""
    if not question.reasons:
        return _sentence(question.reason)
    telling = (reason.text for reason in question.reasons if reason.kind not in _OBVIOUS)
    return " ".join(map(_sentence, dict.fromkeys(telling)))


def all_reasons(question: PermissionQuestion) -> Sequence[str]:
    """Return all reasons for asking, each as a sentence."""
    reasons = [reason.text for reason in question.reasons] or [question.reason]
    only_person = [ALWAYS_ASKS] if question.is_protected else []
    return [*map(_sentence, dict.fromkeys(reasons)), *only_person]


def answers_to(question: PermissionQuestion) -> Sequence[Answer]:
    """Return the answers, a plain yes first and a plain no last."""
    yes = list(_of_openings(question.offer.openings)) if question.offer.openings else list(_of_rules(question))
    return [*yes, Answer("n", "No", "No", PermissionAnswer(is_allowed=False))]


def _of_openings(openings: Sequence[Opening]) -> Iterator[Answer]:
    keys = {"off": "o", "network": "w", "on": "s"}
    for number, opening in enumerate(openings):
        key = keys[opening.use] if number else "y"
        words = exact_line(opening.description)
        short = {"off": "Outside", "network": "Network", "on": "As it is"}[opening.use]
        yield Answer(key, f"Yes, {words}", short if number else "Yes", _yes(opening=opening))
        if number == 0 and opening.can_be_kept:
            kept = exact_line(", ".join(describe_pattern(one) for one in opening.patterns))
            text = f"Yes, and {kept} {words} from now on" if kept else f"Yes, and always {words}"
            if cell_width(text) <= MAX_RULE_CELLS:
                yield Answer("a", text, "Always", _yes(opening=opening, is_remembered=True), is_lasting=True)


def _of_rules(question: PermissionQuestion) -> Iterator[Answer]:
    yield Answer("y", "Yes", "Yes", _yes())
    if question.rule is not None and cell_width(exact_line(question.rule)) <= MAX_RULE_CELLS:
        said = describe_rule(question.rule)
        is_all_shown = said == question.input.get(question.wording.main_argument)
        said = "this exact command" if is_all_shown and cell_width(said) > _LONG_COMMAND_CELLS else exact_line(said)
        text = f"Yes, and don't ask again for {said}"
        yield Answer("a", text, "Always", _yes(is_remembered=True), is_lasting=True)
    if question.prefix_rule is not None:
        said = exact_line(describe_rule(question.prefix_rule))
        given = _yes(is_remembered=True, is_for_prefix=True)
        yield Answer("l", f"Yes, and don't ask again for {said}", "Always the like", given, is_lasting=True)
    match question.offer.mode:
        case "acceptEdits":
            text, short = "Yes, and accept edits from now on", "Accept edits"
            yield Answer("e", text, short, _yes(changes_mode=True), is_lasting=True)
        case "auto":
            text, short = "Yes, and stop asking for sandboxed commands", "Auto mode"
            yield Answer("m", text, short, _yes(changes_mode=True), is_lasting=True)


def _yes(
    *,
    opening: Opening | None = None,
    is_remembered: bool = False,
    is_for_prefix: bool = False,
    changes_mode: bool = False,
) -> PermissionAnswer:
    return PermissionAnswer(
        True, is_remembered=is_remembered, is_for_prefix=is_for_prefix, opening=opening, changes_mode=changes_mode
    )


def with_words(answer: PermissionAnswer, words: str) -> PermissionAnswer:
    """Return an answer with the user's words for the model."""
    if not words:
        return answer
    said = "allowed" if answer.is_allowed else "refused"
    return replace(answer, feedback=f"The user {said} it and said: {words}")
