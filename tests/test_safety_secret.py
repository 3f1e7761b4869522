"""Tests for pipimem/safety/secret.py and what it scans with: forms, names, values."""

from __future__ import annotations

import importlib
import json
import random

import pytest

from pipimem import safety
from pipimem.errors import Usage
from pipimem.safety import secret_forms
from tests.conftest import case
from tests.safety_tables import VALUES, WITH_SECRET, WITHOUT_SECRET


def test_secrets_are_found_with_precision_and_recall_of_097() -> None:
    missed = [row for row in WITH_SECRET if row[1] in safety.redact("".join(row))]
    alarms = [text for text in WITHOUT_SECRET if safety.secrets(text)]
    found = len(WITH_SECRET) - len(missed)
    assert len(WITH_SECRET) >= 80
    assert len(WITHOUT_SECRET) >= 80
    assert found / len(WITH_SECRET) >= 0.97, missed
    assert found / (found + len(alarms)) >= 0.97, alarms


def test_no_token_is_shorter_than_the_run_that_is_looked_for_first() -> None:
    parser = importlib.import_module("re._parser")
    run = parser.parse(secret_forms._LONG).getwidth()[0]
    shortest = {prefix: len(prefix) + parser.parse(rest).getwidth()[0] for _, prefix, rest, _ in secret_forms._PREFIXES}
    assert run > 10
    assert {prefix: length for prefix, length in shortest.items() if length < run} == {}


@pytest.mark.parametrize("row", WITH_SECRET, ids=range(len(WITH_SECRET)))
def test_only_the_value_is_replaced(row: tuple[str, str, str]) -> None:
    before, value, after = row
    out = safety.redact(before + value + after)
    assert out.startswith(before + "[redacted:")
    assert out.endswith("]" + after)


def test_the_same_text_is_a_secret_within_a_larger_document() -> None:
    document = "\n\n".join(f"- {before}{value}{after}" for before, value, after in WITH_SECRET)
    out = safety.redact(document)
    assert [value for value in VALUES if value in out] == []
    assert [finding.kind for finding in safety.secrets(out)] == []


def test_random_values_are_found_behind_every_name() -> None:
    draw = random.Random(7)
    letters = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
    names = [
        "password: {}",
        "DB_PASSWORD={}",
        "密码是{}，别外传",
        '"api_key": "{}"',
        "--token {}",
        "令牌：{}",
        "secret={}&x=1",
    ]
    missed = []
    for _ in range(600):
        value = "".join(draw.choice(letters + "23456789") for _ in range(draw.randint(20, 40))) + "7a"
        text = draw.choice(names).format(value)
        if value in safety.redact(text):
            missed.append(text)
    assert len(missed) <= 3, missed


def test_g42_no_value_survives_and_ordinary_text_does() -> None:
    data = json.loads(case("G42-secrets.json"))
    for entry in data["entries"]:
        value = "".join(entry["parts"])
        out = safety.redact(entry["text"].format(value))
        assert value not in out, entry["what"]
        assert "[redacted:" in out
    for text in data["must_survive"]:
        assert safety.redact(text) is text
        assert safety.verdict(text) == ""


def test_g42_the_text_around_the_value_stays_readable() -> None:
    data = {entry["what"]: entry for entry in json.loads(case("G42-secrets.json"))["entries"]}
    entry = data["plain Chinese password"]
    assert safety.redact(entry["text"].format("".join(entry["parts"]))) == "密码是 [redacted:password]，晚上改"
    entry = data["url with password"]
    out = safety.redact(entry["text"].format("".join(entry["parts"])))
    assert out == "DSN=postgres://app:[redacted:url-password]@db.example:5432/x"


BODY = "\n".join("TUlJTUlJTUlJTUlJTUlJTUlJTUlJTUlJTUlJTUlJTUlJTUlJTUlJTUlJTUlJTUlJ" for _ in range(4))


def key_block(label: str, body: str = BODY) -> str:
    return f"-----BEGIN {label}-----\n{body}\n-----END {label}-----"


