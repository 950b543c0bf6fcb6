"""Keeps the memory files together below a size, and says visibly what was cut."""

from collections.abc import Sequence
from dataclasses import replace

from panpan.capabilities.project_context.memory_loader import MemorySection

MAX_MEMORY_BYTES = 32 * 1024
"""Bytes of UTF-8 for all memory files together, as in Codex."""


def fitted(
    sections: Sequence[MemorySection], *, max_bytes: int = MAX_MEMORY_BYTES
) -> tuple[list[MemorySection], list[str]]:
    """Return the sections that fit, in their order, and a warning for each that was cut or left out.

    The nearest to the work are kept first, and among those of one folder the first.
    """
    kept: dict[int, MemorySection] = {}
    warnings: dict[int, str] = {}
    left = max_bytes
    for number in sorted(range(len(sections)), key=lambda number: (-sections[number].closeness, number)):
        section = sections[number]
        data = section.text.encode(errors="replace")
        if len(data) > left:
            text = data[:left].decode(errors="ignore")
            note = f"[cut: {left:,} of {len(data):,} bytes are shown; read {section.path} for the rest]"
            section = replace(section, text=f"{text}\n{note}" if text else note)
            warnings[number] = (
                f"{section.path} was cut: the files with rules for agents are larger than {max_bytes:,} bytes together"
            )
        kept[number] = section
        left -= min(left, len(data))
    return [kept[number] for number in sorted(kept)], [warnings[number] for number in sorted(warnings)]
