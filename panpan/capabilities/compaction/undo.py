"""Takes a compaction back: requests hold again what they held before it, and what was said since.

It is one more compaction, so that nothing of the log is lost and it can be made shorter again.
"""

from dataclasses import replace

from panpan.capabilities.compaction.limits import Limits
from panpan.capabilities.compaction.situation import Situation
from panpan.core.conversation import Conversation, compacted
from panpan.types.compaction import Compaction, CompactionReport


def undone(conversation: Conversation) -> Compaction | None:
    """Return what takes the newest compaction back that was not taken back yet; None where there is none."""
    in_force: list[Compaction] = []
    for compaction in conversation.compactions:
        if compaction.trigger != "undo":
            in_force.append(compaction)
        elif in_force:
            in_force.pop()
    if not in_force or not conversation.messages:
        return None
    before = in_force[-2] if len(in_force) > 1 else None
    situation = Situation(conversation, Limits(0, 0), "undo")
    undo = replace(
        situation.present,
        pinned=before.pinned if before is not None else (),
        added=before.added if before is not None else (),
        kept_from=before.kept_from if before is not None else None,
        notes=before.notes if before is not None else {},
    )
    sent = compacted(situation.messages, undo)
    assert sent is not None, "it was made for these messages"
    older = len(undo.pinned) + len(undo.added)
    report = CompactionReport(kept=len(sent) - older, pinned=len(undo.pinned), outputs=len(undo.notes))
    return replace(undo, tokens_after=situation.size.of_request(sent), report=report)
