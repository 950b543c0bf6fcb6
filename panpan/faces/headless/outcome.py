"""How a turn ended: the subtype of its result object and the exit code of the process."""

from panpan.errors import BudgetError, PanpanError, TurnLimitError
from panpan.types.dataclass import dataclass

EXIT_INTERRUPTED = 130
"""128 + SIGINT, as shells do."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a turn."""

    subtype: str = "success"
    exit_code: int = 0
    error: str = ""


def outcome_of_error(error: PanpanError) -> Outcome:
    """Return how a turn that raised `error` ended."""
    match error:
        case TurnLimitError():
            subtype = "error_max_turns"
        case BudgetError():
            subtype = "error_max_budget_usd"
        case _:
            subtype = "error_during_execution"
    return Outcome(subtype, error.exit_code, str(error))


INTERRUPTED = Outcome("error_during_execution", EXIT_INTERRUPTED, "interrupted")
