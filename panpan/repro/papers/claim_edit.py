"""One claim as a text that a person edits, and what they saved back into its file, comments of others kept."""

from typing import Any

from panpan.errors import ConfigError
from panpan.repro.claims.claim import Claim
from panpan.repro.claims.claims_file import ClaimsFile, claim_text, parse_claims, with_changes

_HELP = """\
# One claim of claims.toml. Save and leave the editor; panpan asks about it again.
# tolerance = { absolute = 0.01 }, { relative = 0.01 }, { runs = 5 } or "exact"; docs/reproduction.md has all keys.
"""


def text_to_edit(claim: Claim) -> str:
    """Return the claim with a line of help."""
    return f"{_HELP}{claim_text(claim)}"


def edited_file(file: ClaimsFile, claim: Claim, saved: str) -> bytes | str:
    """Return the file with the claim as it was saved, or a sentence that says why that cannot be.

    Args:
        file: The claims.toml.
        claim: The claim before.
        saved: The text that the user saved.
    """
    try:
        claims = parse_claims(saved.encode()).claim
        if len(claims) != 1:
            return f"one [[claim]] is edited at a time, and this has {len(claims)}; keep one"
        return with_changes(file.data, {claim.id: _changes(claim, claims[0])})
    except ConfigError as error:
        return " ".join(str(error).split())


def _changes(old: Claim, new: Claim) -> dict[str, Any]:
    """Return the new values by key; None for keys that are gone."""
    before, after = _values(old), _values(new)
    gone = dict.fromkeys(key for key in before if key not in after)
    return gone | {key: _on_one_line(value) for key, value in after.items() if value != before.get(key)}


def _values(claim: Claim) -> dict[str, Any]:
    values = claim.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    return {key: _without_none(value) for key, value in values.items()}


def _without_none(value: Any) -> Any:
    return {key: one for key, one in value.items() if one is not None} if isinstance(value, dict) else value


def _on_one_line(value: Any) -> Any:
    """Return a table as one that stands on the line of its key."""
    import tomlkit

    if not isinstance(value, dict):
        return value
    table = tomlkit.inline_table()
    table.update({key: _on_one_line(one) for key, one in value.items()})
    return table
