"""Words, asked in a real FTS5 table: what stands in a text is found, and no query is dangerous.

Also makes `pipimem/index/simplified.txt`: see `simplified_table`.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipimem.index import Scope, chinese, upkeep, words
from pipimem.index.rank import Known, rank, terms_of
from pipimem.index.schema import PASSAGE_BITS, TITLE
from pipimem.index.stems import LONGEST, stems

CASES = os.path.join(os.path.dirname(__file__), "cases")
Cut = Callable[[Sequence[str]], list[list[str]]]


def case(name: str) -> str:
    with open(os.path.join(CASES, name), encoding="utf-8") as file:
        return file.read()


class Corpus:
    """An index in memory, a text a passage."""

    def __init__(self, cut: Cut, texts: Sequence[str], headings: Sequence[str] = ()) -> None:
        self.cut = cut
        self.texts = list(texts)
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        upkeep.build(self.db, ":memory:")
        length = 0
        for number, text in enumerate(texts, 1 << PASSAGE_BITS):
            head, head_runs = words.parts(headings[number - (1 << PASSAGE_BITS)] if headings else "", cut)
            body, runs = words.parts(text, cut)
            heading, said = " ".join([TITLE, *stems(head)]), " ".join(stems(body))
            self.db.execute("INSERT INTO heads VALUES(?,'',?,?)", (number, heading, " ".join(head_runs)))
            self.db.execute("INSERT INTO texts VALUES(?,?,1,?,?)", (number, number, said, " ".join(runs)))
            row = (number, heading, said, " ".join(words.pairs([*head_runs, *runs])))
            self.db.execute("INSERT INTO f(rowid, heading, body, pairs) VALUES(?,?,?,?)", row)
            length += len(said) + sum(map(len, runs))
        sql = "INSERT INTO documents VALUES(1, 'MEMORY.md', '', 'memory', '', '', 0, '', ?, ?, '', '')"
        self.db.execute(sql, (len(texts), length))

    def ask(self, text: str) -> list[str]:
        """The texts found, best first."""
        ranked = rank(self.db, words.query(text, self.cut), Scope(), 100, Known())
        return [self.texts[r.row - (1 << PASSAGE_BITS)] for r in sorted(ranked, key=lambda r: (-r.score, r.row))]


def asked_for(query: words.Query) -> list[str]:
    """What SQLite is asked for one after the other."""
    return [term.match for term in terms_of(query)]


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> Cut:
    path = str(tmp_path_factory.mktemp("cache") / chinese.dictionary_name())
    chinese.build(path)
    return chinese.dictionary_cutter(path).cut_many


def has_letter(text: str) -> bool:
    return any(character.isalnum() for character in unicodedata.normalize("NFKC", text))


def entries(name: str) -> list[str]:
    return [line for line in case(name).split("\n") if line.startswith("- ")]


# query → what the first hit holds; None: no hit; "": no query at all
G20 = {
    "tri-color": "tri-color",
    "BX-204": "BX-204",
    "note: wet": "note: wet",
    "pump:east": "pump:east",
    'he wrote "wet': 'he wrote "wet"',
    '"open': None,
    "can't": "can't",
    "'": "",
    "sun AND rain": "sun and rain",
    "AND": "and",
    "OR valve": "valve",
    "NOT": None,
    "NEAR": None,
    "(moss": "moss",
    "moss)": "moss",
    "val*": None,
    "*": "",
    "valve.": "valve.",
    "3.14": "3.14",
    "shop.example": "shop.example",
    "north/shed": "north/shed",
    "km/h": "km/h",
    "size=": "size=",
    "C++": "C++",
    "c#": "c#",
    "-9": "-9",
    "@ines": "@ines",
    "80%": "80%",
    "row_id": "row_id",
    "^top": "^top",
    "{box}": "{box}",
    "[lid]": "[lid]",
    "up|down": "up|down",
    "~": "",
    "\\": "",
    "，。": "",
    "“引号”": "“引号”",
    "怎么浇？": "怎么浇？",
}


def test_every_query_of_the_collection_is_harmless_and_finds_what_stands_there(cut: Cut) -> None:
    corpus = Corpus(cut, entries("G20-corpus.md"))
    queries = case("G20-queries.txt").rstrip("\n").split("\n")
    assert queries == list(G20)
    for query, expected in G20.items():
        found = corpus.ask(query)
        assert bool(words.query(query, cut)) == (expected != ""), query
        if expected:
            assert found, query
            assert expected in found[0], query
        else:
            assert found == [], query


def test_chinese_words_of_any_length_find_their_line_and_nonsense_finds_nothing(cut: Cut) -> None:
    corpus = Corpus(cut, entries("G21-chinese.md"))
    rows = [line.split("\t") for line in case("G21-queries.tsv").split("\n")[1:] if line]
    assert len(rows) == 11
    for query, expected in rows:
        found = corpus.ask(query)
        assert (expected in found[0]) if expected != "(nothing)" else found == [], query


def test_short_names_find_their_own_line_first_and_never_every_line(cut: Cut) -> None:
    corpus = Corpus(cut, entries("G22-short.md"))
    own = {"CI": "CI", "slow ci run": "CI", "where is the DB": "DB", "Go": "Go", "R": "R for", "S3": "S3"}
    for query, expected in own.items():
        found = corpus.ask(query)
        assert expected in found[0], query
        assert len(found) < len(corpus.texts), query


def test_both_normal_forms_of_a_name_find_each_other(cut: Cut) -> None:
    cases = json.loads(case("G13-names.json"))
    for pair in cases["pairs"]:
        for written, asked in (("nfc", "nfd"), ("nfd", "nfc"), ("nfc", "nfc"), ("nfd", "nfd")):
            corpus = Corpus(cut, ["another line", f"plan: {pair[written]} 以后再说"])
            assert corpus.ask(pair[asked])[:1] == corpus.texts[1:], pair
        assert words.fold(pair["nfc"]) == words.fold(pair["nfd"])
        assert words.terms(pair["nfc"], cut) == words.terms(pair["nfd"], cut)


def test_a_name_without_letters_gives_no_terms_and_is_no_query(cut: Cut) -> None:
    for name in [
        *json.loads(case("G13-names.json"))["no_letters"],
        "🎉🎉",
        "👍🏽",
        "\ue000\uf8ff",
        "",
        " \n\t　",
        "—…！",
    ]:
        assert words.terms(name, cut) == ([], []), name
        assert not words.query(name, cut), name
        assert asked_for(words.query(name, cut)) == []


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("數據庫遷移到臺北的機房", "数据库迁移"),
        ("数据库迁移到台北的机房", "數據庫遷移"),
        ("头发理发", "頭髮"),
        ("請備註過敏：花生", "备注"),
        ("接口叫ＡＰＩ网关", "api"),
        ("the API gateway", "ＡＰＩ"),
        ("ﾃﾞｰﾀﾍﾞｰｽの話", "データベース"),
        ("we deployed on Friday", "deploys"),
        ("he deploys on Friday", "deployed"),
        ("Crème brûlée recipe", "creme brulee"),
        ("the co\u00adop\u200bera\u200dtion contract", "cooperation"),
        ("Straße gesperrt", "STRASSE"),
        ("हिन्दी में लिखा", "हिन्दी"),
        ("ภาษาไทยวันนี้", "ภาษาไทย"),
        ("안녕하세요 여러분", "하세요"),
        ("東京タワーに行く", "タワー"),
        ("第〇三号𠮷野家", "𠮷野家"),
    ],
)
def test_the_same_word_in_another_script_width_case_or_form_is_found(cut: Cut, written: str, asked: str) -> None:
    corpus = Corpus(cut, ["nothing of that kind 没有这回事", written])
    assert corpus.ask(asked) == [written]


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("set relay_retry_limit to 5", "relayRetryLimit"),
        ("set relayRetryLimit to 5", "relay_retry_limit"),
        ("set relay-retry-limit to 5", "relay_retry_limit"),
        ("set relayRetryLimit to 5", "retry limit"),
        ("the HTTPServer class", "server"),
        ("see src/app/user_config.py", "user_config.py"),
        ("see src/app/user_config.py", "user_config"),
        ("see src/app/user_config.py", "userConfig"),
        ("see config.py", "src/app/config.py"),
        ("released v1.2.3 today", "1.2.3"),
        ("released 1.2.3 today", "v1.2.3"),
        ("failed with E1234", "1234"),
        ("failed with ERR-48213", "err48213"),
        ("kit BX204", "BX-204"),
        ("kit BX-204", "bx204"),
        ("use node.js here", "Node.js"),
        ("written in C++17", "C++"),
        ("write to ines@mail.example now", "mail.example"),
        ("see https://shop.example/orders?x=1", "shop.example"),
        ("python3 is needed", "Python"),
        ("it is e-mail only", "email"),
        ("用Go写的CI脚本", "ci"),
    ],
)
def test_an_identifier_is_found_whole_and_by_part(cut: Cut, written: str, asked: str) -> None:
    corpus = Corpus(cut, ["another matter entirely", written, "一件别的事"])
    assert corpus.ask(asked) == [written]


@pytest.mark.parametrize(
    ("asked", "better", "worse"),
    [
        ("C++", "we use C++ here", "we use C here, and C again"),
        ("c#", "we use C# here", "we use C++ here"),
        ("node.js", "we run node.js here", "each node serves js and js"),
        ("shop.example", "at shop.example today", "the shop is an example"),
        ("3.14", "wind of 3.14 today", "rows 3 and 14, 14 and 3"),
        ("10:30", "the bus at 10:30 comes", "from 10 to 30, 30 and 10"),
        ("src/a/b.py", "see src/a/b.py for it", "a src of b and py, of a and py"),
        ("@ines", "ask @ines for it", "ask ines for it"),
        ("“数据迁移”", "先做数据迁移再说", "迁移数据和数据的迁移"),
        ('"red brick"', "a red brick wall", "a brick in red, or brick for red"),
    ],
)
def test_the_identifier_itself_ranks_before_its_parts(cut: Cut, asked: str, better: str, worse: str) -> None:
    filler = [f"line number {n} about something else, nothing to see" for n in range(20)]
    found = Corpus(cut, [worse, better, *filler]).ask(asked)
    assert found[0] == better


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("2026-03-06 的会", "3月6日开了什么会"),
        ("2026年3月6日开会", "2026-03-06"),
        ("三月六号开会", "March 6"),
        ("meeting on March 6th, 2026", "2026-03-06"),
        ("meeting on 6 Mar 2026", "三月六日"),
        ("log 20260306 kept", "2026/3/6"),
        ("２０２６年３月 总结", "in March 2026"),
        ("十一月二十一日搬家", "11-21 or November 21"),
        ("due by May", "五月"),
    ],
)
def test_a_date_is_found_however_it_is_written(cut: Cut, written: str, asked: str) -> None:
    corpus = Corpus(cut, ["2025-12-24 晚上", "nothing on that day, 以后再说", written, "1999-01-01 may be"])
    assert corpus.ask(asked)[0] == written


def test_what_is_no_date_gives_no_date_words(cut: Cut) -> None:
    for text in (
        "version 2026.13",
        "10.0.0.1",
        "2026-25-01",
        "32/45",
        "it may be late",
        "三个月",
        "march on",
        "99999999",
    ):
        assert not [w for w in words.terms(text, cut)[0] if w.startswith(words._DASH)], text


def test_one_character_is_found_at_every_place_of_a_run(cut: Cut) -> None:
    texts = ["隔壁师傅外号叫阿松", "松树要浇水", "把松针扫掉", "底下刻着一个松"]
    corpus = Corpus(cut, [*texts, "没有这个字", "pine tree"])
    assert sorted(corpus.ask("松")) == sorted(texts)
    assert asked_for(words.query("松", cut)) == ['({heading body} : "松")', '(pairs : "松" *)']


def test_a_heading_counts_more_than_the_text_under_it(cut: Cut) -> None:
    corpus = Corpus(cut, ["门口的枇杷", "别的事情"], ["别的", "枇杷树"])
    assert corpus.ask("枇杷") == ["别的事情", "门口的枇杷"]


def test_words_come_in_order_then_the_runs_then_what_identifiers_add(cut: Cut) -> None:
    got, pairs = words.terms("Deploy 数据库 to node.js, 阿松", cut)
    assert got == ["deploy", "to", "node", "js", "数据", "据库", "数据库", "阿", "松", "node\ue02ejs"]
    assert pairs == ["数据", "据库", "库", "阿松", "松"]


def test_stop_words_are_dropped_from_a_query_unless_there_is_nothing_else(cut: Cut) -> None:
    assert words.query("where is the DB", cut).words == ["db"]
    assert words.query("to be or not to be", cut).words == ["to", "be", "or", "not"]
    assert words.query("结算网关的端口是多少", cut).words == ["结算", "网关", "端口"]
    assert words.query("的", cut).words == ["的"]
    assert words.terms("where is the DB", cut)[0] == ["where", "is", "the", "db"]


def test_a_long_query_leaves_out_the_pairs_that_its_words_hold(cut: Cut) -> None:
    assert words.query("数据库", cut).pairs == ["数据", "据库"]
    asked = words.query("云永雨负责的数据库迁移什么时候做完", cut)
    assert {"云永", "永雨"} <= set(asked.pairs)
    assert not {"数据", "据库", "迁移", "什么", "时候"} & set(asked.pairs)


def test_quoted_words_become_phrases_and_exclude_nothing(cut: Cut) -> None:
    asked = words.query('say "red brick" or “数据迁移 plan b” and 「松」 "open', cut)
    assert asked.phrases == [["red", "brick"], ["plan", "b"], ["数", "据", "迁", "移"]]
    assert {'({heading body} : "red brick")', '(pairs : "数据 据迁 迁移")'} <= set(asked_for(asked))
    assert Corpus(cut, ["a brick", "red"]).ask('"red brick"') == ["red", "a brick"]


def test_a_query_of_any_length_stays_bounded(cut: Cut) -> None:
    rng = random.Random(1)
    english = " ".join("".join(rng.choices("abcdefghij", k=rng.randint(1, 12))) for _ in range(20_000))
    han = "".join(chr(rng.randint(0x4E00, 0x9FA5)) for _ in range(20_000))
    for text in (english, han, english[:5000] + han, ' "x y" ' * 2000, "“数据库迁移”" * 2000, "数据库" * 9000):
        asked = words.query(text, cut)
        assert sum(map(len, asked.pairs)) <= 2 * words.MAX_HAN
        assert 0 < len(asked_for(asked)) <= words.MAX_TERMS
        Corpus(cut, ["x", "数据库"]).ask(text)
    assert words.query(english, cut).words[-1] in english[: words.MAX_READ]


def test_of_a_long_query_the_most_telling_words_are_asked(cut: Cut) -> None:
    text = (
        " ".join(f"w{n % 7}o" for n in range(7))
        + " "
        + " ".join(f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(90))
    )
    assert "err48213" not in words.chosen(words.query(text, cut))[0]
    assert "err48213" in words.chosen(words.query(text + " ERR-48213", cut))[0]


@pytest.mark.parametrize(
    "text",
    [
        "a\0b",
        "\ud800",
        "x\udcff松\ud83d",
        "'; DROP TABLE f; --",
        '"""',
        '" OR "',
        "heading:x",
        "a NEAR(b, 2)",
        "x" * 10_000,
        "^*{}()[]:-+",
    ],
)
def test_hostile_text_is_only_text(cut: Cut, text: str) -> None:
    corpus = Corpus(cut, ["harmless 无害", text])
    corpus.ask(text)
    assert corpus.db.execute("SELECT count(*) FROM f").fetchone() == (2,)


