import hashlib
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.capabilities.datasets.conftest import URL, Place
from tests.fakes.file_server import repository
from tests.fakes.outside import PUBLIC

WORDS = b"a,b\n" * 1000
SHA = hashlib.sha256(WORDS).hexdigest()
HUB = "hf://datasets/lab/words"
API = "/api/datasets/lab/words/revision/main?blobs=true"
RESOLVED = f"/datasets/lab/words/resolve/{'a' * 40}/"


async def test_prepare_describes_and_downloads_nothing(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.files.headers["Content-Type"] = "text/csv"
    async with place.served():
        text = (await place.call("prepare", source=URL)).text

    for said in (
        "size: 4 kB (4,000 bytes)",
        "can go on after a cut",
        "checksum: not published",
        "licence: not told",
        "curl -fL",
    ):
        assert said in text
    assert "about 1 s at 10 MB a second" in text
    assert [asked for asked, _ in place.files.asked] == ["HEAD /numbers.csv"]
    assert place.tree() == {}


async def test_download_follows_the_plan_and_reports_the_checksum(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    async with place.served():
        plan = await place.prepare()
        output = await place.call("download", plan=plan)

    assert place.tree() == {"data/numbers.csv": WORDS}
    assert output.text == f"numbers.csv: 4 kB, SHA-256 {SHA} (nobody says what it should be)"


async def test_download_needs_a_plan(place: Place) -> None:
    async with place.served():
        assert "call prepare first" in await place.refusal("download", plan="12345678")
    assert place.files.asked == []


async def test_question_names_exactly_the_download(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    async with place.served():
        plan = await place.prepare(folder="raw")
        args = place.tool.input_model.model_validate({"action": "download", "plan": plan})
        details = await place.tool.describe(args, place.ctx)

    assert place.tool.question(args) == "Download numbers.csv from http://data.example.org (4 kB)?"
    assert details.startswith("numbers.csv from http://data.example.org into raw; size: 4 kB (4,000 bytes); disk: ")
    told = await place.tool.effects(args, place.ctx)
    assert told.writes == [str(place.root / "raw"), str(place.root / "raw" / "numbers.csv")]
    assert told.is_for_once


@pytest.mark.parametrize("knows_head", [True, False])
@pytest.mark.parametrize("tells_size", [True, False])
async def test_terse_server_is_asked_for_the_first_byte(place: Place, knows_head: bool, tells_size: bool) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.files.knows_head, place.files.tells_size, place.files.sends_parts = knows_head, tells_size, False
    async with place.served():
        await place.call("download", plan=await place.prepare())

    assert place.tree() == {"data/numbers.csv": WORDS}


@pytest.mark.parametrize("sends_parts", [True, False])
@pytest.mark.parametrize("content", [WORDS, b""])
async def test_server_with_an_empty_head_is_asked_for_the_first_byte(
    place: Place, sends_parts: bool, content: bytes
) -> None:
    place.files.contents["/numbers.csv"] = content
    place.files.tells_size_to_head, place.files.sends_parts = False, sends_parts
    async with place.served():
        await place.call("download", plan=await place.prepare())

    assert place.tree() == {"data/numbers.csv": content}


async def test_question_says_that_an_encoded_file_stays_encoded(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.files.headers["Content-Encoding"] = "gzip"
    async with place.served():
        args = place.tool.input_model(action="download", plan=await place.prepare())

    assert "its server sends it packed with gzip, and so it stays" in await place.tool.describe(args, place.ctx)


async def test_impossible_size_is_none(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.files.knows_head, place.files.status = False, 206
    place.files.headers["Content-Range"] = f"bytes 0-0/{'9' * 5000}"
    place.files.sends_parts = False
    async with place.served():
        assert "its server answers 206" in await place.refusal("prepare", source=URL)


@pytest.mark.parametrize("can_resume", [True, False])
async def test_download_resumes_after_cuts_or_starts_again(place: Place, can_resume: bool) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.files.sends_parts = can_resume
    place.files.cut_after = [1000, 500, 2000]
    async with place.served():
        await place.call("download", plan=await place.prepare())

    assert place.tree() == {"data/numbers.csv": WORDS}
    ranges = [headers.get(b"range") for asked, headers in place.files.asked if asked.startswith("GET")]
    assert ranges == ([None, b"bytes=1000-", b"bytes=1500-", b"bytes=3500-"] if can_resume else [None] * 4)


async def test_killed_download_is_resumed(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.files.cut_after = [1234]
    place.files.refusals = []
    async with place.served():
        plan = await place.prepare()
        place.files.before = lambda: place.files.refusals.append(503) if len(place.files.asked) > 2 else None
        assert "1.23 kB of it are kept" in await place.refusal("download", plan=plan)
        place.files.before, place.files.refusals = lambda: None, []
        text = (await place.call("prepare", source=URL)).text
        await place.call("download", plan=text[5:13])

    assert "goes on behind the 1.23 kB" in text
    assert place.tree() == {"data/numbers.csv": WORDS}


async def test_download_refuses_a_file_changed_since_prepare(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    async with place.served():
        plan = await place.prepare()
        place.files.contents["/numbers.csv"], place.files.etag = WORDS * 2, '"two"'
        said = await place.refusal("download", plan=plan)

    assert "has changed since the download was prepared: it has 8,000 bytes now; prepare it again" in said
    assert "data/numbers.csv" not in place.tree()


async def test_download_refuses_a_file_changed_in_the_middle(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.files.cut_after = [1000]

    def change() -> None:
        if len(place.files.asked) == 3:
            place.files.contents["/numbers.csv"], place.files.etag = WORDS[::-1], '"two"'

    place.files.before = change
    async with place.served():
        said = await place.refusal("download", plan=await place.prepare())

    assert "prepare it again" in said
    assert "data/numbers.csv" not in place.tree()


async def test_download_with_a_wrong_checksum_is_discarded(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    async with place.served():
        said = await place.refusal("download", plan=await place.prepare(sha256="0" * 64))

    assert "had a wrong checksum and was deleted" in said
    assert place.tree() == {}


async def test_existing_file_is_never_replaced(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    async with place.served():
        plan = await place.prepare()
        (place.root / "data").mkdir()
        (place.root / "data" / "numbers.csv").write_text("mine")
        before = await place.refusal("prepare", source=URL)
        during = await place.refusal("download", plan=plan)

    assert "exists and may be another file" in before
    assert "was created meanwhile" in during
    assert place.tree()["data/numbers.csv"] == b"mine"


async def test_existing_file_with_the_right_checksum_is_kept(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    async with place.served():
        await place.call("download", plan=await place.prepare(sha256=SHA))
        output = await place.call("prepare", source=URL, sha256=SHA.upper())

    assert output.text == "nothing to download: all of it is in data, with the right checksums"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("http://data.example.org/none.csv", "answers 404, which has no such file"),
        ("http://inside.example.org/x", "not a public address"),
        ("http://127.0.0.1/x", "not a public address"),
        ("file:///etc/passwd", "only http and https"),
        ("ftp://data.example.org/x", "only http and https"),
        ("hf://spaces/a/b", "names no repository"),
        ("hf://datasets/../../x", "names no repository"),
        ("", "prepare needs source"),
    ],
)
async def test_unavailable_source_is_reported(place: Place, source: str, reason: str) -> None:
    async with place.served():
        assert reason in await place.refusal("prepare", source=source)
    assert place.tree() == {}


async def test_redirect_into_the_local_network_is_refused(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    async with place.served():
        plan = await place.prepare()
        place.network.names["data.example.org"] = ["192.168.0.1"]
        said = await place.refusal("download", plan=plan)

    assert "not a public address" in said
    assert place.tree() == {}


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ('attachment; filename="../../../.bashrc"', "data/bashrc"),
        ("attachment; filename*=UTF-8''%E6%95%B0.csv", "data/数.csv"),
        ('attachment; filename="..\\\\..\\\\evil.exe"', "data/evil.exe"),
        ('attachment; filename=".."', "data/numbers.csv"),
        ('attachment; filename="a b;c.csv"', "data/a b_c.csv"),
    ],
)
async def test_name_of_the_server_stays_in_the_folder(place: Place, name: str, path: str) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.files.headers["Content-Disposition"] = name
    async with place.served():
        await place.call("download", plan=await place.prepare())

    assert place.tree() == {path: WORDS}


@pytest.mark.parametrize("name", ["数" * 120, "n" * 400, f"{'n' * 100}.{'b' * 195}"])
async def test_name_of_any_length_becomes_a_valid_one(place: Place, name: str) -> None:
    path = f"/{quote(name)}.csv"
    place.files.contents[path] = WORDS
    async with place.served():
        await place.call("download", plan=await place.prepare(f"http://data.example.org{path}"))

    ((made, content),) = place.tree().items()
    assert made.startswith(f"data/{name[-1]}")
    assert made.endswith(f"{name[-1]}.csv")
    assert content == WORDS


async def test_oversized_download_is_refused_beforehand(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.settings = {"data": {"max_gb": 0.000001}}
    async with place.served():
        assert "data.max_gb lets 1 kB come at once" in await place.refusal("prepare", source=URL)


async def test_download_that_outgrows_the_limit_is_ended(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.files.tells_size = place.files.sends_parts = False
    place.settings = {"data": {"max_gb": 0.000001}}
    async with place.served():
        assert "sends more than 1 kB" in await place.refusal("download", plan=await place.prepare())


async def test_too_slow_download_is_given_up_and_kept(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.files.cut_after = [100]
    async with place.served():
        plan = await place.prepare()
        place.clock = count(0, 301).__next__  # each look at it is five minutes later
        refused = await place.refusal("download", plan=plan)

    assert "it comes too slowly: 100 bytes in 301 s; what came is kept" in refused
    assert WORDS[:100] in place.tree().values()


async def test_blocked_hosts_are_not_asked(place: Place) -> None:
    place.settings = {"web": {"blocked_domains": ["example.org"]}}
    async with place.served():
        assert "data.example.org is blocked by the settings" in await place.refusal("prepare", source=URL)
    assert place.files.asked == []


FILES = {"README.md": b"# Words", "train/0.parquet": b"p" * 5000, "train/1.parquet": b"q" * 300}


class TestHub:
    async def at_hub(self, place: Place, **more: object) -> None:
        place.settings |= {"data": {"hub": "http://data.example.org"}}
        place.files.contents[API] = repository(FILES, large=("train/0.parquet",), **more)
        place.files.contents |= {RESOLVED + path: data for path, data in FILES.items()}

    async def test_repository_is_downloaded_and_checked_file_by_file(self, place: Place) -> None:
        await self.at_hub(place)
        async with place.served():
            text = (await place.call("prepare", source=HUB)).text
            output = await place.call("download", plan=text[5:13])

        assert "licence: cc-by-4.0" in text
        assert "files: README.md (7 bytes), train/0.parquet (5 kB), train/1.parquet (300 bytes)" in text
        assert place.tree() == {f"data/{path}": data for path, data in FILES.items()}
        assert output.text.count("(checksum as expected)") == 3

    async def test_repository_files_can_be_chosen(self, place: Place) -> None:
        await self.at_hub(place)
        async with place.served():
            await place.call("download", plan=await place.prepare(HUB, files=["train/1*"], folder="x"))

        assert place.tree() == {"x/train/1.parquet": b"q" * 300}

    async def test_file_with_a_wrong_git_hash_is_discarded(self, place: Place) -> None:
        await self.at_hub(place)
        place.files.contents[RESOLVED + "README.md"] = b"# Sword"
        async with place.served():
            said = await place.refusal("download", plan=await place.prepare(HUB, files=["README.md"]))

        assert "a wrong checksum" in said
        assert place.tree() == {}

    async def test_file_that_shrank_is_downloaded_again(self, place: Place) -> None:
        readme, of_no_size = RESOLVED + "README.md", [{"rfilename": "README.md", "blobId": "0" * 40}]
        await self.at_hub(place, siblings=of_no_size)

        def shorten() -> None:
            if not place.files.cut_after:
                place.files.contents[readme] = b"# Wor"

        async with place.served():
            plan = await place.prepare(HUB)
            place.files.before, place.files.cut_after = shorten, [5]
            await place.call("download", plan=plan)

        assert place.tree() == {"data/README.md": b"# Wor"}

    async def test_token_goes_to_the_hub_alone(self, place: Place) -> None:
        await self.at_hub(place)
        place.env["HF_TOKEN"] = "hf_secret0123456789"
        place.files.contents["/numbers.csv"] = WORDS
        async with place.served():
            await place.call("download", plan=await place.prepare(HUB, files=["README.md"]))
            await place.call("download", plan=await place.prepare())

        assert [b"authorization" in headers for _, headers in place.files.asked] == [True, True, False, False]

    @pytest.mark.parametrize("token", ["hf_secret0123456789\n", " hf_secret0123456789\r\n"])
    async def test_token_is_stripped_of_blanks(self, place: Place, token: str) -> None:
        await self.at_hub(place)
        place.env["HF_TOKEN"] = token
        async with place.served():
            await place.prepare(HUB)

        assert [headers[b"authorization"] for _, headers in place.files.asked] == [b"Bearer hf_secret0123456789"]

    async def test_token_that_cannot_be_sent_is_in_no_error(self, place: Place) -> None:
        await self.at_hub(place)
        place.env["HF_TOKEN"] = "hf_secret\n0123456789"
        async with place.served():
            said = await place.refusal("prepare", source=HUB)

        assert "cannot be asked" in said
        assert "secret" not in said

    async def test_licence_of_any_length_stays_short(self, place: Place) -> None:
        await self.at_hub(place, cardData={"license": ["pay me"] * 100_000})
        async with place.served():
            text = (await place.call("prepare", source=HUB)).text

        assert len(text) < 2_000

    @pytest.mark.parametrize("path", ["../out", "/etc/x", "a/../../b", "a//b", ".git/config", ".env", "a\0b"])
    async def test_leading_out_or_protected_name_refuses_the_whole(self, place: Place, path: str) -> None:
        place.settings = {"data": {"hub": "http://data.example.org"}}
        place.files.contents[API] = repository({path: b"x", "fine": b"y"})
        async with place.served():
            await place.refusal("prepare", source=HUB)
        assert place.tree() == {}

    @pytest.mark.parametrize("path", [".git.zip", ".vscode.tar.gz", "x/.husky.zip", "gradle/wrapper.tgz"])
    async def test_archive_into_a_protected_folder_is_refused_beforehand(self, place: Place, path: str) -> None:
        place.settings = {"data": {"hub": "http://data.example.org"}}
        place.files.contents[API] = repository({path: b"x", "fine": b"y"})
        async with place.served():
            said = await place.refusal("prepare", source=HUB, folder=".", unpack=True)

        assert "is protected" in said
        assert place.tree() == {}

    async def test_archive_through_a_link_is_refused(self, place: Place) -> None:
        await self.at_hub(place)
        place.files.contents[API] = repository({"words.zip": b"x"})
        (place.root / "data").mkdir()
        (place.root / "data" / "words").symlink_to(place.root / "elsewhere")
        async with place.served():
            said = await place.refusal("prepare", source=HUB, unpack=True)

        assert "a link there leads elsewhere" in said

    async def test_permission_gate_learns_every_written_place(self, place: Place) -> None:
        files = {f"{number:03}.csv": b"x" for number in range(250)} | {"words.zip": b"y"}
        place.settings = {"data": {"hub": "http://data.example.org"}}
        place.files.contents[API] = repository(files)
        async with place.served():
            plan = await place.prepare(HUB, unpack=True)
            args = place.tool.input_model(action="download", plan=plan)
            told = await place.tool.effects(args, place.ctx)

        data = place.root / "data"
        wanted = {str(data), str(data / "words"), *(str(data / path) for path in files)}
        assert sorted(told.writes) == sorted(wanted)

    async def test_folder_linked_elsewhere_is_refused(self, place: Place) -> None:
        await self.at_hub(place)
        outside = place.root.parent / "outside"
        outside.mkdir()
        (place.root / "data").mkdir()
        (place.root / "data" / "train").symlink_to(outside)
        async with place.served():
            await place.refusal("prepare", source=HUB)
        assert list(outside.iterdir()) == []

    @pytest.mark.parametrize(
        ("body", "reason"),
        [(b"{}", "cannot be read"), (b"no json", "cannot be read"), (repository({}), "has no file")],
    )
    async def test_wrong_answer_of_the_hub_is_reported(self, place: Place, body: bytes, reason: str) -> None:
        place.settings = {"data": {"hub": "http://data.example.org"}}
        place.files.contents[API] = body
        async with place.served():
            assert reason in await place.refusal("prepare", source=HUB)


@given(size=st.integers(0, 5000), cuts=st.lists(st.integers(0, 4000), max_size=4), parts=st.booleans())
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
async def test_file_is_complete_or_absent_after_any_cuts(
    tmp_path_factory: pytest.TempPathFactory, size: int, cuts: list[int], parts: bool
) -> None:
    place = Place(tmp_path_factory.mktemp("cuts"))
    content = bytes(number % 251 for number in range(size))
    place.files.contents["/numbers.csv"], place.files.cut_after, place.files.sends_parts = content, cuts, parts
    async with place.served():
        await place.call("download", plan=await place.prepare())

    assert place.tree() == {"data/numbers.csv": content}


async def test_download_without_an_id_takes_the_approved_newest_plan(
    place: Place,
) -> None:
    place.files.contents |= {"/numbers.csv": WORDS, "/other.csv": b"other"}
    async with place.served():
        await place.prepare()
        args = place.tool.input_model.model_validate({"action": "download"})
        question = await place.tool.describe(args, place.ctx)
        await place.prepare("http://data.example.org/other.csv")
        said = await place.refusal("download")
        await place.call("download")

    assert "numbers.csv" in question
    assert "another download was prepared since the user agreed" in said
    assert place.tree() == {"data/other.csv": b"other"}


async def test_partial_answer_is_not_taken_for_the_whole(place: Place) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.files.knows_head = place.files.tells_size = place.files.sends_parts = False
    async with place.served():
        plan = await place.prepare()
        place.files.before = lambda: place.files.contents.update({"/numbers.csv": b"some"})
        place.files.headers = {"Content-Range": f"bytes 0-3/{len(WORDS)}"}
        place.files.refusals = []
        place.files.status = 206
        said = await place.refusal("download", plan=plan)

    assert "sent less than there is" in said
    assert "data/numbers.csv" not in place.tree()


@pytest.mark.parametrize("sibling", [{"size": 10**400}, {"rfilename": "a\nb"}, {"rfilename": "x" * 240}])
async def test_impossible_metadata_of_a_hub_is_refused_in_words(place: Place, sibling: dict[str, object]) -> None:
    told = {"rfilename": "a", "size": 1} | sibling
    place.files.contents["/api/datasets/lab/words/revision/main?blobs=true"] = repository({}, siblings=[told])
    place.settings = {"data": {"hub": "http://data.example.org"}}
    async with place.served():
        said = await place.refusal("prepare", source="hf://datasets/lab/words")

    assert "cannot be read" in said or "leads elsewhere" in said


async def test_question_names_the_host_of_a_redirect(place: Place) -> None:
    place.files.contents["/there.csv"] = WORDS
    place.files.redirects["/numbers.csv"] = "http://cdn.example.org/there.csv"
    place.network.names["cdn.example.org"] = place.network.names["data.example.org"]
    async with place.served():
        args = place.tool.input_model.model_validate({"action": "download", "plan": await place.prepare()})
        said = await place.tool.describe(args, place.ctx)

    assert "from http://data.example.org, http://cdn.example.org into" in said


async def test_folder_swapped_for_a_link_leads_no_file_out(place: Place, tmp_path: Path) -> None:
    files = {"one.txt": b"1" * 100, "two.txt": b"2" * 100, "sub/three.txt": b"3" * 100}
    place.files.contents |= {f"/datasets/lab/words/resolve/{'a' * 40}/{name}": data for name, data in files.items()}
    place.files.contents["/api/datasets/lab/words/revision/main?blobs=true"] = repository(files)
    place.settings = {"data": {"hub": "http://data.example.org"}}
    (tmp_path / "outside").mkdir()

    def swap() -> None:
        if not (place.root / "data").is_symlink():
            (place.root / "data").rename(place.root / "moved")
            (place.root / "data").symlink_to(tmp_path / "outside")

    async with place.served():
        plan = await place.prepare("hf://datasets/lab/words")
        place.files.before = swap
        said = await place.refusal("download", plan=plan)

    assert "is it a link or no folder by now?" in said
    assert list((tmp_path / "outside").iterdir()) == []
    assert (place.root / "moved" / "one.txt").read_bytes() == files["one.txt"]


async def test_plan_that_leads_to_another_host_is_another_plan(place: Place) -> None:
    place.files.contents = {"/numbers.csv": WORDS, "/there/numbers.csv": WORDS}
    place.network.names["cdn.example.net"] = [PUBLIC]
    async with place.served():
        before = await place.prepare()
        place.files.redirects["/numbers.csv"] = "http://cdn.example.net/there/numbers.csv"
        after = await place.prepare()

    assert before != after


async def test_plan_names_hosts_in_their_encoded_letters(place: Place) -> None:
    place.files.contents["/x.csv"] = WORDS
    place.network.names["xn--pple-43d.com"] = place.network.names["data.example.org"]
    async with place.served():
        plan = await place.prepare("http://\u0430pple.com/x.csv")
        args = place.tool.input_model.model_validate({"action": "download", "plan": plan})
        said = await place.tool.describe(args, place.ctx)

    assert "from http://xn--pple-43d.com into" in said
    assert (await place.tool.effects(args, place.ctx)).urls == ("http://xn--pple-43d.com",)


@pytest.mark.parametrize("etag", ['"\u00e9"', f'"{"e" * 100_000}"'])
async def test_unsendable_validator_is_not_used(place: Place, etag: str) -> None:
    place.files.contents["/numbers.csv"] = WORDS
    place.files.cut_after = [100]
    place.files.etag = etag
    async with place.served():
        await place.call("download", plan=await place.prepare())

    assert place.tree() == {"data/numbers.csv": WORDS}
