"""Whether a message needs memory at all, and where to look: words and shapes only, the same answer every time.

English phrases are looked up as runs of one to four words, Chinese ones as substrings: no pattern is compiled for
them, since compiling a few hundred alternatives costs more than the whole search.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

LAYERS = ("session", "memory", "user", "note", "history", "skill")
SHORTEST, LONGEST = 4, 20_000


def _phrases(text: str) -> frozenset[str]:
    return frozenset(" ".join(p.split()) for p in text.split("|"))


PRIOR = _phrases(
    "again|last time|last week|last month|last year|last sprint|last quarter|previous|previously|earlier|before|remember|"
    "remembered|remind me|recall|what did we|what did i|what did you|what did they|did we|did i|did you|have we|have i|"
    "have you|we decided|we agreed|we discussed|we settled|same issue|same problem|same error|why did we|why do we|"
    "why don't we|why are we|why is our|why is the|why was the|why were the|why do our|why does the|who owns|who is|"
    "who's|who decided|who asked|who runs|who said|who handles|who approves|when did|when do|when does|when is|"
    "when are|when was|when were|when will|as usual|like we did|our policy|our rule|our convention|our decision|"
    "what is our|what's our|what are our|what was the|what were the|do we have|do we still|are we still|known issue"
)
WORK = _phrases(
    "fix|fixes|fixed|debug|build|builds|deploy|deploys|deployed|deploying|deployment|deployments|release|releases|"
    "rollback|roll back|migrate|migration|migrations|migrating|refactor|test|tests|testing|failed|failing|fails|fail|"
    "crash|crashes|crashed|crashing|error|errors|exception|timeout|timeouts|times out|incident|oncall|on call|runbook|"
    "how do we|how do i|how should we|how should i|how did we|where is|where are|where do|where does|which port|"
    "which host|which version|which branch|which database|which server|which key|which file|which repo|config|"
    "configuration|setup|set up|upgrade|upgrading|backup|backups|restore|merge|staging|production|prod|server|database|"
    "port|endpoint|pipeline|ci|cache|queue|webhook|bot|api|token|secret|vault|certificate|budget|deadline|customer|client|"
    "ship|launch|rollout|feature flag|threshold|limit|retention|invoice|contract|supplier|vendor"
)
PREFERENCE = _phrases(
    "style|format|formatting|naming|commit message|commit messages|convention|conventions|lint|linter|linting|"
    "package manager|prefer|prefers|preferred|preference|preferences|favourite|favorite|likes|allergic|allergy|"
    "birthday|vegetarian|vegan|pnpm|npm|yarn|poetry|tabs|indent|indentation|tone|timezone|time zone|calendar|schedule|"
    "meeting|meetings|standup|lunch|holiday|vacation|office"
)
PRIOR_HAN = (
    "上次 上回 之前 以前 记得 还记 回忆 历史 当时 曾经 刚才说 昨天 上周 上个月 去年 再次 同样的问题 老问题 踩过 怎么定 怎么决定 怎么处理 "
    "为什么 为啥 谁负责 谁定 谁说 谁管 谁来 谁在 谁提 是谁 由谁 归谁 什么时候 哪天 哪一天 几点 周几 几号 多久 多少 约定 规定 说好 又 定的 怎么说"
).split()
WORK_HAN = (
    "部署 上线 发布 回滚 修复 报错 错误 异常 失败 崩溃 超时 故障 事故 值班 调试 构建 编译 测试 迁移 升级 配置 备份 恢复 重构 合并 "
    "怎么 如何 在哪 哪里 哪个 哪台 哪些 端口 地址 版本 分支 负责 数据库 服务器 缓存 队列 接口 机器人 阈值 上限 限制 保留 密钥 证书 客户 供应商 "
    "合同 预算 截止 计划 进度 方案 结论 决定 约束 待办 教训 规则 流程"
).split()
PREFERENCE_HAN = (
    "风格 格式 命名 规范 习惯 偏好 喜欢 口味 过敏 生日 忌口 语气 用什么 安排 会议 例会 时间表 窗口 周会 站会 请假 假期 午饭 聚餐"
).split()
GENERIC = _phrases(
    "explain|define|translate|summarize this|summarise this|write a poem|write a haiku|write a joke|write a story|"
    "tell me a joke|what is a|what is an|what is the difference|what is the meaning|what's a|thanks|thank you|ok|okay|"
    "great|good morning|good night|hi|hello|hey|lol|please explain|please translate|can you explain|can you translate"
)
GENERIC_HAN = (
    "解释 请解释 翻译 请翻译 帮我翻译 介绍一下 讲个 写一首 写首 帮我写 写个笑话 写个故事 什么是 谢谢 好的 收到 早上好 早安 晚安 你好 哈哈 辛苦了"
).split()
SHELL = frozenset(["ls", "cd", "pwd", "cat", "echo", "git", "grep", "rm", "mkdir", "curl"])
MATHS = frozenset("0123456789.,+-*/x×÷^()=?？ ")
DAY = (
    "what day is it",
    "what time is it",
    "what date is it",
    "what is the date",
    "what's the date",
    "what's the time",
)
DAY_HAN = ("今天几号", "今天是几号", "今天星期几", "今天周几", "现在几点", "现在是几点")
SHAPES = (
    r"[\w.-]+/[\w./-]+|\b\w+\.(?:py|md|ts|js|go|rs|toml|ya?ml|json|sh|sql|ini|log)\b|[a-z]+_[a-z0-9_]+|\b[a-z]+[A-Z]\w+"
    r"|[A-Z]{2,}[-_]?[A-Z]?\d+|\bE[A-Z]{4,}\b|\bv?\d+\.\d+|Traceback|--[a-z][\w-]+|[A-Z][A-Z0-9]+_[A-Z0-9_]+|#\d+"
)


class Route:
    """The router's answer: whether to look, why, with which queries, in which layers, within how many tokens."""

    __slots__ = ("budget", "fire", "layers", "queries", "reason")

    def __init__(self, reason: str, queries: Sequence[str], budget: int, *, fire: bool) -> None:
        self.fire = fire
        self.reason = reason
        self.queries = list(queries)
        self.layers = list(LAYERS)
        self.budget = budget


