"""What a subagent is told of plan mode: that it is on, and that it is over."""

from collections.abc import Callable, Sequence

from panpan.core.hooks import Addition, Hook, Round
from panpan.types.messages import SystemReminder
from panpan.types.permission import PermissionMode
from panpan.types.reminder_causes import PLAN_MODE_OFF, PLAN_MODE_ON

_PLAN_ON = (
    "Plan mode is on: nothing may be changed, by whatever tool or way; calls that change something are refused. Look "
    "around, and say in your report what is to be done."
)
_PLAN_OFF = "Plan mode is off: things may be changed again, as far as your task asks for it."


class PlanNotice(Hook):
    """Tells a subagent where plan mode holds for it, and where it ends.

    Args:
        mode: Returns the mode that holds for it at the moment.
    """

    def __init__(self, mode: Callable[[], PermissionMode]) -> None:
        self._mode = mode
        self._was_told: bool | None = None

    async def before_request(self, round_: Round) -> Sequence[Addition]:
        if self._was_told is None:
            causes = [one.cause for one in round_.conversation.messages if isinstance(one, SystemReminder)]
            self._was_told = (
                next((cause for cause in reversed(causes) if cause in (PLAN_MODE_ON, PLAN_MODE_OFF)), PLAN_MODE_OFF)
                == PLAN_MODE_ON
            )
        is_on = self._mode() == "plan"
        if is_on == self._was_told:
            return ()
        self._was_told = is_on
        return (SystemReminder(text=_PLAN_ON if is_on else _PLAN_OFF, cause=PLAN_MODE_ON if is_on else PLAN_MODE_OFF),)
