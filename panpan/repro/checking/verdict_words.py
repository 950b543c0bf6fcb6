"""Words of the sentences about numbers."""

from collections.abc import Sequence
from decimal import Decimal

from panpan.repro.checking.evidence import Evidence
from panpan.repro.claims.written_number import WrittenNumber, shown_number

_MOST_SHOWN = 5


def counted(count: int, noun: str) -> str:
    """Return a number with its noun, such as `1 seed` and `3 seeds`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def shown_list(values: Sequence[Decimal], claimed: WrittenNumber) -> str:
    """Return measured numbers for readers, each once; in full where they would look like the claimed one."""
    distinct = sorted(set(values))
    shown = dict.fromkeys(
        f"{value:f}" if (text := shown_number(value, claimed)) == shown_number(claimed.value, claimed)
        and value != claimed.value else text
        for value in distinct
    )  # fmt: skip
    more = len(shown) - _MOST_SHOWN
    return ", ".join(list(shown)[:_MOST_SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def tolerance_words(found: Evidence) -> str:
    """Return the tolerance as the end of a sentence."""
    tolerance, value = found.claim.tolerance, f"{found.claimed.value}"
    if tolerance.exact:
        return f"exactly {value}"
    if tolerance.absolute is not None:
        return f"within {tolerance.absolute:g} of {value}"
    if tolerance.relative is not None:
        return f"within {100 * tolerance.relative:g} % of {value}"
    return f"{value} when rounded to its digits"
