"""Which tools there are, in the order in which the model is told of them."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from panpan.tools.agents.merge_worktree import MergeWorktreeTool
from panpan.tools.agents.subagents import Subagents
from panpan.tools.agents.task import TaskTool
from panpan.tools.agents.worktrees import AgentWorktrees
from panpan.tools.code.code_intelligence import CodeIntelligence
from panpan.tools.code.lsp import LspTool
from panpan.tools.data.data_setup import DataSetup
from panpan.tools.data.dataset_download import DatasetDownloadTool
from panpan.tools.environment.env_doctor import EnvDoctorTool
from panpan.tools.files.edit import EditTool
from panpan.tools.files.multi_edit import MultiEditTool
from panpan.tools.files.notebook_edit import NotebookEditTool
from panpan.tools.files.patch import PatchTool
from panpan.tools.files.read import ReadTool
from panpan.tools.files.rename import RenameTool
from panpan.tools.files.write import WriteTool
from panpan.tools.history.read_history import ReadHistoryTool
from panpan.tools.packages.conda import CondaTool
from panpan.tools.packages.package_tool import PackageSetup
from panpan.tools.packages.pip import PipTool
from panpan.tools.packages.pixi import PixiTool
from panpan.tools.packages.uv import UvTool
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
from panpan.tools.web.page_reader import PageReader
from panpan.tools.web.search.choice import NoEngine
from panpan.tools.web.search.web_searcher import WebSearcher
from panpan.tools.web.web_fetch import WebFetchTool
from panpan.tools.web.web_pages import WebPages
from panpan.tools.web.web_search import WebSearchTool
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
    code: CodeIntelligence | None = None,
    searcher: WebSearcher | NoEngine | None = None,
    web_pages: WebPages | None = None,
    page_reader: PageReader | None = None,
    withholds: Callable[[Path, Path], bool] = lambda *_: False,
    packages: PackageSetup | None = None,
    data: DataSetup | None = None,
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
        code: Asks language servers; None: there are none.
        searcher: Asks a search engine, or says why there is none; None: there is no session.
        web_pages: Asks for pages of the web; None: there is no session.
        page_reader: Answers from such pages; None: there is no model for it.
        withholds: Whether a rule speaks against showing what is in a file of the project whose root comes second.
        data: How data sets are asked for; None: there is no session.
        packages: Settings of package managers, and what is kept of their steps; None: there is no session.
    """
    return [
        ReadTool(),
        WriteTool(),
        EditTool(),
        MultiEditTool(),
        PatchTool(),
        RenameTool(withholds),
        NotebookEditTool(),
        LsTool(),
        GlobTool(),
        GrepTool(),
        LspTool(code, withholds),
        WebSearchTool(searcher),
        WebFetchTool(web_pages, page_reader),
        TaskTool(subagents),
        MergeWorktreeTool(worktrees),
        BashTool(background),
        EnvDoctorTool(withholds),
        PipTool(packages),
        UvTool(packages),
        CondaTool(packages),
        PixiTool(packages),
        DatasetDownloadTool(data, background),
        TaskOutputTool(background),
        TaskStopTool(background),
        AskUserQuestionTool(ask_user),
        EnterPlanModeTool(planning, has_user=ask_plan is not None),
        ExitPlanModeTool(planning, ask_plan),
        ReadHistoryTool(history),
        TodoWriteTool(todos),
    ]
