"""`claims.toml`: mistakes are one sentence with line, key and correction, and changes keep what people wrote."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.errors import ConfigError
from panpan.repro.claims.claim import Claim, Claims, Data, Extract, Needs, Paper, Tolerance
from panpan.repro.claims.claims_file import (
    claims_text,
    load_claims,
    parse_claims,
    save_claims,
    with_changes,
    with_claims,
    without_claims,
)
from tests.repro.claim_runs import claim_of

FILE = """\
# Claims of the toys paper.
[paper]
title = "Toys"   # short

[[claim]]
id = "a"
value = "3.50"   # table 1
command = "make"
extract = { output = "a: (.*)" }

# the second
[[claim]]
id = "b"
value = 4
[claim.needs]
gpus = 1
"""


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_claims(text.encode())
    return str(caught.value)


def test_claims_are_read_with_the_digits_that_were_written(tmp_path: Path) -> None:
    (tmp_path / "claims.toml").write_text(FILE)
    file = load_claims(tmp_path)
    assert [(claim.id, claim.value) for claim in file.claims.claim] == [("a", "3.50"), ("b", "4")]
    assert file.claims.claim[1].needs.gpus == 1
    assert file.files.content == {"claims.toml": FILE.encode()}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("version = 2", "claims.toml:1: version is unknown; write 1"),
        ("[paper]\ntitel = 'x'", "claims.toml:2: there is no key paper.titel; did you mean paper.title?"),
        ("[[claim]]\nid = 'a'\nvalu = '3'", "claims.toml:3: there is no key claim.valu; did you mean claim.value?"),
        ("[[claim]]\nid = 'a'\n\n[[claim]]\nid = 'b'\nvalue = true", "claims.toml:6: claim 2: value is true or false"),
        ("[[claim]]\nid = 'a'\n[[claim]]\nvalue = '3'", "claims.toml:3: claim 2: id is missing; add it"),
        ("[[claim]]\nid = 'a'\n[claim.needs]\ngpus = 'two'", "claims.toml:4: claim 1: needs.gpus is a text; write a"),
        ("[[claim]]\nid = 'a'\n# x\n[[claim]]\n# y\nid = 'a'", "claims.toml:6: claim 2: id is that of claim 1, too"),
        ("claim = [{id = 'a'}, \n{id = 'a'}]", "claims.toml:2: claim 2: id is that of claim 1, too"),
        ("[[claim]]\nid = 'a'\nextract = {}", "claims.toml:3: claim 1: extract has no place; write one of output"),
        ("[[claim]]\nid = 'a'\nextract = {json = 'a', output = '(.)'}", "claim 1: extract has output and json; write"),
        ("[[claim]]\nid = 'a'\nextract = {json = '../a'}", "extract.json is ../a, which may lie outside; write a path"),
        ("[[claim]]\nid = 'a'\nextract = {csv = 'a'}", "claims.toml:3: claim 1: extract has csv without column; add"),
        ("[[claim]]\nid = 'a'\nextract = {output = 'a'}", "extract.output has 0 groups; put ( ) around the number"),
        ("[[claim]]\nid = 'a'\nextract = {output = '(a'}", "extract.output is no pattern: missing ), unterminated"),
        ("[[claim]]\nid = 'a'\nextract = {output = '(a)', at = 'x'}", "extract.at is for json; remove it, or"),
        ("[[claim]]\nid = 'a'\nextract = {output = '(a)', scale = 0}", "extract.scale is 0; write a factor"),
        ("[[claim]]\nid = 'a'\ntolerance = {absolute = 1, exact = true}", "tolerance.exact contradicts absolute"),
        ("[[claim]]\nid = 'a'\ntolerance = 0.1", "claim 1: tolerance is a number; write { absolute = 0.1 } or"),
        ("[[claim]]\nid = 'a'\ntolerance = {absolute = -1}", "claim 1: tolerance.absolute is too small; write"),
        ("[[claim]]\nid = 'a'\nseeds = [1, 2]\ncommand = 'make'", "claim 1: seeds is for commands with {seed}; write"),
        ("[[claim]]\nid = 'a'\nseeds = [1, 1]\ncommand = 'x {seed}'", "claim 1: seeds names a seed twice; remove one"),
        ('[[claim]]\nid = "a\\u001b"', "claim 1: id has a character that cannot be seen; remove it"),
        ("[[data]]\npath = '/etc/passwd'", "claims.toml:2: data 1: path is /etc/passwd, which may lie outside"),
        ("[[data]]\npath = 'd'\nsha256 = 'x'", "claims.toml:3: data 1: sha256"),
        ("[environment]\npython = '3.12'", 'claims.toml:2: environment.python is for environments of uv; set'),
        ("[[claim]]\nid = ", "claims.toml:2: is not valid TOML"),
    ],
)  # fmt: skip
def test_mistake_in_claims_is_named_with_its_line(text: str, sentence: str) -> None:
    assert sentence in refusal(text)


def test_folder_without_claims_is_helped_to_begin(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"has no claims.toml; write one, or let panpan repro extract propose"):
        load_claims(tmp_path)
    (tmp_path / "claims.toml").mkdir()
    with pytest.raises(ConfigError, match=r"claims.toml cannot be read: .*; change or remove the file"):
        load_claims(tmp_path)


def test_changes_keep_comments_and_all_else() -> None:
    new = with_changes(FILE.encode(), {"a": {"confirmed": True, "value": "3.6"}, "b": {"extract": {"json": "m.json"}}})
    lines = new.decode().splitlines()
    assert [line for line in FILE.splitlines() if line not in lines] == ['value = "3.50"   # table 1']
    assert 'value = "3.6"   # table 1' in lines
    claims = parse_claims(new).claim
    assert (claims[0].confirmed, claims[0].value) == (True, "3.6")
    assert claims[1].extract == Extract.model_validate({"json": "m.json"})
    assert with_changes(FILE.encode(), {}) == FILE.encode()
    assert parse_claims(with_changes(new, {"b": {"extract": None}})).claim[1].extract is None


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"c": {"value": "3"}}, "has no claim c"),
        ({"a": {"valu": "3"}}, "there is no key"),
        ({"a": {"value": []}}, "claim 1: value is a list"),
    ],
)
def test_change_that_is_wrong_changes_nothing(changes: dict[str, dict[str, object]], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        with_changes(FILE.encode(), changes)


def test_claims_are_added_behind_what_is_there() -> None:
    new = with_claims(FILE.encode(), [claim_of("5", id="c")])
    assert new.startswith(FILE.encode())
    assert parse_claims(new).claim[-1] == claim_of("5", id="c")
    with pytest.raises(ConfigError, match="has a claim a; choose another id"):
        with_claims(FILE.encode(), [claim_of("5", id="a")])


def test_file_that_changed_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    save_claims(path, FILE.encode(), old=None)
    with pytest.raises(ConfigError, match="has changed meanwhile; nothing was written"):
        save_claims(path, b"", old=None)
    path.write_text(f"{FILE}# a person was here\n")
    with pytest.raises(ConfigError, match="has changed meanwhile"):
        save_claims(path, b"", old=FILE.encode())
    save_claims(path, FILE.encode(), old=path.read_bytes())
    assert path.read_bytes() == FILE.encode()


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LABELS = st.text("abc-/ '\"\\é", min_size=1, max_size=8).filter(lambda text: text == text.strip())
SCALARS = st.floats(0.001, 1e9)
EXTRACTS = st.one_of(
    st.builds(lambda scale: {"output": r"x: '?(\d+)\s", "scale": scale}, SCALARS),
    st.builds(lambda at: {"json": "m.json", "at": at}, LABELS),
    st.builds(lambda key, column: {"csv": "t.csv", "where": {key: "é\n"}, "column": column}, WORDS, LABELS),
).map(Extract.model_validate)
CLAIM_LISTS = st.lists(
    st.builds(
        Claim,
        id=LABELS,
        value=WORDS,
        quote=WORDS,
        spread=st.none() | SCALARS,
        tolerance=st.sampled_from([Tolerance(), Tolerance(exact=True), Tolerance(absolute=1e-7), Tolerance(runs=5)]),
        command=st.sampled_from(["", "python run.py --seed {seed}"]),
        extract=st.none() | EXTRACTS,
        seed=st.none() | st.integers(-(10**6), 10**12),
        needs=st.builds(Needs, gpus=st.integers(0, 3), programs=st.lists(LABELS, max_size=2).map(tuple)),
        page=st.none() | st.integers(0, 9),
        confirmed=st.booleans(),
    ),
    max_size=3,
    unique_by=lambda claim: claim.id,
)


@given(CLAIM_LISTS, WORDS)
def test_claims_survive_being_written(claims: list[Claim], title: str) -> None:
    whole = Claims(paper=Paper(title=title), data=(Data(path="d"),), claim=tuple(claims))
    assert parse_claims(claims_text(whole).encode()) == whole


@given(CLAIM_LISTS)
def test_claims_survive_being_added(claims: list[Claim]) -> None:
    begun = b"# mine\n[paper]\ntitle = 'x'"
    assert parse_claims(with_claims(begun, claims)).claim == tuple(claims)


REMOVING = b"""\
# top
[paper]
title = "x"

# about a
[[claim]]
id = "a"    # first
value = "1"
[claim.extract]
json = "m.json"

# about b
[[claim]]
id = "b"
value = "2"

# end
"""


def test_removed_claim_leaves_all_comments_between() -> None:
    left = without_claims(REMOVING, ["a"])
    assert left == b'# top\n[paper]\ntitle = "x"\n\n# about a\n\n# about b\n[[claim]]\nid = "b"\nvalue = "2"\n\n# end\n'
    assert without_claims(left, ["b"]).endswith(b"# about b\n\n# end\n")
    assert without_claims(REMOVING, []) == REMOVING


def test_removed_claim_has_to_be_there() -> None:
    with pytest.raises(ConfigError, match=r"claims\.toml has no claim c"):
        without_claims(REMOVING, ["c"])


def test_claims_on_one_line_are_not_removed() -> None:
    with pytest.raises(ConfigError, match="change it by hand"):
        without_claims(b'claim = [{ id = "a", value = "1" }]', ["a"])
