"""Follows a session for the line below the input; looks at each message once."""

from collections.abc import Callable, Mapping, Sequence

from panpan.config.locations import Locations
from panpan.faces.terminal.screen.theme import Theme
from panpan.faces.terminal.views.status_line import (
    SessionFacts,
    StatusState,
    UserStatusLine,
    beside_mode,
    status_json,
    status_line,
)
from panpan.session.budget.spending import SessionCosts
from panpan.session.context_usage import used_tokens
from panpan.session.session import Session
from panpan.system.git.git_places import git_branch
from panpan.types.display import TextDisplay
from panpan.version import __version__


class StatusView:
    """What is known of a session at the moment.

    Args:
        session: The session.
        env: For the user's own command.
        vi_mode: Returns the mode of the vi keys; empty where they are off.
        changed: Called when there is something new to draw.
        warn: Told why the user's own command is not shown.
    """

    def __init__(
        self,
        session: Session,
        env: Mapping[str, str],
        vi_mode: Callable[[], str],
        changed: Callable[[], None],
        warn: Callable[[str], None],
    ) -> None:
        self._session = session
        self._env = env
        self._vi_mode = vi_mode
        self._costs = SessionCosts()
        self._counted = 0
        self._compactions = 0
        self._tokens = 0
        self._branch = ""
        command = session.settings.ui.status_line
        self._own = UserStatusLine(command, session.info.cwd, env, changed=changed, warn=warn) if command else None
        self._look()

    async def run(self) -> None:
        """Run the user's own command when something changes, until cancelled."""
        if self._own is not None:
            await self._own.run()

    def turn_ended(self) -> None:
        """Look at what a turn may have changed beside the conversation."""
        self._look()

    def lines(self, width: int, theme: Theme) -> Sequence[str]:
        """Return the line."""
        state = self._state()
        if self._own is not None:
            self._own.tell(status_json(state, self._facts()))
            if (line := self._own.line(width)) is not None:
                return [beside_mode(line, state.mode, width, theme)]
        return [status_line(state, width, theme)]

    def _look(self) -> None:
        self._branch = git_branch(self._session.agent.context.paths.root)

    def _folder(self) -> str:
        """Return where commands start, as people write it; empty where that is the workspace."""
        paths = self._session.agent.context.paths
        if paths.cwd == paths.root:
            return ""
        if paths.cwd.is_relative_to(paths.root):
            return f"./{paths.cwd.relative_to(paths.root)}"
        return Locations.find(paths.root, self._env).shown(paths.cwd)

    def _state(self) -> StatusState:
        conversation = self._session.conversation
        messages = conversation.messages
        if len(conversation.compactions) != self._compactions:
            self._compactions = len(conversation.compactions)
            self._tokens = used_tokens(conversation)
        if len(messages) != self._counted:
            for message in messages[self._counted :]:
                self._costs.add(message)
            self._counted = len(messages)
            self._tokens = used_tokens(self._session.conversation)
        window = self._session.context_window
        return StatusState(
            mode=self._session.permission_mode,
            vi_mode=self._vi_mode(),
            model=self._session.model,
            thinks=self._session.thinks,
            context_used_percent=100 * self._tokens / window if window and messages else None,
            cost_usd=self._session.budget.known_usd or None,
            is_cost_estimated=self._session.budget.is_estimated,
            folder=self._folder(),
            branch=self._branch,
            of_features=[item for item in self._session.capabilities.status() if isinstance(item, TextDisplay)],
            hint="shift+tab mode · ? keys" if not messages else "",
        )

    def _facts(self) -> SessionFacts:
        cwd = str(self._session.info.cwd)
        return SessionFacts(
            session_id=self._session.info.id,
            transcript_path=str(self._session.log_path),
            cwd=str(self._session.agent.context.paths.cwd),
            project_dir=cwd,
            version=__version__,
            context_window=self._session.context_window,
            context_tokens=self._tokens,
            duration_s=self._costs.duration_s,
            api_duration_s=self._session.budget.spent.api_duration_s,
            lines_added=self._costs.lines_added,
            lines_removed=self._costs.lines_removed,
            vim_mode=self._vi_mode(),
        )
