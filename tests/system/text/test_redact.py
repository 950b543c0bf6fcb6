"""Tests of taking secrets and keys out of texts."""

import json
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panpan.system.text.redact import KnownKeys, Redactor, looks_like_key

KEY = "abcabcabcabd"
LONGER = KEY + "-more"


def test_known_keys_are_redacted_everywhere_and_nothing_else() -> None:
    keys = KnownKeys([f" {KEY}\n", "sk-0123456789"])

    text = f"a={KEY} b='sk-0123456789{KEY}' sk-proj-0123456789abcdef abcabcabcab"

    assert keys.redact(text) == "a=[redacted] b='[redacted][redacted]' sk-proj-0123456789abcdef abcabcabcab"


def test_key_that_begins_like_another_is_redacted_whole() -> None:
    assert KnownKeys([KEY, LONGER]).redact(f"{LONGER} {KEY}") == "[redacted] [redacted]"


def test_short_values_are_words_and_stay() -> None:
    assert KnownKeys(["", "ollama", "not-needed"]).redact("ollama is not-needed") == "ollama is not-needed"


@given(
    st.lists(st.sampled_from([KEY, "abc", "ab", "d", "x", "é", "-more", "-mo", "[redacted]"])),
    st.lists(st.integers(0, 200)),
)
def test_redacting_does_not_depend_on_chunks(parts: list[str], cuts: list[int]) -> None:
    text = "".join(parts)
    data = text.encode()
    keys = KnownKeys([KEY, LONGER])
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]

    stream = keys.stream()
    pieces = [stream.feed(data[start:end]) for start, end in pairwise(edges)]

    assert b"".join([*pieces, stream.finish()]).decode() == keys.redact(text)


# Put together here, so that no scanner takes this file for a leak.
BODY = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7c"
KEYS = {
    "OpenAI": f"sk-{BODY}",
    "OpenAI project": f"sk-proj-{BODY}_x-{BODY}",
    "Anthropic": f"sk-ant-api03-{BODY}-{BODY}",
    "GitHub": f"ghp_{BODY}12345678",
    "GitHub app": f"gho_{BODY}12345678",
    "GitHub fine-grained": f"github_pat_{BODY}_{BODY}",
    "GitLab": f"glpat-{BODY}",
    "AWS": "AKIA" + "ABCDEFGHIJKLMNOP",
    "Slack": f"xoxb-1234567890-{BODY}",
    "Google": f"AIza{BODY}-{BODY[:6]}",
    "Hugging Face": f"hf_{BODY}",
    "Groq": f"gsk_{BODY}",
    "Stripe": f"sk_live_{BODY}",
    "npm": f"npm_{BODY}12345678",
    "JWT": f"eyJ{BODY}.eyJ{BODY}.{BODY}",
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
@pytest.mark.parametrize("around", ["{}", "key={}", '{{"key": "{}"}}', "https://x.invalid/?k={}&y=1", "a\n{}\nb"])
def test_keys_of_known_shapes_are_redacted(key: str, around: str) -> None:
    assert Redactor().redact(around.format(key)) == around.format("[redacted]")


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())
def test_value_that_is_a_key_is_known(key: str) -> None:
    assert looks_like_key(key)
    assert looks_like_key(f" {key}\n")
    assert not looks_like_key(f"/home/{key}/x")


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Authorization: Bearer abcdef123456", "Authorization: Bearer [redacted]"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic [redacted]"),
        ('{"Authorization": "Bearer abcdef123456"}', '{"Authorization": "Bearer [redacted]"}'),
        ("'x-api-key': 'abcdef123456'", "'x-api-key': '[redacted]'"),
        ("X-Api-Key:abcdef123456,next", "X-Api-Key:[redacted],next"),
        ("curl -H 'Bearer abcdef1234567890ABCD'", "curl -H 'Bearer [redacted]'"),
        ("https://user:p4ssw0rd@example.com/x", "https://user:[redacted]@example.com/x"),
    ],
)
def test_headers_and_addresses_lose_only_their_secret(text: str, redacted: str) -> None:
    assert Redactor().redact(text) == redacted


def test_private_keys_are_redacted_whole_even_if_cut() -> None:
    begin, end = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
    body = "\n".join([BODY * 2] * 20)

    assert Redactor().redact(f"before\n{begin}\n{body}\n{end}\nafter") == "before\n[redacted]\nafter"
    assert BODY not in Redactor().redact(f"before\n{begin}\n{body}")


@pytest.mark.parametrize(
    "text",
    [
        "sk-learn is not scikit-learn",
        "class='sk-circle-fade-dot container'",
        "asiaabcdefghijklmnop",
        "task-force-of-many-people-indeed",
        "the bearer of good news",
        "class AKIAnimal: pass",
        "a public -----BEGIN CERTIFICATE----- block",
        "https://example.com:8080/path@version",
        "9c56cc51b374c3ba189210d5b6d4bf57790d351c96c47c02190ecf1e430635ab",
        "hf_hub_download(repo_id='x')",
        "eyJust.a.word",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert Redactor().redact(text) == text


def test_named_secrets_are_redacted_in_each_spelling() -> None:
    secret = 'pa"ss/wörd\\ 1'
    redactor = Redactor([secret])

    for spelling in (secret, json.dumps(secret), json.dumps(secret, ensure_ascii=False), quote(secret, safe="")):
        redacted = redactor.redact(f"<{spelling}>")
        assert redacted.strip('<">') == "[redacted]"


def test_longer_secret_is_redacted_first() -> None:
    assert Redactor(["password1", "password1-and-more"]).redact("password1-and-more") == "[redacted]"


def test_short_secrets_are_ignored() -> None:
    assert Redactor(["", "the", "1234567"]).redact("the 1234567") == "the 1234567"


@given(
    secrets=st.lists(st.text(alphabet="abcd-._", min_size=8, max_size=20), max_size=4),
    pieces=st.lists(st.text(alphabet="abcd-._ \n"), max_size=6),
    data=st.data(),
)
def test_named_secrets_are_redacted_in_any_context(secrets: list[str], pieces: list[str], data: st.DataObject) -> None:
    text = "".join(piece + (data.draw(st.sampled_from(secrets)) if secrets else "") for piece in pieces)

    redacted = Redactor(secrets).redact(text)

    assert not [secret for secret in secrets if secret in redacted]
    assert Redactor(secrets).redact(redacted) == redacted


@given(text=st.text(alphabet=st.sampled_from("sk-ghp_AKIA:/@ bearer=\n\"'.eyJ[redacted]0")))
def test_redacting_is_idempotent(text: str) -> None:
    redacted = Redactor().redact(text)

    assert Redactor().redact(redacted) == redacted


def test_long_hostile_text_is_redacted_in_linear_time() -> None:
    for piece in (
        "-----BEGIN PRIVATE KEY-----",
        "sk-",
        "eyJaaaaaaaaa.",
        "-eyJaaaaaaaaa",
        "://a:",
        "authorization: ",
        "bearer ",
        "x-api-key",
    ):
        Redactor(["some-secret"]).redact(piece * 20_000)