def test_a_caller_cannot_smuggle_syntax_into_the_expression() -> None:
    corpus = Corpus(lambda runs: [[run] for run in runs], ["x"])
    asked = asked_for(words.Query(['a" OR heading:"b', "x"], ['"'], [["a", '"b']]))
    sql = "SELECT count(*) FROM f WHERE f MATCH ?"
    assert [corpus.db.execute(sql, (match,)).fetchone()[0] for match in asked] == [0, 1, 0, 0]


TEXT = st.one_of(
    st.text(max_size=60),
    st.text(st.characters(codec="utf-8"), max_size=60),
    st.text(st.sampled_from("abAB12_-./:@#+'\"“”()*^ 松数据库的月日年，。éßİ\u0301\u200b"), max_size=60),
    st.lists(
        st.sampled_from(
            "row_id BX-204 C++ v1.2.3 a/b.py 数据库 云永雨 ガード 3月6日 2026-03-06 May the 的 ines@x.example".split()
        )
    ).map(" ".join),
)


@settings(max_examples=300, deadline=None)
@given(text=TEXT, query=TEXT)
def test_no_text_and_no_query_is_too_odd(cut: Cut, text: str, query: str) -> None:
    corpus = Corpus(cut, [text], [query])
    corpus.ask(query)
    got, pairs = words.terms(text, cut)
    for word in [*got, *pairs]:
        assert word
        assert not any(character.isspace() for character in word)
        word.encode()


