"""The updater that needs no model: rules in English and Chinese find what people said outright; sentences are chosen,
never written.

A rule is a pattern over one sentence of a person, the kind of entry it makes and how sure it is. What a rule cannot
be sure of (a hedge, a question, a quote, an unnamed speaker in a group) is left out or becomes a proposal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from pipimem.update.window import Sentence

SHORT, LONG = 6, 300


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` (its group `what`, if any, is the text kept), kind, confidence 0 to 1, and the reason people read."""

    name: str
    kind: str
    confidence: float
    pattern: re.Pattern[str]
    explicit: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a rule found: kind, text and confidence, and the sentence it rests on."""

    rule: Rule
    text: str
    kind: str
    confidence: float
    sentence: Sentence


@dataclass(slots=True)
class Findings:
    """Everything the rules found in a window."""

    memory: list[Found] = field(default_factory=list)
    forget: list[Found] = field(default_factory=list)


def _rule(name: str, kind: str, confidence: float, pattern: str, *, explicit: bool = False) -> Rule:
    return Rule(name, kind, confidence, re.compile(pattern, re.IGNORECASE), explicit)


FORGET = (
    _rule("asked to forget", "forget", 0.9,
          r"^(?:please |pls )?(?:forget|delete the note|remove the note)\s+(?:about\s+|that\s+)?(?P<what>(?!it\b).{4,})$"),
    _rule("请求忘掉", "forget", 0.9, r"^(?:请|麻烦)?(?:你)?(?:忘掉|忘记|忘了|别再记|不用再记)(?:这件事|关于)?[：:，, ]*(?P<what>.{3,})$"),
)  # fmt: skip

RULES = (
    _rule("asked to remember", "", 0.95,
          r"^(?:@\S+ )?(?:(?:please|pls|ok|okay|also|and|can you|could you|for the record)[, ]+)*"
          r"(?:remember(?: this)?|note(?: this)?(?: down)?|keep in mind|don['’]t forget|make a note|for the record)"
          r"\s*(?:[:,]|that\b|,)\s*(?:that\s+)?(?P<what>.+)$", explicit=True),
    _rule("请求记住", "", 0.95,
          r"^(?:@\S+\s*)?(?:(?:请|麻烦|帮我|帮忙|你|也|另外|还有|对了)[，, ]*)*(?:记住|记一下|记下来?|记录一下|备忘)(?:了)?"
          r"(?:这[一]?[点件][事]?)?[：:，, ]*(?P<what>.+)$", explicit=True),
    _rule("a correction", "correction", 0.9,
          r"^(?:(?:no|nope|wait|actually|correction|sorry|hmm)[,:.! ]+)+(?:actually[, ]+)?"
          r"(?P<what>(?:that['’]?s (?:wrong|not right|outdated)[,;:.] ?)?(?=.*\b(?:is|are|was|not|should|use|uses|runs?|moved|has|goes|means|lives)\b).+)$"),
    _rule("更正", "correction", 0.9,
          r"^(?:@\S+\s*)?(?:更正(?:一下)?|纠正(?:一下)?|勘误|不对|不是的|说错了|搞错了|我记错了|错了)[：:，,。!！ ]+(?P<what>.*(?:是|为|改|应该|用|在|要).*)$"),
    _rule("a decision", "decision", 0.9,
          r"^(?:(?:ok|okay|so|right|alright|great|good|then|yes|yeah|decision)[,:. ]+)*"
          r"(?P<what>(?:decision: *.+|(?:we|the team)(?:['’]ve| have| just)* (?:decided|agreed|settled on|chose|picked|are going with|went with|will go with)\b.+"
          r"|(?:let['’]s|we['’]ll|we will) (?:go with|stick with|settle on|standardi[sz]e on|switch to|move to)\b.+))$"),
    _rule("决定", "decision", 0.9,
          r"^(?:@\S+\s*)?(?:(?:好|好的|那|那就|行|OK|ok|嗯|所以|最后|最终|会上|刚才|今天)[，, ]*)*"
          r"(?P<what>(?:我们|大家|团队|会上)?(?:已经|刚刚|一致|最终|最后)?(?:决定|定了|商定|敲定|拍板|确定)(?:了|下来)?[：:，, ]*.{4,}|结论(?:是|：|:).{4,})$"),
    _rule("a constraint", "constraint", 0.88,
          r"^(?:(?:and|also|but|please|ok|remember|so|note)[,: ]+)*"
          r"(?P<what>(?:never|do not ever|don['’]t ever|under no circumstances|no one (?:may|is allowed to))\b.+"
          r"|.{3,80}\b(?:must not|must never|mustn['’]t|may not|is not allowed|are not allowed|must always|must stay|must be)\b.+)$"),
    _rule("约束", "constraint", 0.88,
          r"^(?:@\S+\s*)?(?:(?:注意|另外|还有|切记|记得|但是?|而且)[，,：: ]*)*"
          r"(?P<what>(?:千万|绝对|一律|严禁|禁止|绝不|决不|不许|不准|不得|不允许|任何人?都?不).{3,}|.{2,40}(?:必须|不得|不允许|禁止|不准|严禁|绝对不能|一律不|千万别|千万不要).{2,})$"),
    _rule("a preference", "preference", 0.88,
          r"^(?:(?:and|also|btw|fyi|ok|please|oh|by the way)[,: ]+)*"
          r"(?P<what>(?:I|we) (?:(?:really|much|strongly|generally|usually|personally) )?(?:prefer|['’]?d rather|always (?:use|want|write|like)|like (?:my|our|the)|hate|can['’]t stand)\b.+"
          r"|(?:from now on|going forward|in future|in the future)[, ]+.+|always (?:use|write|run|put|keep|answer|reply|start|add)\b.+)$"),
    _rule("偏好", "preference", 0.88,
          r"^(?:@\S+\s*)?(?:(?:对了|另外|还有|顺便|顺便说一下)[，, ]*)*"
          r"(?P<what>(?:我|我们|本人)?(?:以后|今后|往后|从今天起|从现在起|从下周起|之后)(?:我们|大家|咱们)?(?:都|一律|统一|就|默认|请).{3,}|我(?:们)?(?:更|比较|最|还是|一般|一直|都)?(?:喜欢|偏好|习惯|倾向|讨厌|不喜欢).{3,}|(?:默认|统一)(?:都)?用.{3,})$"),
    _rule("an open loop", "open-loop", 0.86,
          r"^(?:(?:and|also|ok|so|right|then|note)[,: ]+)*"
          r"(?P<what>(?:TODO|to[- ]do|action item|follow[- ]up|next up|next step)s?\b[: ]+.+"
          r"|(?:next,? )?(?:we|I) (?:still|also|next) (?:need|have) to\b.+|next,? (?:we|I) (?:need|have) to\b.+|we (?:still )?need to\b.+\b(?:before|by|until|next|later)\b.+)$"),
    _rule("待办", "open-loop", 0.86,
          r"^(?:@\S+\s*)?(?P<what>(?:待办|TODO|todo|还差|遗留(?:问题)?|下一步|接下来|后续)(?:事项|是|要|需要|得)?[：:，, ]*.{4,}|(?:我|我们|[\u4e00-\u9fff]{1,4})?(?:还|仍)(?:需要|要|得|没有?|缺).{4,})$"),
    _rule("an error and its fix", "failure", 0.88,
          r"^(?:(?:ok|so|right|ah|found it|got it|yes|turns out)[,:;. —-]+)*"
          r"(?P<what>(?:(?:the )?(?:root )?cause (?:was|is|turned out)\b|the (?:fix|problem|issue|bug|reason) (?:was|is|turned out)\b|it turned out\b|turned out\b|fixed (?:it )?by\b|fixed:).+"
          r"|.{3,160}\b(?:comes? from|came from|happens? (?:when|because))\b.+\bthe (?:fix|cure|workaround) (?:was|is)\b.+"
          r"|.{6,160}\b(?:was caused by|fails? (?:with|because|when)|failed (?:with|because)|broke because|crashe[sd] (?:with|because|when))\b.+)$"),
    _rule("报错与修复", "failure", 0.88,
          r"^(?:@\S+\s*)?(?:(?:找到了|查到了|搞定了?|解决了|好了|原来)[，,：:。! ！]*)*"
          r"(?P<what>(?:根因|原因|问题|报错原因|故障原因|根本原因)(?:是|在于|出在|：|:).{4,}|(?:修复|解决)(?:办法|方法|方式|方案)(?:是|：|:).{4,}|.{4,80}(?:报错|失败|崩溃|挂了|超时).{0,40}(?:因为|由于|是.{2,30}(?:导致|引起)|重启|改成|改为|升级|回滚|加上|解决|修复).{1,}|.{3,60}(?:导致|引起)(?:的|了).{2,}|.{0,20}(?:报错|失败|崩溃).{4,120}(?:就好了|就行了|就正常了|就可以了).{0,3})$"),
)  # fmt: skip

QUESTION = re.compile(
    r"[?？]\s*$|[吗呢么][。！!]?\s*$|^(?:what|why|how|when|where|who|which|can|could|should|do|does|did|is|are|was|were|will|would|shall|have|has)\b"
    r"(?!.*\bremember\b)|^(?:怎么|为什么|为啥|什么|哪|谁|几点|是否|能不能|可不可以|要不要|有没有)",
    re.IGNORECASE,
)
HEDGE = re.compile(
    r"\b(?:maybe|perhaps|i think|i guess|i wonder|not sure|probably|might|if we|what if|could be|should we|kidding|joking|just kidding|lol|haha)\b"
    r"|可能|也许|大概|或许|好像|说不定|不确定|要是|如果.*的话|开玩笑|哈哈|万一|考虑一下|想想|再说吧|建议",
    re.IGNORECASE,
)
EMPTY = re.compile(
    r"^(?:that|this|it|these|those|them)[.! ]*$|^(?:it|this|that)(?:['’]s| is| was) (?:ok|fine|good|done|all|great|wrong|right)[.! ]*$|^(?:这个|那个|这|那|它|这件事|一下)[。！]*$",
    re.IGNORECASE,
)
GUESSES = (
    ("decision", re.compile(r"\b(?:decided|agreed|we(?:['’]re| are) going with|go(?:ing)? with)\b|决定|定了|敲定|拍板", re.I)),
    ("constraint", re.compile(r"\b(?:never|must|not allowed|mustn['’]t|may not|don['’]t|do not)\b|不要|不能|必须|禁止|不得|严禁|别", re.I)),
    ("preference", re.compile(r"\b(?:prefers?|likes?|always|rather|favou?rite)\b|喜欢|偏好|习惯|以后都|一律|默认", re.I)),
    ("open-loop", re.compile(r"\b(?:todo|need to|have to|follow up|by (?:mon|tues|wednes|thurs|fri)day)\b|待办|需要|还没|要在", re.I)),
)  # fmt: skip


def find(items: list[Sentence]) -> Findings:
    """What the rules find, in order; each sentence gives at most one thing."""
    findings = Findings()
    for sentence in items:
        if sentence.message.role != "user" and not _assistant_may(sentence):
            continue
        found = _first(FORGET, sentence)
        if found:
            findings.forget.append(found)
            continue
        found = _first(RULES, sentence)
        if found and _worth(found):
            findings.memory.append(found)
    return findings


def _assistant_may(sentence: Sentence) -> bool:
    """The assistant may report what broke and why; facts, wishes and rules are people's."""
    found = _first(RULES, sentence)
    return found is not None and found.kind == "failure" and sentence.message.role == "assistant"


