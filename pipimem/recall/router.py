"""Whether a message needs memory at all, and what to look for: words and shapes only, the same answer every time.

The message is cut into segments (sentences and lines). Each is worth the sum of its cues (`cues`, `look`), and one that
is worth enough makes the router fire; so what pads a message neither hides nor dilutes what was asked.
"""

from __future__ import annotations

from pipimem.recall import cues
from pipimem.recall.look import GENERIC, look, near_by, runs
from pipimem.recall.query import spelled_out, subjects, telling, translated
from pipimem.recall.signature import is_error, signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipimem.recall.look import Found

LAYERS = ("session", "memory", "user", "note", "history", "skill")
FIRE = 3.0
"""What a segment must be worth: one cue that decides alone, or hints that add up to it."""
OURS, TEXTBOOK = 4.0, "a textbook term"
"""How much a generic question weighs less when it is about something of ours. A textbook term does not count against a
message that is about something here (`OF_HERE`)."""
OF_HERE = frozenset(("ours", "a failure", "an identifier", "prior context"))
KEPT = frozenset(("prior context", "ours", "a failure"))
"""What makes a request about its own text a matter of memory after all."""
SHORTEST, HEAD, TAIL = 4, 8_000, 4_000
"""The shortest message that is no word of its own, and how much of a long one is read at both ends, in characters."""
QUERIES, TASKS, SEGMENTS, LONGEST, INSTRUCTION = 6, 2, 200, 600, 60
"""At most so many sentences asked, tasks of one, segments read, characters of a segment, characters in which a request
says what it wants."""
ENDS = (". ", "? ", "! ", "; ")
HAN_ENDS = "。？！；?!"
TITLES = ("Mr", "Ms", "Mrs", "Dr", "St", "No", "vs", "e.g", "i.e", "etc", "approx")
MATHS = frozenset("0123456789.,+-*/x×÷^()=?？% ")
IN_WORDS = (" off ", " of ", " times ", " plus ", " minus ")


class Group:
    """The queries of one sentence. `tasks`: what the tasks it names are called in notes. `aside`: it stands beside the
    question and needs more evidence.
    """

    __slots__ = ("aside", "queries", "tasks")

    def __init__(self, queries: Sequence[str], tasks: Sequence[str] = (), *, aside: bool = False) -> None:
        self.queries = list(queries)
        self.tasks = list(tasks)
        self.aside = aside

    @property
    def other(self) -> str:
        """What to ask when the queries find nothing or a single word: the sentence in the other language, or ""."""
        return translated(self.queries[0])


class Route:
    """The router's answer: whether to look, why, with which queries, in which layers, within how many tokens.

    `groups` holds the queries by what they ask for, each group judged by itself.
    """

    __slots__ = ("budget", "fire", "groups", "layers", "reason")

    def __init__(self, reason: str, groups: Sequence[Group], budget: int, *, fire: bool) -> None:
        self.fire = fire
        self.reason = reason
        self.groups = list(groups)
        self.layers = list(LAYERS)
        self.budget = budget

    @property
    def queries(self) -> list[str]:
        """Every query once, in the order they are asked."""
        return list(dict.fromkeys(query for group in self.groups for query in (*group.queries, *group.tasks)))


def route(
    text: str, *, budget: int, always: bool = False, errors: Sequence[str] = (), files: Sequence[str] = ()
) -> Route:
    """Decides for one message. `budget` is clamped to 100–1,500 tokens (design §5); no model, no clock, no chance.

    `always` looks whatever the message is; `errors` and `files` are reason enough unless it is a command or a sum.
    """
    budget = max(100, min(1500, budget))
    if len(text) > HEAD + TAIL:
        text = f"{text[:HEAD]}\n{text[-TAIL:]}"
    bare = text.strip().replace("为什么是", "为什么 是")  # else 什么是 would ask for an explanation
    bare = bare.replace("ERR! ", "ERROR ")  # as npm begins its lines: no end of a sentence
    given = [*map(signature, errors), *files]
    reason = "" if always else _never(bare, given=bool(given))
    if reason:
        return Route(reason, [], budget, fire=False)
    parts, near = list(segments(bare)), near_by(bare)
    cued = [look(part, near) for part in parts]
    worths = [worth(found) for found in cued]
    best = max(range(len(parts)), key=worths.__getitem__, default=-1)
    enough = best >= 0 and (worths[best] >= FIRE or (cued[best] and len(bare) < SHORTEST))  # 又
    if not (always or given or enough):
        return Route(_against(cued[best] if best >= 0 else {}), [], budget, fire=False)
    reason = "asked for" if always else _for(cued[best]) if enough else "an error or file was given"
    groups = [*_groups(parts, worths), *(Group([g]) for g in given if g)]
    if not (always or any(group.queries for group in groups)):  # `File "` alone: an error without a name
        return Route("nothing in it to look for", [], budget, fire=False)
    return Route(reason, groups, budget, fire=True)


def segments(text: str) -> Iterator[str]:
    """The sentences and lines of `text`, each at most 600 characters, at most 200 of them."""
    for end in ENDS:
        text = text.replace(end, end[0] + "\n")
    for title in TITLES:
        text = text.replace(f" {title}.\n", f" {title}. ")
    for sign in HAN_ENDS if not text.isascii() else "":
        text = text.replace(sign, sign + "\n")
    count = 0
    for line in text.split("\n"):
        for start in range(0, len(line), LONGEST):
            piece = line[start : start + LONGEST].strip()
            if piece and count < SEGMENTS:
                count += 1
                yield piece


