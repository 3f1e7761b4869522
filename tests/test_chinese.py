"""The cutters: equal to jieba whatever their source, and a dictionary database that can be trusted (G56)."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipimem.errors import Refused, Unreadable
from pipimem.index import chinese

Cut = Callable[[str], list[str]]

SENTENCES = """
部署窗口改到周四晚上，发布前要先跑一遍回归测试。
隔壁王师傅说收音机的说明书压在抽屉最底下。
云永雨上个月从杭州搬到了成都，新工作是做灰度发布。
研究生命起源的论文已经投出去了，还没有收到回复。
结婚的和尚未结婚的都要在这张表上签字。
南京市长江大桥昨晚封闭施工，车辆请绕行。
他说的确实在理，我们下次开会再讨论。
乒乓球拍卖完了，明天上午再去体育用品店看看。
数据库迁移失败，原因是磁盘空间不足，已经回滚。
请把超时时间设成三千毫秒，重试次数不要超过五次。
她对花生和芒果过敏，订餐的时候务必备注清楚。
提示词里不要写死路径，用环境变量代替。
云原生架构并不等于把单体应用装进容器里。
霜降以后不搬花盆，怕夜里温度太低冻坏了根。
上次开会决定用缓存而不是消息队列，理由写在纪要里。
小明硕士毕业于中国科学院计算所，后在日本京都大学深造。
工信处女干事每月经过下属科室都要亲口交代交换机等技术性器件的安装工作。
这个把手该换了，我不喜欢日本和服。
今天天气真好，适合去公园散步，顺便买两斤橘子。
一万一千五百二十颗星星是谁数出来的呢。
登录服务的负责人换成了陈静，值班表还没有更新。
搜索索引重建花了四十分钟，比上一次快了一倍。
妈妈的生日是农历六月十八，记得提前订蛋糕。
爷爷喜欢听评书，尤其是三国和水浒。
合同编号写错了，财务要求重新盖章再寄一份。
项目验收推迟到下下周，客户那边的接口还没调通。
回调发送失败三次以后进入死信队列，需要人工处理。
不要在周五下午上线，这是去年那次事故之后定的规矩。
猫咪打过第三针疫苗了，下次体检在明年三月。
地铁二号线末班车十一点半，赶不上就打车回来。
新来的实习生对权限模型不熟，先让他读设计文档。
会议室的投影仪坏了，行政说配件下个月才到。
外婆家在绍兴的一条老街上，门口有一棵枇杷树。
配置中心支持热更新，但密钥轮换以后必须重启进程。
他把钥匙落在出租车上了，司机师傅特意送了回来。
这道菜少放盐多放醋，起锅前撒一把香菜。
压测的瓶颈在连接池，把上限调大以后吞吐翻了一番。
读书会下个月读游记，轮到李伟准备提纲。
物业通知周三停水，从早上八点到下午四点。
她正在备考注册会计师，晚上九点以后不回消息。
日志里出现大量的空指针异常，怀疑是上游改了字段名。
孩子的钢琴课改到星期六上午，老师会提前半小时到。
我们约好在东院门口见面，带上试种的总结和分苗的清单。
价格推送的延迟从八百毫秒降到了一百二十毫秒。
他不吃辣，也不喝酒，聚餐的时候点两个清淡的菜。
图片压缩组件升级之后，内存占用反而变高了。
护照明年到期，续签要提前三个月预约。
周报用中文写，技术名词保留英文原文。
房东答应换一台新的热水器，费用从押金里扣。
审计日志至少保留一百八十天，不能放在临时目录。
这只杯子是琥珀色的，底下刻着一个很小的松字。
把旧的路径先保留作为备用，等下个版本再删掉。
周杰和孙悦都反对这个方案，理由是维护成本太高。
打印机连不上无线网络，重启路由器之后就好了。
自行车链条该上油了，刹车也有点松。
限流组件按租户计数，超过配额就返回错误码。
医生建议少吃甜食，每天至少走六千步。
出差报销的发票要在月底之前贴好交给前台。
同步引擎在断网以后会把修改先存在本地。
他小时候住在黄河边上，最怕夏天涨水。
""".split()


def runs_of(text: str) -> list[str]:
    return "".join(c if "\u4e00" <= c <= "\u9fd5" else " " for c in text).split()


@pytest.fixture(scope="module")
def jieba() -> Callable[[Mapping[str, int]], Cut]:
    """The reference: jieba itself, with a tokenizer of its own that never touches jieba's cache file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba as library
    library.setLogLevel(60)
    path = os.path.join(os.path.dirname(library.__file__), "dict.txt")
    with open(path, "rb") as file:
        frequencies, total = library.Tokenizer.gen_pfdict(file)

    def tokenizer(extra: Mapping[str, int]) -> Cut:
        own = library.Tokenizer()
        own.FREQ, own.total, own.initialized = dict(frequencies), total, True
        for word, frequency in extra.items():
            own.total -= own.FREQ.get(word, 0)  # jieba forgets this when a word is added again; rjieba does not
            own.add_word(word, frequency)
        return lambda run: [str(word) for word in own.lcut_for_search(run, HMM=False)]

    return tokenizer