@settings(max_examples=300, deadline=None)
@given(text=TEXT)
def test_every_text_is_found_by_each_word_that_a_person_sees_in_it(cut: Cut, text: str) -> None:
    corpus = Corpus(cut, [text, "unrelated 无关"])
    for seen in unicodedata.normalize("NFC", text).split():
        if has_letter(seen):
            assert text in corpus.ask(seen), seen


@settings(max_examples=200, deadline=None)
@given(text=TEXT)
def test_each_word_is_one_word_to_sqlite(cut: Cut, text: str) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(t, tokenize='unicode61 remove_diacritics 2')")
    db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(f, 'instance')")
    got = words.terms(text, cut)[0]
    db.execute("INSERT INTO f(t) VALUES(?)", (" ".join(got),))
    assert db.execute("SELECT count(*) FROM v").fetchone() == (len(got),)


def test_every_letter_of_unicode_is_a_letter_to_sqlite(cut: Cut) -> None:
    letters = [char for char in map(chr, range(0x110000)) if has_letter(char)]
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(t, tokenize='unicode61 remove_diacritics 2')")
    db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(f, 'instance')")
    single = {letter: words.terms(letter, lambda runs: [list(run) for run in runs])[0] for letter in letters}
    db.executemany("INSERT INTO f(rowid, t) VALUES(?, ?)", [(ord(x), " ".join(w)) for x, w in single.items()])
    kept = {row for (row,) in db.execute("SELECT DISTINCT doc FROM v")}
    assert [f"{ord(letter):x}" for letter in letters if ord(letter) not in kept] == []