@pytest.mark.parametrize("label", ["PRIVATE KEY", "RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "EC PRIVATE KEY"])
def test_a_private_key_block_goes_as_a_whole(label: str) -> None:
    assert safety.redact(f"before\n{key_block(label)}\nafter") == "before\n[redacted:private-key]\nafter"


def test_a_private_key_is_found_in_every_disguise() -> None:
    block = key_block("RSA PRIVATE KEY")
    disguises = {
        "cut off": block[: len(block) // 2],
        "begin cut off": block.split("\n", 2)[2],
        "in a JSON string": json.dumps({"key": block}),
        "quoted": "\n".join("> " + line for line in block.split("\n")),
        "CRLF": block.replace("\n", "\r\n"),
        "encrypted": key_block("RSA PRIVATE KEY", "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A0B\n\n" + BODY),
        "PGP": key_block("PGP PRIVATE KEY BLOCK", "Version: X v2\n\n" + BODY + "\n=aB3d"),
        "on one line": block.replace("\n", " "),
        "PuTTY": f"Private-Lines: 4\n{BODY}",
    }
    for name, text in disguises.items():
        out = safety.redact(f"a\n{text}\nb")
        assert "TUlJTUlJTUlJ" not in out, name
        assert out.startswith("a\n"), name
        assert out.endswith("\nb"), name


def test_a_cut_off_key_does_not_swallow_the_prose_after_it() -> None:
    text = key_block("PRIVATE KEY").rsplit("\n", 1)[0] + "\n\nThen we rotated the key on Thursday."
    assert safety.redact(text) == "[redacted:private-key]\n\nThen we rotated the key on Thursday."


def test_a_public_key_or_the_mention_of_a_header_is_no_secret() -> None:
    for text in (
        key_block("PUBLIC KEY"),
        key_block("CERTIFICATE"),
        "it starts with -----BEGIN PRIVATE KEY-----, always",
    ):
        assert safety.redact(text) is text


def test_the_kind_says_what_was_there() -> None:
    named = {
        "gh" + "p_" + "a8Kd72LsQ0vNx4TyB6mR1cWe9ZuJ3fHp5GiO": "github-token",
        "AK" + "IA" + "Q7ZX2KD9LM4NV1BT": "aws-key-id",
        "sk" + "-ant-api03-" + "Zx8Kq2Lm5Nv7Bt1Rw4Yc9Hd3Js6Fg0Pa": "anthropic-key",
        "password: " + "tulip" + "s4ever": "password",
        "密钥：" + "k7Qm2Zx9Lv4N" + "t1R": "key",
        "postgres://app:" + "hunter2" + "x@db.example/x": "url-password",
    }
    for text, kind in named.items():
        assert [finding.kind for finding in safety.secrets(text)] == ["secret:" + kind]


def test_a_provider_key_behind_a_name_is_found_once_and_named_by_the_provider() -> None:
    text = "api_key: " + "sk" + "-proj-" + "k3J9xQ2mV8rT5yB1nW7zL4pC6dF0gH2s"
    assert [finding.kind for finding in safety.secrets(text)] == ["secret:openai-key"]


def test_documentation_placeholders_are_no_secrets() -> None:
    for text in (
        "AK" + "IAIOSFODNN7EXAMPLE",
        "password: <your password 1>",
        "token: xxxx-xxxx-1234",
        "api_key=${KEY_1}",
    ):
        assert safety.secrets(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "token = imdsv2_session_token_response.data",
        "token=self.AWS_IMDSV2_SESSION_TOKEN",
        'a href="#x509checkprivatekey" id="x509checkprivatekeyprivatekey"',
        "KeyStorePassword: 'The password for the kmsuser account in the cluster.'",
        "Pass ``rfc2822=True`` to enable it",
        "flag to pass to C{L{parseString2}}",
        "[cargo-credential-1password]: https://crates.example/cargo-credential-1password",
    ],
)
def test_code_and_documentation_of_real_packages_raise_no_alarm(text: str) -> None:
    assert safety.secrets(text) == []


def test_own_patterns_find_what_the_workspace_knows() -> None:
    text = "member QY-4711-ZZ and badge 0815"
    assert safety.redact(text, extra=[r"QY-\d{4}-[A-Z]{2}"]) == "member [redacted:custom] and badge 0815"
    assert safety.redact(text, extra=[r"badge (\d+)"]) == "member QY-4711-ZZ and badge [redacted:custom]"
    assert safety.verdict(text, extra=["QY-"]) == "secret"
    assert safety.verdict(text) == ""


def test_a_greedy_own_pattern_still_ends_and_never_eats_a_placeholder() -> None:
    text = "密码：" + "Qiyun" + "@2026 rest"
    once = safety.redact(text, extra=[r"[^x]+"])
    assert safety.redact(once, extra=[r"[^x]+"]) == once
    assert safety.redact(text, extra=[r"x*"]) == "密码：[redacted:password] rest"


def test_a_broken_own_pattern_is_named() -> None:
    with pytest.raises(Usage, match=r'"\(oops"'):
        safety.secrets("text", extra=["(oops"])


def test_an_allowed_value_stays() -> None:
    text = "password: " + "tulip" + "s4ever"
    assert safety.redact(text, allow=["tulip" + "s4ever"]) is text
    assert safety.redact(text, allow=["tulip.*"]) is text
    assert safety.redact(text, allow=["tulip"]) != text
    assert safety.redact(text, allow=["(tulip"]) != text


def test_a_value_found_once_is_found_wherever_it_stands_again() -> None:
    value = "tulip" + "s4ever"
    out = safety.redact(f"login with {value}.\nThe password is {value}, ask Ines; then {value} again")
    assert out == (
        "login with [redacted:password].\nThe password is [redacted:password], ask Ines; then [redacted:password] again"
    )


def test_a_password_may_hold_quotes_and_brackets() -> None:
    for value in ("Qi'yun2026!", 'ti"ger#99x', "a<7>c12!x", "x|y=7#Zq"):
        assert value not in safety.redact(f"password: {value}")
        assert value not in safety.redact(f"密码是 {value}，晚上改")


def test_a_plain_word_used_as_a_password_stays_a_word_elsewhere() -> None:
    text = "use postgres: postgres://app:" + "postgres" + "@db1.example/x"
    assert safety.redact(text) == "use postgres: postgres://app:[redacted:url-password]@db1.example/x"