@pytest.fixture(scope="module")
def words() -> list[str]:
    return [word for word, frequency, _ in chinese._read(chinese._dict_txt())[1] if frequency]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("cache") / chinese.dictionary_name())
    chinese.build(path)
    return path


@pytest.fixture(scope="module")
def reference(jieba: Callable[[Mapping[str, int]], Cut]) -> Cut:
    return jieba({})


@pytest.fixture(scope="module")
def sources(path: str) -> list[chinese.Cutter]:
    return cutters(path)


def bulk_without_rjieba(extra: Mapping[str, int] | None = None) -> chinese.Cutter:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "rjieba", None)
        return chinese.bulk_cutter(extra)


def cutters(path: str, extra: Mapping[str, int] | None = None) -> list[chinese.Cutter]:
    found = [chinese.dictionary_cutter(path, extra), bulk_without_rjieba(extra), chinese.bulk_cutter(extra)]
    assert [cutter.source for cutter in found][:2] == ["dictionary", "memory"]
    return found


def joined(words: Sequence[str], seed: int, count: int, most: int = 7) -> list[str]:
    rng = random.Random(seed)
    return ["".join(rng.choices(words, k=rng.randint(1, most))) for _ in range(count)]


def test_every_source_cuts_prose_as_jieba_does(sources: list[chinese.Cutter], reference: Cut) -> None:
    runs = [run for sentence in SENTENCES for run in runs_of(sentence)]
    assert len(SENTENCES) >= 60
    assert len(runs) > 100
    for cutter in sources:
        assert cutter.cut_many(runs) == [reference(run) for run in runs], cutter.source


def test_every_source_cuts_thousands_of_runs_as_jieba_does(
    sources: list[chinese.Cutter], reference: Cut, words: list[str]
) -> None:
    common = [character for sentence in SENTENCES for character in sentence if "\u4e00" <= character <= "\u9fd5"]
    runs = joined(words, 1, 2500) + joined(common, 2, 1500, 12)
    expected = [reference(run) for run in runs]
    for cutter in sources:
        assert cutter.cut_many(runs) == expected, cutter.source


def test_one_run_and_many_runs_are_cut_alike(sources: list[chinese.Cutter], words: list[str]) -> None:
    runs = joined(words, 3, 200)
    for cutter in sources:
        assert [cutter.cut(run) for run in runs] == cutter.cut_many(runs)


def test_a_run_without_end_is_cut_as_jieba_cuts_it(
    sources: list[chinese.Cutter], reference: Cut, words: list[str]
) -> None:
    for run in ("".join(random.Random(4).choices(words, k=6000)), "一" * 10_000, "上海自来水来自海上" * 1000):
        expected = reference(run)
        for cutter in sources:
            assert cutter.cut(run) == expected, cutter.source


MIXED = st.text(
    st.one_of(
        st.characters(min_codepoint=0x4E00, max_codepoint=0x9FD5),
        st.sampled_from("的了是在和有他不我人也为一这上年中说到都等数据库结婚和尚未研究生命南京市长江大桥云永雨"),
        st.sampled_from("東タワーべ한국어々〇㐀𠮷龦ดไ"),
    ),
    min_size=1,
    max_size=40,
)