def _first(rules: tuple[Rule, ...], sentence: Sentence) -> Found | None:
    for rule in rules:
        match = rule.pattern.match(sentence.text)
        if match:
            text = tidy(match["what"])
            kind = rule.kind or guess(text)
            return Found(rule, text, kind, rule.confidence, sentence)
    return None


def _worth(found: Found) -> bool:
    text = found.text
    if not SHORT <= len(text) <= LONG or EMPTY.match(text):
        return False
    if QUESTION.search(found.sentence.text) and not found.rule.explicit:
        return False
    if text.endswith(("?", "？")) or HEDGE.search(text if found.rule.explicit else found.sentence.text):
        return False
    return len(text.split()) >= 3 or any("\u3400" <= c <= "\u9fff" for c in text)


def guess(text: str) -> str:
    """The kind of something a person asked to remember: by its words, else a plain fact."""
    return next((kind for kind, pattern in GUESSES if pattern.search(text)), "fact")


LEAD = re.compile(r"^(?P<lead>[^:：`\"“0-9]{3,40})[:：]\s*(?P<rest>.{6,})$")
FILLER = re.compile(
    r"^(?:one (?:more )?thing|as ever|as always|reminder|heads[- ]?up|for the record|important|please note|note|and|also|just so you know)\b"
    r"|[，,]|^(?:对了|另外|还有|注意|提醒|再说一遍|顺便|老规矩|又失败了|刷机又失败了)|又.{1,6}了$",
    re.IGNORECASE,
)


def tidy(text: str) -> str:
    """The text as an entry: lead-in, outer quotes, label and final full stop off, a capital first letter."""
    lead = LEAD.match(text.strip())
    if lead and FILLER.search(lead["lead"]):
        text = lead["rest"]
    text = re.sub(
        r"^(?:decision|to-?do|action item|follow-?up|next step|待办|TODO|结论|决定了?)s?[：: ]+",
        "",
        text.strip(),
        flags=re.I,
    )
    text = text.strip(" \"'“”‘’，,；;：:").rstrip(".。!！ ")
    return text[:1].upper() + text[1:] if text[:1].isascii() and not re.match(r"\S*[_./()\d]", text) else text
