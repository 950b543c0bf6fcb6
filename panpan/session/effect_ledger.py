"""The ledger of effects, kept in the session's log."""

from collections.abc import Mapping, Sequence
from typing import Any

import anyio.to_thread

from panpan.core.hooks import ToolCall
from panpan.core.tool_call import digest_of
from panpan.session.log import SessionLog
from panpan.session.record_kinds import CallStartedRecord, FileChangesRecord, RecordedChange
from panpan.types.tool import IntendedChange


class EffectLedger:
    """Writes what calls are about to do into a log, and waits until it is on disk.

    Args:
        log: The session's.
    """

    def __init__(self, log: SessionLog) -> None:
        self._log = log

    async def call_starts(self, call: ToolCall) -> None:
        tool = call.tool
        record = CallStartedRecord(
            tool_use_id=call.tool_use_id,
            tool=tool.name,
            digest=digest_of(call),
            notes_changes=tool.notes_changes,
            process_mark=call.context.processes.mark,
        )
        await self._keep(record.as_json(), is_awaited=not tool.notes_changes)

    async def files_change(self, tool_use_id: str, changes: Sequence[IntendedChange]) -> None:
        files = [RecordedChange(path=str(one.path), before=one.before, after=one.after) for one in changes]
        await self._keep(FileChangesRecord(tool_use_id=tool_use_id, files=files).as_json(), is_awaited=True)

    async def _keep(self, record: Mapping[str, Any], *, is_awaited: bool) -> None:
        """Write a record; what is not awaited is on disk with the next one that is."""
        self._log.append(record)
        if is_awaited:
            await anyio.to_thread.run_sync(self._log.sync)