@settings(max_examples=300, deadline=None)
@given(run=MIXED)
def test_any_run_is_cut_as_jieba_cuts_it(sources: list[chinese.Cutter], reference: Cut, run: str) -> None:
    expected = reference(run)
    for cutter in sources:
        assert cutter.cut(run) == expected, cutter.source


def test_a_lexicon_wins_on_every_source_alike(
    path: str, jieba: Callable[[Mapping[str, int]], Cut], words: list[str]
) -> None:
    rng = random.Random(5)
    singles = [word for word in words if len(word) == 1]
    extra = {"".join(rng.choices(singles, k=rng.randint(2, 9))): chinese.KEPT_WHOLE for _ in range(150)}
    extra |= {rng.choice(words): rng.choice([1, 50, 13_000, 10**6]) for _ in range(1000)}  # more than one look-up
    extra = {word: frequency for word, frequency in extra.items() if len(word) > 1} | {"的了": 10**8}
    runs = joined([*words[::40], *extra], 6, 2500)
    reference = jieba(extra)
    expected = [reference(run) for run in runs]
    for cutter in cutters(path, extra):
        assert cutter.cut_many(runs) == expected, cutter.source
    assert chinese.dictionary_cutter(path).cut_many(runs) != expected


def test_a_word_of_the_lexicon_is_kept_whole_even_of_the_commonest_characters(path: str) -> None:
    rng = random.Random(7)
    common = "了是在和有他不我的人也为就这上年中你说一"
    text = "\n".join("".join(rng.choices(common, k=rng.randint(2, 4))) for _ in range(300))
    extra = chinese.lexicon(text)
    assert len(extra) > 250
    for cutter in cutters(path, extra):
        assert [word for word in extra if cutter.cut(word)[-1] != word] == [], cutter.source


def test_words_that_jieba_does_not_know_are_found_by_the_lexicon(path: str) -> None:
    plain, taught = (
        chinese.dictionary_cutter(path),
        chinese.dictionary_cutter(path, chinese.lexicon("提示词\n灰度发布\n")),
    )
    assert "提示词" not in plain.cut("提示词里不要写死路径")
    assert "提示词" in taught.cut("提示词里不要写死路径")
    assert taught.cut("做灰度发布前")[-2] == "灰度发布"


def test_a_lexicon_is_read_with_comments_frequencies_and_either_line_end() -> None:
    text = "\ufeff# 产品名\r\n灰度发布\r\n\r\n云原生 500  # 架构\r\n提示词 3 n\n資料庫\rABC 12\n松\nＫ８ｓ集群\n夜莺 零\n雨燕 0\n"
    assert chinese.lexicon(text) == {
        "灰度发布": chinese.KEPT_WHOLE,
        "云原生": 500,
        "提示词": 3,
        "资料库": chinese.KEPT_WHOLE,
        "夜莺": chinese.KEPT_WHOLE,
        "雨燕": chinese.KEPT_WHOLE,
    }
    assert chinese.lexicon("") == {}


@given(st.text())
def test_any_text_can_be_a_lexicon(text: str) -> None:
    assert all(len(word) > 1 and 0 < frequency < 10**9 for word, frequency in chinese.lexicon(text).items())


def test_without_a_dictionary_the_words_of_the_index_decide() -> None:
    counts = {"结算": 4, "网关": 6, "结算网关": 2, "端口": 9, "关现": 1}
    asked: list[str] = []

    def frequencies(words: list[str]) -> dict[str, int]:
        asked.extend(words)
        return {word: counts[word] for word in words if word in counts}

    cutter = chinese.vocabulary_cutter(frequencies)
    assert cutter.source == "vocabulary"
    assert cutter.cut("结算网关现在的端口") == ["结算", "网关", "结算网关", "现", "在", "的", "端口"]
    assert max(map(len, asked)) == 8
    assert len(asked) == len(set(asked))