def route(
    text: str, *, budget: int, always: bool = False, errors: Sequence[str] = (), files: Sequence[str] = ()
) -> Route:
    """Decides for one message. `budget` is clamped to 100–1,500 tokens (design §5); no model, no clock, no chance."""
    budget = max(100, min(1500, budget))
    text = text[:LONGEST]
    if always:
        return Route("asked for", [text, *errors, *files], budget, fire=True)
    reason, fire = _decide(text, signals=bool(errors or files))
    return Route(reason, [text, *errors, *files] if fire else [], budget, fire=fire)


def _decide(text: str, *, signals: bool) -> tuple[str, bool]:
    bare = text.strip()
    if bare.startswith(("/", "!")) and bare[1:2].isalpha() and "/" not in bare[1:].split(" ")[0]:
        return "a command", False
    if _one_off(bare):
        return "a one-off question", False
    runs = _runs(bare)
    prior = _first(runs, PRIOR) or _first_in(bare, PRIOR_HAN)
    if prior:
        return f"prior context: {prior}", True
    if len(bare) < SHORTEST:
        return "too short", False
    if signals:
        return "an error or file was given", True
    shape = re.search(SHAPES, bare)
    if not shape and (any(r in GENERIC for r in runs[:4]) or bare.startswith(tuple(GENERIC_HAN))):
        return "a generic request", False
    for name, english, han in (
        ("project work", WORK, WORK_HAN),
        ("a preference", PREFERENCE, PREFERENCE_HAN),
    ):
        found = _first(runs, english) or _first_in(bare, han)
        if found:
            return f"{name}: {found}", True
    if shape:
        return f"an identifier: {shape[0][:40]}", True
    return "nothing points to memory", False


def _one_off(bare: str) -> bool:
    """Sums, shell lines, and what any clock knows."""
    sum_of = bare.lower().removeprefix("what is").removeprefix("what's").removeprefix("计算").strip()
    if sum_of and MATHS.issuperset(sum_of):
        return True
    if bare.split(" ", 1)[0] in SHELL and not bare.endswith(("?", "？")):
        return True
    return bare.lower().startswith(DAY) or bare.startswith(DAY_HAN)


def _runs(text: str) -> list[str]:
    """Every run of one to four English words, in the order of where it starts, longer ones last."""
    words = re.findall(r"[a-z']+", text.lower().replace("’", "'"))
    return [" ".join(words[i : i + n]) for i in range(len(words)) for n in (1, 2, 3, 4) if i + n <= len(words)]


def _first(runs: Sequence[str], phrases: frozenset[str]) -> str:
    return next((run for run in runs if run in phrases), "")


def _first_in(text: str, phrases: Sequence[str]) -> str:
    return next((phrase for phrase in phrases if phrase in text), "") if not text.isascii() else ""