def worth(found: Found) -> float:
    """What a segment's cues add up to, with what two of them mean together."""
    total = sum(weight for weight, _ in found.values())
    total += sum(weight for one, other, weight, _ in cues.PAIRS if one in found and other in found)
    if GENERIC in found and "ours" in found:
        total += OURS
    if TEXTBOOK in found and not OF_HERE.isdisjoint(found):
        total -= found[TEXTBOOK][0]
    return total


def _for(found: Found) -> str:
    weight, phrase, name = max((w, p, n) for n, (w, p) in found.items())
    return f"{name}: {phrase}" if weight > 0 else "several hints"


def _against(found: Found) -> str:
    weight, name = min(((w, n) for n, (w, _) in found.items()), default=(0.0, ""))
    return name if weight < 0 else "nothing points to memory"


# What to look for


def _groups(parts: Sequence[str], worths: Sequence[float]) -> list[Group]:
    """The segments worth looking for, the best first, then what stands beside them; all when none stands out.

    A segment is asked by its telling words and, where it names a task, by what that task is called in notes. Beside an
    error message every other line stands aside: the frames of a trace are chance.
    """
    order = sorted(range(len(parts)), key=lambda i: (-worths[i], i))
    chosen = [i for i in order if worths[i] >= FIRE] or order
    beside = [j for i in chosen for j in (i - 1, i + 1) if 0 <= j < len(parts) and worths[j] >= 0]
    told = any(is_error(parts[i]) for i in chosen)
    groups: dict[str, Group] = {}
    asked = [i for i in dict.fromkeys([*chosen, *beside]) if not is_error(parts[i]) or signature(parts[i])]
    for i in asked[:QUERIES]:
        tasks = subjects(runs(parts[i]), parts[i])[:TASKS]
        said = _before_colon(parts[i]) if tasks else parts[i]
        query = telling(said)
        full = spelled_out(query)
        aside = i not in chosen or (told and not is_error(parts[i]))
        groups.setdefault(query, Group([query, *([full] if full else [])], tasks, aside=aside))
        if len(said) < len(parts[i]):
            groups.setdefault(telling(parts[i]), Group([telling(parts[i])], aside=True))
    return list(groups.values())


def _before_colon(part: str) -> str:
    """The task of a sentence that brings its text along ("write a notice: …"); the whole sentence when it does not, or
    when what follows asks for something itself.
    """
    ends = [at for sign in (": ", "：") if (at := part.find(sign)) > 0]
    if not ends:
        return part
    after = part[min(ends) + 1 :].strip()
    return part if worth(look(after, near_by(after))) >= FIRE else part[: min(ends)]


# What is never looked for


def _never(bare: str, *, given: bool) -> str:
    """Why a message needs no memory whatever else stands in it; "" when that is not so."""
    if bare.startswith(("/", "!")) and bare[1:2].isalpha() and "/" not in bare[1:].split(" ")[0]:
        return "a command"
    if _one_off(bare):
        return "a one-off question"
    if len(bare) < SHORTEST and not given and not _is_prior(bare):
        return "too short"
    return "" if given else _on_its_own(bare)


def _is_prior(bare: str) -> bool:
    """Whether a very short message is itself a word of earlier context, as 又 and 上次 are."""
    return "记得" in bare or any(bare in han.split() for _, _, _, han in cues.CUES[:2])


def _one_off(bare: str) -> bool:
    """Sums, shell lines, and what any clock knows."""
    lower = bare.lower()
    english, han = cues.CLOCK
    if lower.startswith(tuple(english.split("|"))) or (len(bare) < 12 and any(p in bare for p in han.split())):
        return True
    return _is_sum(lower) or _is_shell(bare, lower)


def _is_sum(lower: str) -> bool:
    for word in IN_WORDS:
        lower = lower.replace(word, " ")
    total = lower.removeprefix("what is").removeprefix("what's").removeprefix("计算").strip()
    return bool(total) and MATHS.issuperset(total)


def _is_shell(bare: str, lower: str) -> bool:
    """One line that begins with a program and holds no word of a sentence."""
    words = lower.split()
    if not words or not bare.isascii() or "\n" in bare or bare.endswith("?"):
        return False
    return words[0] in cues.SHELL.split() and set(cues.SENTENCE.split()).isdisjoint(words[1:])


def _on_its_own(bare: str) -> str:
    """Whether it works on text it brings along, or asks for an invention: then the rest of it is only material."""
    first, _, rest = bare.partition("\n")
    for line in (first, rest.rpartition("\n")[2][:INSTRUCTION]):
        said = instruction(line[:INSTRUCTION])
        opening = frozenset(runs(said)[:40])
        made = _any(opening, said, cues.CREATIVE)
        if not made and not _any(opening, said, cues.TRANSFORM):
            continue
        found = look(instruction(line), near_by(line))
        if KEPT.isdisjoint(found) or (made and "prior context" not in found):
            return "a generic request"
    return ""


def _any(latin: frozenset[str], text: str, table: tuple[str, str]) -> bool:
    english, han = table
    return not latin.isdisjoint(english.split("|")) or (not text.isascii() and any(p in text for p in han.split()))


def instruction(line: str) -> str:
    """What a line asks for, without what it quotes or what follows its colon."""
    said = line
    for sign in (": ", "：", '"', "“", "「", "```", "`"):
        before, found, after = said.partition(sign)
        if found:
            said = before if len(before) > 4 else after.partition("”" if sign == "“" else sign)[2]
    return said
