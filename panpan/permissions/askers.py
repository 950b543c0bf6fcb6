"""Who answers questions where no face puts them to a person: nobody, or a flag that says yes."""

from collections.abc import Callable
from dataclasses import replace

from panpan.types.permission import YES, Asker, PermissionAnswer, PermissionMode, PermissionQuestion, flags_for


class NobodyToAsk:
    """Always no: where no question is put to a person, as with `-p`, what is not allowed does not run."""

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        return PermissionAnswer(is_allowed=False, feedback=_advice(question))


class YesToAll:
    """Yes to every question but those that only a person may answer.

    Args:
        otherwise: Who is asked about protected paths, and about going on with a repeated call; nobody if not given.
    """

    def __init__(self, otherwise: Asker | None = None) -> None:
        self._otherwise = otherwise or NobodyToAsk()

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        if question.is_protected or _is_about_repeating(question):
            left = question.for_person or question.reasons  # the others are answered with yes
            why = "; ".join(reason.text for reason in left) or question.reason
            answer = await self._otherwise(replace(question, reasons=left, reason=why))
            return replace(answer, reasons=() if answer.is_allowed else left)
        return PermissionAnswer(is_allowed=True)


STRICTER_MEANWHILE = (
    "Plan mode was switched on while the question waited, so that nothing may be changed now, and no earlier yes counts"
)


class AskerOfMode:
    """Asks nobody while the mode is dontAsk, whoever wants to ask; and no yes lasts into plan mode.

    Args:
        mode: Returns the mode of the moment.
        otherwise: Who is asked in the other modes.
    """

    def __init__(self, mode: Callable[[], PermissionMode], otherwise: Asker) -> None:
        self._mode = mode
        self._otherwise = otherwise

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        mode = self._mode()
        answer = await (NobodyToAsk() if mode == "dontAsk" else self._otherwise)(question)
        if answer.is_allowed and mode != self._mode() == "plan":
            return PermissionAnswer(is_allowed=False, feedback=f"{STRICTER_MEANWHILE}.")
        return answer


def _is_about_repeating(question: PermissionQuestion) -> bool:
    return any(reason.kind == "doom-loop" for reason in question.reasons)


def _advice(question: PermissionQuestion) -> str:
    if _is_about_repeating(question):
        return "It is the same call again, and this run asks nobody whether to go on."
    refused = (
        f"It needs the user's yes ({question.on_one_line}), and this run asks nobody, as with -p or a pipe. Go on "
        "without it, or in another way that is allowed"
    )
    flags = flags_for(question.reasons) if question.reasons else ""
    if not flags and question.is_protected:
        return (
            f"{refused}; name in your answer what is left for the user to do. No flag allows it: they are asked only "
            "where panpan runs on a terminal and without -p."
        )
    needs_more = question.is_protected or any(reason.kind == "sandbox" for reason in question.reasons)
    for_all = "" if needs_more or not flags or YES in flags.split() else f", or with {YES} for everything"
    return (
        f"{refused}. If the task cannot be done without it, say so in your answer and name this: the user can allow it "
        f"by starting panpan with {flags or YES}{for_all}. They are asked where panpan runs on a terminal and without "
        "-p."
    )
