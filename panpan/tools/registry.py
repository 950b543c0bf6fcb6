"""Which tools there are, in the order in which the model is told of them."""

from collections.abc import Callable, Sequence
from typing import Any

from panpan.tools.agents.merge_worktree import MergeWorktreeTool
from panpan.tools.agents.subagents import Subagents
from panpan.tools.agents.task import TaskTool
from panpan.tools.agents.worktrees import AgentWorktrees
from panpan.tools.files.edit import EditTool
from panpan.tools.files.multi_edit import MultiEditTool
from panpan.tools.files.notebook_edit import NotebookEditTool
from panpan.tools.files.patch import PatchTool
from panpan.tools.files.read import ReadTool
from panpan.tools.files.rename import RenameTool
from panpan.tools.files.write import WriteTool
from panpan.tools.history.read_history import ReadHistoryTool
from panpan.tools.planning.ask_user import AskUserQuestionTool
from panpan.tools.planning.enter_plan_mode import EnterPlanModeTool
from panpan.tools.planning.exit_plan_mode import ExitPlanModeTool
from panpan.tools.planning.planning import Planning
from panpan.tools.planning.todo_store import TodoStore
from panpan.tools.planning.todo_write import TodoWriteTool
from panpan.tools.search.glob import GlobTool
from panpan.tools.search.grep import GrepTool
from panpan.tools.search.ls import LsTool
from panpan.tools.shell.bash import BashTool
from panpan.tools.tasks.background import Background
from panpan.tools.tasks.task_output import TaskOutputTool
from panpan.tools.tasks.task_stop import TaskStopTool
from panpan.tools.tool import Tool
from panpan.types.messages import Message
from panpan.types.plan import PlanAsker
from panpan.types.user_questions import UserAsker


def all_tools(
    ask_user: UserAsker | None = None,
    *,
    planning: Planning | None = None,
    ask_plan: PlanAsker | None = None,
    history: Callable[[], Sequence[Message]] | None = None,
    todos: TodoStore | None = None,
    subagents: Subagents | None = None,
    background: Background | None = None,
    worktrees: Callable[[], AgentWorktrees] | None = None,
) -> list[Tool[Any]]:
    """Return a new instance of every tool, for one session.

    Args:
        ask_user: Puts questions of the model to the user; None: nobody is there to answer.
        planning: The plan mode of the session; None: there is no session, as where tools are only listed.
        ask_plan: Puts plans to the user; None: nobody is there to approve one.
        history: Returns all that was said in the session; None: there is none.
        subagents: Runs subagents; None: there is no session.
        background: The background tasks of the session; None: there are none.
        todos: Keeps the todo list of the session; None: there is none.
        worktrees: Returns who keeps the worktrees of subagents; None: there can be none.
    """
    return [
        ReadTool(),
        WriteTool(),
        EditTool(),
        MultiEditTool(),
        PatchTool(),
        RenameTool(),
        NotebookEditTool(),
        LsTool(),
        GlobTool(),
        GrepTool(),
        TaskTool(subagents),
        MergeWorktreeTool(worktrees),
        BashTool(background),
        TaskOutputTool(background),
        TaskStopTool(background),
        AskUserQuestionTool(ask_user),
        EnterPlanModeTool(planning, has_user=ask_plan is not None),
        ExitPlanModeTool(planning, ask_plan),
        ReadHistoryTool(history),
        TodoWriteTool(todos),
    ]
