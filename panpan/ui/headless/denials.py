"""What a run in which nobody is asked says at its end of forbidden calls, and how they could be allowed."""

from collections.abc import Iterator, Mapping

from panpan.types.permission import AskedOf
from panpan.ui.headless.face import TurnSummary

_HOW: Mapping[AskedOf, str] = {
    "nobody": "a rule or the mode forbids them, as their results say",
    "anybody": (
        "with -p or a pipe nobody is asked: say what is allowed (--allowedTools, --yes, --permission-mode), or run "
        "panpan without -p"
    ),
    "a person": (
        "no flag allows these; for leaving the sandbox the settings sandbox.domains and sandbox.outside do, else run "
        "panpan without -p, which asks"
    ),
}


def denials_told(summary: TurnSummary) -> Iterator[str]:
    """Yield a line for each way in which calls were forbidden."""
    for asked_of, how in _HOW.items():
        uses = [use for use in summary.denials if summary.asked_of[use.id] == asked_of]
        if uses:
            names = ", ".join(dict.fromkeys(use.name for use in uses))
            yield f"not allowed, and not run: {len(uses)} of the calls ({names}); {how}"
