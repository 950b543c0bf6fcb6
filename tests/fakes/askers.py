"""Askers with given answers, which keep the questions."""

from panpan.types.permission import PermissionAnswer, PermissionQuestion


class ScriptedAsker:
    """Gives the same answer to every question."""

    def __init__(self, answer: PermissionAnswer) -> None:
        self.answer = answer
        self.questions: list[PermissionQuestion] = []

    async def __call__(self, question: PermissionQuestion) -> PermissionAnswer:
        self.questions.append(question)
        return self.answer


def yes() -> ScriptedAsker:
    return ScriptedAsker(PermissionAnswer(is_allowed=True))


def no(feedback: str = "") -> ScriptedAsker:
    return ScriptedAsker(PermissionAnswer(is_allowed=False, feedback=feedback))
