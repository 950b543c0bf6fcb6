"""Questions in the form of version 2: with a title, a description, and the call as the subject."""

from collections.abc import Sequence

from acp.schema import PermissionOption, ToolCallProgress, ToolCallStart
from pydantic import BaseModel

from panpan.faces.acp.calls import question_words
from panpan.faces.acp.connection import dump
from panpan.faces.acp.questions import ClientQuestions
from panpan.faces.acp.v2.messages import Plain
from panpan.faces.acp.v2.updates import call_of
from panpan.hub.events import Question
from panpan.types.permission import PermissionQuestion


class DraftQuestions(ClientQuestions):
    """Asks one client about one session."""

    def call_for(self, number: int, question: Question, open_calls: Sequence[str]) -> ToolCallStart | ToolCallProgress:
        call = super().call_for(number, question, open_calls)
        if not isinstance(question, PermissionQuestion):
            return call
        return call.model_copy(update={"field_meta": {"description": question_words(question)}})  # is not sent

    def _permission_request(self, call: ToolCallStart | ToolCallProgress, options: list[PermissionOption]) -> BaseModel:
        request = {
            "sessionId": self._session_id,
            "title": call.title,
            "subject": {"type": "tool_call", "toolCall": call_of(call)},
            "options": [dump(one) for one in options],
        }
        description = (call.field_meta or {}).get("description")
        return Plain({**request, "description": description} if description else request)