@given(TEXT)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert words.fold(words.fold(text)) == words.fold(text)
    assert words.fold(text.upper()) == words.fold(text.upper().lower().upper())


def test_folding_keeps_what_is_no_letter() -> None:
    assert words.fold("Straße, ＡＢＣ： 資料庫!") == "strasse, abc: 资料库!"
    assert words.fold("Plain ASCII") == "plain ascii"


def test_the_table_is_read_only_for_ideographs() -> None:
    code = (
        "from pipimem.index import words\n"
        "words.query('Crème brûlée with C++', None); words.fold('Ünïcode'); assert not words._simple\n"
        "words.fold('資'); assert len(words._simple) > 4000\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def simplified_table() -> str:
    """`simplified.txt` from OpenCC: every character that stands for one simpler one, alone and in either region.

    Left out is what NFKC changes already, and what only Taiwan or Hong Kong writes otherwise if mainland words hold it
    too (著名 is no 着名). Write it with: python -c "from tests.test_words import *; print(simplified_table(), end='')"
    """
    from opencc import OpenCC

    with open(chinese._dict_txt(), encoding="utf-8") as file:
        rows = [line.split() for line in file]
    mainland = {character for word, count, *_ in rows if len(word) > 1 and int(count) > 3 for character in word}
    simple, *regional = [OpenCC(name).convert for name in ("t2s", "hk2s", "tw2s")]
    table = {}
    for code in (*range(0x3400, 0xA000), *range(0x20000, 0x32400)):
        character = chr(code)
        target = simple(character)
        if target == character and character not in mainland:
            target = next((other(character) for other in regional if other(character) != character), character)
        if target != character and len(target) == 1 and unicodedata.normalize("NFKC", character) == character:
            table[character] = target
    table = {character: table.get(target, target) for character, target in table.items()}
    return f"{''.join(table)}\n{''.join(table.values())}\n"


def test_the_table_of_simplified_characters_is_what_opencc_says() -> None:
    opencc = pytest.importorskip("opencc")
    if opencc.__version__ != "1.4.2":
        pytest.skip("the table was made with OpenCC 1.4.2")
    with open(os.path.join(os.path.dirname(words.__file__), "simplified.txt"), encoding="utf-8") as file:
        assert file.read() == simplified_table()


def test_the_table_is_one_to_one_in_length_and_never_applies_twice() -> None:
    with open(os.path.join(os.path.dirname(words.__file__), "simplified.txt"), encoding="utf-8") as file:
        traditional, simplified = file.read().split()
    assert len(traditional) == len(simplified) == len(set(traditional)) > 4000
    assert not set(traditional) & set(simplified)
    assert "".join(traditional[i] for i in map(simplified.index, "库资机")) == "庫資機"


# Stems

ENDINGS = (
    "ational tional enci anci izer logi bli alli entli eli ousli ization ation ator alism iveness fulness ousness aliti"
    " iviti biliti icate ative alize iciti ical ful ness al ance ence er ic able ible ant ement ment ent sion tion ion ou"
    " ism ate iti ous ive ize s es sses ies ed ing eed y e ll"
).split()


def test_stems_are_those_of_sqlites_porter() -> None:
    rng = random.Random(1)
    made = {"".join(rng.choices("abcdeioustlryzx", k=rng.randint(1, 5))) + rng.choice(ENDINGS) for _ in range(20_000)}
    asked = sorted({*made, *(word + rng.choice(ENDINGS) for word in made), "ab", "a" * LONGEST + "s", "sky", "was"})
    db = sqlite3.connect(":memory:")
    db.execute("CREATE VIRTUAL TABLE f USING fts5(t, tokenize='porter ascii')")
    db.execute("CREATE VIRTUAL TABLE v USING fts5vocab(f, 'instance')")
    db.executemany("INSERT INTO f(rowid, t) VALUES(?, ?)", list(enumerate(asked)))
    theirs = dict(db.execute("SELECT doc, term FROM v"))
    assert [(word, theirs[n]) for n, word in enumerate(asked) if stems([word]) != [theirs[n]]] == []


def test_what_is_not_english_has_no_stem_and_accents_do_not_matter() -> None:
    assert stems(["数据库", "cafés", "naïve", "йод", "ガード"]) == ["数据库", "cafe", "naiv", "йод", "ガード"]