def test_without_a_dictionary_the_lexicon_still_counts() -> None:
    assert chinese.vocabulary_cutter(lambda words: {}, {"云永雨": 13_000}).cut("云永雨来了") == ["云永雨", "来", "了"]
    assert chinese.vocabulary_cutter(lambda words: {}).cut("云永雨") == ["云", "永", "雨"]


def test_the_dictionary_is_complete_private_and_alone_in_its_folder(path: str) -> None:
    assert chinese.is_sound(path)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]
    assert os.path.basename(path).startswith("zhdict-")
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT f FROM w WHERE word = '数据库'").fetchone()[0] > 0
        assert db.execute("SELECT total FROM m").fetchone() == (60_101_967,)
    db.close()


def test_the_name_of_the_dictionary_is_cheap_and_stays(path: str) -> None:
    started = time.process_time()
    names = {chinese.dictionary_name() for _ in range(20)}
    assert names == {os.path.basename(path)}
    assert (time.process_time() - started) / 20 < 0.005


def test_two_processes_that_build_at_once_do_no_harm(tmp_path: os.PathLike[str]) -> None:
    folder = os.path.join(tmp_path, "dictionaries")
    os.mkdir(folder)
    target = os.path.join(folder, "zhdict.sqlite3")
    code = f"from pipimem.index import chinese; chinese.build({target!r}); print(chinese.is_sound({target!r}))"
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["True\n", "True\n"]
    assert os.listdir(folder) == ["zhdict.sqlite3"]


def test_a_dictionary_that_cannot_be_written_is_an_error_with_its_name(tmp_path: os.PathLike[str]) -> None:
    target = os.path.join(tmp_path, "no folder", "zhdict.sqlite3")
    with pytest.raises(Refused, match="no folder"):
        chinese.build(target)
    os.mkdir(os.path.join(tmp_path, "no folder"))
    os.mkdir(target)  # cannot be replaced by a file
    with pytest.raises(Refused):
        chinese.build(target)
    assert os.listdir(os.path.join(tmp_path, "no folder")) == ["zhdict.sqlite3"]


def test_what_is_no_dictionary_is_told_apart_and_can_be_made_anew(path: str, tmp_path: os.PathLike[str]) -> None:
    target = os.path.join(tmp_path, "字典 ?#%25.sqlite3")
    for content in (None, b"", b"garbage" * 1000, sqlite_of("CREATE TABLE x(y)", tmp_path), head_of(path, 100)):
        if content is not None:
            with open(target, "wb") as file:
                file.write(content)
        assert not chinese.is_sound(target)
        with pytest.raises(Unreadable, match="cannot be used"):
            chinese.dictionary_cutter(target).cut("数据库")
    chinese.build(target)
    assert chinese.is_sound(target)
    assert chinese.dictionary_cutter(target).cut("数据库") == ["数据", "据库", "数据库"]


def sqlite_of(sql: str, folder: os.PathLike[str]) -> bytes:
    name = os.path.join(folder, "other.sqlite3")
    db = sqlite3.connect(name)
    db.executescript(sql)
    db.close()
    with open(name, "rb") as file:
        return file.read()


