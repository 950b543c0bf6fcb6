"""Questions of a session, put to the person in front of the editor.

The rule: the editor has the call with its title, arguments and changes before it is asked. Only an answer that was
offered counts; all else, such as an editor that is gone, is a refusal.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from acp.schema import (
    CreateFormSessionElicitationRequest,
    ElicitationSchema,
    PermissionOption,
    PermissionOptionKind,
    RequestPermissionRequest,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
)
from pydantic import BaseModel

from panpan.faces.acp.calls import call_title, question_content, text
from panpan.faces.acp.connection import ClientError, Connection
from panpan.faces.mcp_server.forms import (
    Filled,
    permission_answer,
    permission_form,
    questions_answers,
    questions_form,
)
from panpan.hub.events import Question
from panpan.hub.permission_answers import Answer, answers_to
from panpan.system.text.terminal_text import clean_line
from panpan.types.permission import (
    PermissionMode,
    PermissionQuestion,
    PlanAnswer,
    PlanApproved,
    PlanProposal,
    PlanRejected,
    UserAnswer,
    UserQuestion,
)

_NO = "no"
_PLAN_MODES: Mapping[PermissionMode, str] = {
    "default": "Yes, and ask before edits",
    "acceptEdits": "Yes, and accept edits automatically",
    "auto": "Yes, in auto mode",
    "dontAsk": "Yes, in the mode dontAsk",
    "bypassPermissions": "Yes, in the mode bypassPermissions",
}


class ClientQuestions:
    """Asks one client about one session.

    Args:
        connection: The way to the client.
        session_id: The session.
        folder: Its workspace.
        has_forms: True if the client shows forms.
    """

    def __init__(self, connection: Connection, session_id: str, folder: Path, *, has_forms: bool) -> None:
        self._connection = connection
        self._session_id = session_id
        self._folder = folder
        self._has_forms = has_forms

    def call_for(self, number: int, question: Question, open_calls: Sequence[str]) -> ToolCallStart | ToolCallProgress:
        """Return the call that a question is about, as the client has to see it first.

        A question of a subagent, or about none of the calls that the client knows, gets an entry of its own.

        Args:
            number: Number of the question.
            question: The question.
            open_calls: Ids of the calls that the client knows.
        """
        own = f"question-{number}"
        match question:
            case PermissionQuestion(tool_use_id=call, agent=agent):
                shown = {
                    "title": call_title(question.tool_name, question.title),
                    "raw_input": dict(question.input),
                    "content": question_content(question, self._folder),
                }
                if not agent and call in open_calls:
                    return ToolCallProgress(session_update="tool_call_update", tool_call_id=call, **shown)
                return ToolCallStart(session_update="tool_call", tool_call_id=own, status="pending", **shown)
            case PlanProposal(text=plan, file=file):
                return ToolCallStart(
                    session_update="tool_call",
                    tool_call_id=own,
                    title="Approve this plan?",
                    kind="switch_mode",
                    status="pending",
                    raw_input={"plan": plan, "file": str(file)},
                    content=[text(plan)],
                )
            case _:
                return ToolCallStart(
                    session_update="tool_call",
                    tool_call_id=own,
                    title="The model asks",
                    kind="other",
                    status="pending",
                    raw_input={"questions": [clean_line(one.question) for one in question]},
                    content=[text(questions_form(question).message)],
                )

    async def ask(self, question: Question, call: ToolCallStart | ToolCallProgress) -> Any:
        """Return the answer, as the hub takes it."""
        match question:
            case PermissionQuestion():
                return await self._permission(question, call)
            case PlanProposal():
                return await self._plan(question, call)
            case _:
                return await self._user(question, call)

    async def _permission(self, question: PermissionQuestion, call: ToolCallStart | ToolCallProgress) -> Any:
        if permission_form(question, self._folder) is None:  # it is too long to be judged
            return permission_answer(question, None)
        answers = {one.key: one for one in answers_to(question)}
        options = [PermissionOption(option_id=key, name=one.text, kind=_kind(one)) for key, one in answers.items()]
        chosen = answers.get(await self._choose(call, options) or "")
        return permission_answer(question, Filled()) if chosen is None else chosen.given

    async def _plan(self, proposal: PlanProposal, call: ToolCallStart | ToolCallProgress) -> PlanAnswer:
        options = [
            PermissionOption(option_id=mode, name=_PLAN_MODES.get(mode, f"Yes, in the mode {mode}"), kind="allow_once")
            for mode in proposal.modes
        ]
        options.append(PermissionOption(option_id=_NO, name="No, keep planning", kind="reject_once"))
        chosen = await self._choose(call, options)
        mode = next((one for one in proposal.modes if one == chosen), None)
        return PlanRejected() if mode is None else PlanApproved(mode)

    async def _user(
        self, questions: Sequence[UserQuestion], call: ToolCallStart | ToolCallProgress
    ) -> Sequence[UserAnswer] | None:
        if self._has_forms:
            return questions_answers(questions, await self._form(questions))
        answers = [await self._pick(question, call) for question in questions]
        return [one or UserAnswer() for one in answers] if any(answers) else None

    async def _form(self, questions: Sequence[UserQuestion]) -> Filled:
        form = questions_form(questions)
        request = CreateFormSessionElicitationRequest(
            session_id=self._session_id,
            message=form.message,
            mode="form",
            requested_schema=ElicitationSchema.model_validate(form.schema),
        )
        match await self._request("elicitation/create", request):
            case {"action": "accept", "content": dict(content)}:
                return Filled(is_accepted=True, is_persons=True, content=content)
            case {"action": "decline"}:
                return Filled(is_persons=True)
            case _:
                return Filled()

    async def _pick(self, question: UserQuestion, call: ToolCallStart | ToolCallProgress) -> UserAnswer | None:
        """Let a client without forms choose one of the answers."""
        options = [
            PermissionOption(option_id=str(index), name=clean_line(one.label), kind="allow_once")
            for index, one in enumerate(question.choices)
        ]
        options.append(PermissionOption(option_id=_NO, name="No answer", kind="reject_once"))
        asked = call.model_copy(update={"title": clean_line(question.question)})
        chosen = await self._choose(asked, options)
        labels = [one.label for index, one in enumerate(question.choices) if str(index) == chosen]
        return UserAnswer(labels) if labels else None

    async def _choose(self, call: ToolCallStart | ToolCallProgress, options: list[PermissionOption]) -> str | None:
        """Return the id of the option that the person chose; None if they chose none."""
        match await self._request("session/request_permission", self._permission_request(call, options)):
            case {"outcome": {"outcome": "selected", "optionId": str(chosen)}}:
                return chosen
            case _:
                return None

    def _permission_request(self, call: ToolCallStart | ToolCallProgress, options: list[PermissionOption]) -> BaseModel:
        shown = ToolCallUpdate(
            tool_call_id=call.tool_call_id,
            title=call.title,
            kind=call.kind,
            status=call.status,
            content=call.content,
            locations=call.locations,
            raw_input=call.raw_input,
        )
        return RequestPermissionRequest(session_id=self._session_id, tool_call=shown, options=options)

    async def _request(self, method: str, request: BaseModel) -> Any:
        try:
            return await self._connection.request(method, request)
        except ClientError:
            return None


def _kind(answer: Answer) -> PermissionOptionKind:
    if not answer.given.is_allowed:
        return "reject_once"
    return "allow_always" if answer.is_lasting else "allow_once"