def head_of(path: str, share: int) -> bytes:
    with open(path, "rb") as file:
        return file.read(os.path.getsize(path) // share)


def test_a_dictionary_of_another_version_is_not_used(path: str, tmp_path: os.PathLike[str]) -> None:
    target = os.path.join(tmp_path, "zhdict.sqlite3")
    with open(target, "wb") as file:
        file.write(head_of(path, 1))
    assert chinese.is_sound(target)
    db = sqlite3.connect(target)
    db.execute(f"PRAGMA user_version = {chinese.FORMAT + 1}")
    db.close()
    with pytest.raises(Unreadable, match="another version"):
        chinese.dictionary_cutter(target)


def test_a_dictionary_with_a_torn_page_is_unreadable_not_a_database_error(
    path: str, tmp_path: os.PathLike[str], words: list[str]
) -> None:
    target = os.path.join(tmp_path, "zhdict.sqlite3")
    data = bytearray(head_of(path, 1))
    data[8192 : len(data) - 4096] = bytes(len(data) - 4096 - 8192)
    with open(target, "wb") as file:
        file.write(data)
    assert not chinese.is_sound(target)
    with pytest.raises(Unreadable):
        chinese.dictionary_cutter(target).cut_many(joined(words, 8, 50))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_dictionary_of_another_user_is_not_trusted(path: str, tmp_path: os.PathLike[str]) -> None:
    target = os.path.join(tmp_path, "zhdict.sqlite3")
    with open(target, "wb") as file:
        file.write(head_of(path, 1))
    os.chown(target, 12345, -1)
    with pytest.raises(Unreadable, match="another user"):
        chinese.dictionary_cutter(target)
    assert not chinese.is_sound(target)


def test_a_dictionary_in_a_read_only_folder_is_asked_without_a_trace(path: str) -> None:
    before = os.stat(path).st_mtime_ns, os.listdir(os.path.dirname(path))
    os.chmod(os.path.dirname(path), 0o500)
    try:
        assert chinese.dictionary_cutter(path).cut("数据库迁移") == ["数据", "据库", "数据库", "迁移"]
    finally:
        os.chmod(os.path.dirname(path), 0o700)
    assert (os.stat(path).st_mtime_ns, os.listdir(os.path.dirname(path))) == before


def test_threads_may_share_a_cutter(path: str, words: list[str]) -> None:
    runs = joined(words, 9, 400)
    expected = bulk_without_rjieba().cut_many(runs)
    shared, wrong = chinese.dictionary_cutter(path), []

    def work() -> None:
        if shared.cut_many(runs) != expected:
            wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    shared.close()
    assert wrong == []


OTHERS = """
import sys
from pipimem.index import chinese
if {first}:
    import rjieba
    rjieba.add_word("部署窗口改到", 90_000, "")
    assert "部署窗口改到" in rjieba.cut("部署窗口改到周四", False)
ours = chinese.bulk_cutter({extra})
assert ours.source == "rjieba"
assert ("部署窗口改到" in ours.cut("部署窗口改到周四")) is bool({extra})
import rjieba
assert ("部署窗口改到" in rjieba.cut("部署窗口改到周四", False)) is {first}
"""


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("extra", [{}, {"部署窗口改到": 90_000}])
def test_words_added_by_the_program_around_us_are_not_ours_nor_ours_its(first: bool, extra: dict[str, int]) -> None:
    pytest.importorskip("rjieba")
    code = OTHERS.format(first=first, extra=extra)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


COLD = """
import sys
from pipimem.index import chinese, words
if {rjieba}:
    sys.modules["rjieba"] = None
cutter = chinese.bulk_cutter() if {bulk} else chinese.dictionary_cutter({path!r})
assert cutter.cut("数据库迁移") == ["数据", "据库", "数据库", "迁移"], cutter.cut("数据库迁移")
assert words.query("数据库迁移 deploy", cutter.cut_many).words
cutter.close()
assert "jieba" not in sys.modules
assert {bulk} or "rjieba" not in sys.modules
"""


@pytest.mark.parametrize("bulk", [False, True])
def test_jiebas_cache_file_is_neither_read_nor_written(path: str, tmp_path: os.PathLike[str], bulk: bool) -> None:
    import marshal

    folder = os.path.join(tmp_path, "temporary")
    os.mkdir(folder)
    cache = os.path.join(folder, "jieba.cache")
    with open(cache, "wb") as file:
        marshal.dump(({"数": 1, "据库迁": 10**6}, 10**6), file)
    os.chmod(cache, 0o000)
    os.chmod(folder, 0o500)
    before = os.stat(cache)
    environment = {**os.environ, "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    code = COLD.format(path=path, bulk=bulk, rjieba=bulk)
    both = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    results = [(*process.communicate(), process.returncode) for process in both]
    os.chmod(folder, 0o700)
    assert results == [("", "", 0), ("", "", 0)]
    assert os.listdir(folder) == ["jieba.cache"]
    assert (os.stat(cache).st_mtime_ns, os.stat(cache).st_size) == (before.st_mtime_ns, before.st_size)
