"""Text that speaks to the assistant instead of informing it: the rules, in English and Chinese, and how they are read."""

from __future__ import annotations

import functools
import re

from pipimem.safety.views import glued, lowered, positions, rx, scanned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipimem.safety.views import Span


def find(text: str) -> list[Span]:
    """The places that read like an order, in no sequence; those that several rules find more than once."""
    return scanned(text, _orders)


# A rule is a line of words, one of which must occur, and below it, indented by four, what must follow. There a blank
# is any gap between words (line breaks, quote marks and emphasis included), " … " is anything up to the end of the
# clause, and {NAME} is one of the parts. All is matched in lower case; a lone "-" asks for nothing more.
_PARTS = {
    "RULES": r"(?:instructions?|prompts?|directives?|guidelines?|guardrails?|guidance|directions|rules|restrictions"
    r"|orders|programming|training)",
    "PAST": r"(?:previous|prior|above|earlier|preceding|existing|original|initial|former|past|foregoing|system|safety"
    r"|security|developer|hidden|other)",
    "FILL": r"(?: (?:all|any|the|of|your|these|those|this|its|every|each|my|completely|entirely|totally|about|to|and))",
    "MODEL": r"(?:assistants?|ai|a\.i\.|llms?|language models?|ai (?:assistants?|agents?|models?|systems?)|chatbots?"
    r"|bots?|agents?|claude|chatgpt|gpt|copilot|gemini|models?)",
    "ROLE": r"(?:ai|llm|assistant|chatbot|bot|language model|persona|hacker|terminal|jailbroken|unrestricted|unfiltered"
    r"|evil|dan)\b",
    "TALK": r"(?:sessions?|conversations?|chats?|responses?|repl(?:y|ies)|answers?|interactions?)",
    "GOODS": r"\b(?:it|this|that|them|these|everything|all|every|each|any|cop(?:y|ies)|conversations?|chats?"
    r"|transcripts?|histor(?:y|ies)|messages?|answers?|repl(?:y|ies)|responses?|summar(?:y|ies)|reports?|outputs?"
    r"|results?|contents?|memor(?:y|ies)|context|prompts?|secrets?|keys?|credentials?|passwords?|tokens?"
    r"|env(?:ironment)?|variables?|files?|data|notes?|threads?|source|code|logs?|cookies?|config(?:uration)?)\b",
    "TO": r"(?:to|at|into|via|with)(?: (?:the|this|address|endpoint|url|server|webhook)){0,3}:? ?",
    "ADDRESS": r"(?:<|\(|mailto:)?(?:https?://|wss?://|ftp://|www\.|[a-z0-9._%+-]{1,64}@[a-z0-9-]{1,63}"
    r"(?:\.[a-z0-9-]{1,63})+|(?!10\.|127\.|192\.168\.|172\.)\d{1,3}(?:\.\d{1,3}){3}|(?:[a-z0-9-]{1,63}\.){1,4}(?:com|net|org|io|example|cn|dev|xyz|top|ru|info|site|app"
    r"|invalid|test)\b)",
    "FETCH": r"(?:curl|wget)\b",
    "SHELL": r"(?:sudo\s+(?:-\S{1,8}\s+)?)?(?:/usr)?(?:/bin/)?(?:ba|z|da|k|fi)?sh\b(?!\.)",
    "过去": r"(?:之前|以前|以上|上面|上述|先前|前面|此前|所有|一切|全部|任何|原来|原有|原先|你的|系统|开发者|既定|安全)",
    "规则": r"(?:指令|指示|提示词?|规则|设定|设置|限制|约束|命令|准则|守则|人设|规定)",
    "助手": r"(?:(?:ai|人工智能|智能|大语言|大|语音|聊天|语言) ?){0,2}(?:助手|助理|模型|机器人|智能体|ai(?![a-z]))",
    "你的": r"你(?:的|收到的|最初的?|全部的?|完整的?|初始的?|原始的?|隐藏的?|第一条|所有的?){0,3} ?(?:系统)?"
    r"(?:提示词?|指令|设定|规则|系统消息|prompt|system prompt)",
    "东西": r"(?:对话|聊天|记录|内容|密钥|密码|口令|令牌|凭证|文件|数据|结果|回答|回复|摘要|报告|报表|信息|代码|记忆"
    r"|上下文|环境变量|配置|日志|历史|它|这|所有|全部|每|上述|以上|token|key|cookie)",
    "发往": r"(?:发送|发|上传|转发|提交|传|寄|抄送|同步|汇报|外传|泄露|推送|上报|post) ?(?:一份|一遍|邮件|请求)? ?"
    r"(?:给|到|至|往|去)? ?",
}
_ORDERS = r"""
# overriding what was said before
ignore|disregard|forget|pay no attention to|do not follow|don't follow|stop following|stop obeying|do not obey|set aside
    {FILL}{0,4} {PAST}(?: (?:and|or|given|messages?|conversations?|context|text|{PAST})){0,4} {RULES}\b
ignore|disregard|forget|bypass|override|overrule|break|violate|stop following
    {FILL}{0,3} your(?: [a-z-]{2,16}){0,2} (?:{RULES}|filters?|polic(?:y|ies)|constraints|limits)\b
override|bypass|discard
    {FILL}{0,4} {PAST} (?:instructions?|prompts?|directives?|guidelines?|guardrails?)\b
ignore|disregard|forget
    (?: all| any)(?: of)?(?: the| these| those)? (?:instructions|prompts|directives|guidelines|guardrails|rules)\b
    (?! (?:in|from|for|under|of|on)\b)
ignore|disregard|forget
     (?:everything|all|anything|what)(?: that)?(?: (?:is|was|were|i|you|have|has|been|they|we)){0,3}
    (?: (?:said|told|wrote|written|know|learned|given|instructed))? ?(?:above|before|previously|so far|until now)\b
ignore|disregard|forget
     (?:whatever|what|anything|everything|all)(?: that)?(?: the (?:user|system|developers?|prompt|operator|admin)| you| was| were| has| have| been){0,3}
     (?:told|said|instructed|asked|written)\b
ignore|disregard
    (?: all| everything)?(?: of)? the (?:above|foregoing) (?:and|instead|then)\b
ignore|disregard
     (?:all|everything)(?: of)?(?: the)? above(?=\W|$)
ignore|disregard|forget
    (?: all| any| the| every)* (?:(?:above|previous|prior|earlier|preceding) (?:text|context|conversations?)
    (?:\s?[;,.]| and\b| then\b)|(?:text|content|input|context|words) (?:before|above|preceding)(?: this)?\b)
ignore|disregard
     (?:the )?(?:instructions|guidelines|prompts)(?=\s?[,.;:!&]| and\b)
ignore|disregard
    (?: the| this| all)? (?:user|human|operator)(?:'s|’s|s)? (?:requests?|questions?|instructions?|input|prompts?)\b
forget
     (?:everything|all)(?: else)? ?[,.;:!]
ignore|disregard|override|bypass|forget|violate|drop
    (?: all| any| your| the| of){0,3} (?:safety|ethical|moral|content|moderation)
     (?:guidelines?|protocols?|polic(?:y|ies)|filters?|restrictions|guardrails?|rules)\b
follow|obey|execute
     (?:these|the following|my|those)? ?(?:new instructions|new orders|instructions instead|orders instead)\b
your
     (?:previous|prior|earlier|original|initial|hidden|secret|internal|system|developer) (?:[a-z]+ )?
    (?:instructions|prompts?|guidelines|directives|programming)\b
previous instructions|prior instructions|earlier instructions|original instructions
     (?:have been|has been|are|were) (?:now |hereby )?(?:revoked|cancell?ed|void|overridden|suspended|no longer|obsolete)
instruction|instructions|directive|directives|message
     (?:overrides?|supersedes?|takes? precedence over|replaces?)
     (?:all|any|your|previous|prior|every|earlier|the system|the previous|the above)\b
new instructions|updated instructions|revised instructions
     ?:
your
     (?:new|real|true|actual|secret|hidden|updated)
     (?:task|goal|objective|instructions?|role|purpose|mission|job|directive|rules?|identity) (?:is|are|now)\b
you have been|you were
     (?:reprogrammed|jailbroken|reconfigured|freed from|unlocked|instructed to ignore)\b

# speaking to the assistant
note|notes|message|instruction|instructions|notice|memo|reminder|warning|important
    ,? (?:to|for|from the developers to)(?: (?:all|any|the|every|other|future)){0,2} {MODEL}(?: [a-z]{2,12}){0,3} ?
    (?::|—|–| - |,)
attention|dear
    ,?(?: all| any)? (?:ai|llms?|ai [a-z]+|language models?|assistants?|chatbots?) ?[,:!]
assistant|assistants|agent|agents|llm|llms|ai|model|models|bot|chatbot
    (?: (?:agents?|assistants?|models?|systems?))?(?: (?:that|who|which))?(?: (?:is|are))?
     (?:reading|processing|parsing|seeing|summari[sz]ing|ingesting|indexing) this\b
ai agents|ai assistants|ai|assistant|assistants|llms|llm|models|model|agents|chatgpt|claude|gpt|copilot
     ?[:,] (?:please |you must |now )?(?:ignore|disregard|reply|respond|output|say|forget|stop|mark|treat|append|whatever)\b
whoever|whichever model|anyone who
     (?:reads|processes|summari[sz]es|is reading|is processing) this\b
treat|consider|interpret|handle
     (?:this|the following|the text|it|what follows)(?: [a-z]+)? as (?:a |an |your )?(?:new )?(?:system|developer|admin)
     (?:message|prompt|instructions?|command)\b
you have|you now have
     (?:admin|root|unlimited|administrator|unrestricted) (?:rights|access|privileges|permissions)\b
the user has|the developer has|the admin has|the administrator has|the operator has|user has|developers have
     (?:already |now )?(?:authori[sz]ed|approved|granted|pre-approved|permitted) (?:you|all|every|full|access|everything)\b
if you are an|if you're an|if you are a|since you are an
     (?:ai|llm|language model|chatbot|large language model)\b
as an|as a|as the
     (?:assistant|ai|llm|language|large language)(?: language)?(?: assistant| agent| model)?,?
     you (?:must|should|are|will|have to|need to|shall)\b
ai assistants|ai agents|all assistants|any assistant|llms
     must (?:obey|comply|follow|always|never)\b

# lasting rules
from now on|from this point on|from this moment on|from here on|henceforth|starting now|going forward
    ,? ?(?:you (?:must|will|shall|are|have to|need to|only|always|never|can only|may only|respond|answer|act|obey)
    |you have no|your (?:name|role|answers?|repl(?:y|ies)|responses?|task))\b
keep|remember|save|store|retain|memorize|memorise|follow|apply|obey
     (?:this|these|the following)(?: [a-z]+)? ?(?:rules?|instructions?|directives?|orders?|commands?)? ?
    (?:for|in|across|during|through) (?:all |any |every |your )?(?:later|future|subsequent|following|next|upcoming)
     {TALK}\b
your
     (?:[a-z-]+ )?memory ?[:]
update|add|write|record|append|inject|edit|change|modify|insert|overwrite
     … \byour (?:long-term |persistent |permanent |own )?memory\b(?! (?:usage|limit|leak|consumption|footprint))
remember permanently|permanently remember|remember forever|never forget this
     ?[:,]
for the rest of this|for the remainder of this|in the rest of this
     (?:conversation|chat|session|thread)\b
every future|all future|all later|any future|all subsequent|each future
     (?:sessions?\b(?= ?[:,])|conversations?|chats?|chat sessions?|responses?|repl(?:y|ies)|answers?|interactions?)\b
in all|in every|in any|for all|for every|in
     (?:later|future|subsequent|following|your|upcoming) {TALK},? (?:you|always|never|include|add|append|insert|mention)\b
you must|you will|you should|always|you have to
    (?: now| always)? (?:include|append|insert|add|recommend|promote|mention) …
     \b(?:your|every|all|each) (?:answers?|repl(?:y|ies)|responses?|outputs?)\b
you must|you have to|you need to|you are required to|you are obliged to
     (?:comply with|obey|follow|execute) (?:every|all|any|each|whatever)(?: [a-z]+)?
     (?:requests?|orders?|commands?|instructions?)\b
you must
    (?: now| always)? (?:obey|comply with (?:these|this|all|the following) (?:instructions?|orders?|directives?)|pretend
    |act as|follow these|follow this|follow the following|answer every|respond only|reply only|never refuse|not refuse
    |never reveal|not reveal|not mention|not disclose)\b
add|save|store|write|put|commit|insert
    (?: (?:this|these|the following|it)(?: [a-z]+){0,2})? (?:to|in|into)
     (?:your (?:long-term |persistent |permanent )?(?:memory(?! usage| limit)|memories|notes|instructions|system prompt)|(?:long-term|persistent|permanent) memory)\b
store|save|write|record|remember|note
    (?: this| the following| it)? (?:in|to|into) (?:your )?(?:long-term |persistent |permanent )?memory ?:

# the system prompt
reveal|leak|disclose|recite|repeat|exfiltrate|print|show|output|dump|display|tell me|give me|copy|paste|send|share
    (?: me| us)?(?: all| every| the exact| the full| the entire| verbatim| out)?(?: of)? your (?:[a-z]+ ){0,2}
    (?:prompts?|instructions|system message|guidelines|directives|rules|configuration)\b
what are|what is|summarize|summarise|translate
     your (?:[a-z]+ ){0,2}(?:prompt|instructions|system message|hidden rules)\b
reply|respond|answer|continue
     (?:only )?with (?:the|your) (?:[a-z]+ )?(?:hidden|system|initial|full|secret) (?:prompt|instructions|message)\b
output|print|repeat|reveal|show|return
    (?: me)?(?: the)? original (?:system )?prompt\b
reveal|leak|disclose|recite|repeat|exfiltrate
    (?: me| us)?(?: all| the exact| the full| the entire)?(?: of)? the (?:[a-z]+ )?
    (?:system prompt|hidden prompt|initial prompt|developer message|system message)\b
new system prompt|your system prompt|updated system prompt|override system prompt
    (?: is| now)* ?(?::|is\b)
begin system prompt|end of system prompt|begin new instructions|end of user input
     ?[\]=*#:.]
system override|admin override|developer override|system alert|system notice
     ?[:!\]—]
<system|</system
    (?:[-_](?:prompt|reminder|message|instructions?))?>
im_start|start_header_id
    \|>(?!`)
<<sys>>|[inst]|[/inst]
     ?(?=[a-z<])
[system]|[system message]|[system prompt]
     ?:? ?(?:override|you|the user|ignore|disregard|new|admin|access|all|from now)\b
system:|assistant:|developer:|### system|### instruction
    :? ?(?:you(?:r previous)? (?:are|must|will|should|instructions)|ignore|disregard|from now|the assistant
    |new (?:instructions?|rule)|override|forget|admin mode|do not (?:tell|reveal|mention))\b

# another role
you are now|you're now
     (?:an?|my|(?:in|entering) [a-z-]+ mode|the (?:[a-z-]+ ){0,2}{ROLE}|acting as|operating|running as|called|named|dan
    |free from|unrestricted|jailbroken|no longer)\b
    (?! (?:member|owner|maintainer|subscriber|contributor|collaborator|reviewer|part|follower|participant|guest|host
    |co-|admin|editor|group|queue|list|channel|waiting|team|lead|moderator|position|charge|release|on-call))
you will|you must|you shall|you have to|you should
    (?: now| henceforth)? (?:behave|act|respond|operate|function|speak|answer) (?:as|like)
     (?:if you|an? (?:[a-z-]+ ){0,3}(?:model\b|{ROLE}))
you are no longer
     (?:an?|bound|restricted|limited|required|claude|chatgpt|the assistant|subject)\b
act as|behave as|respond as|roleplay as|role-play as|you will act as|answer as
     (?:if you (?:are|were|have|had)|though you|an? (?:[a-z-]+ ){0,3}{ROLE}|dan\b|my (?:deceased|late|personal)\b)
you are|you're|imagine|respond|answer|operate|speak|act
     … \b(?:without|with no|free (?:of|from))(?: any| all)?(?: [a-z]+)?
     (?:limits|limitations|restrictions|filters|guardrails|rules|censorship)\b
imagine|suppose|assume
    (?: that)? you(?: are|'re) (?:an? (?:[a-z-]+ ){0,2}{ROLE}|dan\b)
pretend
    (?: that)? (?:you (?:are|have|can|were|do)
    |to be (?:an?|the) (?:[a-z-]+ ){0,2}(?:ai|human|admin|hacker|user|developer|model))\b
do anything now|no ethical guidelines|without any restrictions or filters|jailbreak mode|jailbroken mode
    -
enter|activate|switch to|enable|you are in|you're in
     (?:dan|god|jailbreak|unrestricted|unfiltered|sudo|root|evil)(?: [a-z]+)? mode\b

# hiding it
do not|don't|never|must not|without|avoid|you may not|should not|shouldn't
    (?: ever)? (?:tell|inform|warn|alert|let|mak)(?:e|ing|ting)? the (?:user|human|operator)s?\b
    (?! (?:their|which|how|why|to))
do not|don't|never|must not|without|avoid|not
     (?:ever )?(?:tell|telling|say|saying|mention|mentioning|notify|notifying|reveal|revealing|disclose|disclosing|report
    |reporting) (?:[a-z]+ ){0,5}?(?:to )?the (?:user|human|operator)\b(?!'s|’s| (?:their|which|how|why))
do not|don't|never|must not|without|avoid
    (?: ever)? (?:mention|reveal|disclose|disclos|say|show|acknowledge|acknowledg|report|explain)(?:ing)?
     (?:this|these|that|it|any of this|the following)(?: [a-z]+){0,3} (?:to|in)
     (?:the (?:user|human|operator|reply|answer|response|chat|conversation)|your|anyone|users?)\b
do not|don't|never|must not
     (?:mention|reveal|disclose|repeat|quote|acknowledge|discuss) (?:this|these|the above)
     (?:instructions?|messages?|rules?|prompts?|notes?|text)\b
hide|keep|conceal
     (?:this|it|these|that|everything|the [a-z]+)(?: [a-z]+){0,2} from the (?:user|human|operator)\b
the user
     (?:never (?:finds?|learns?|knows?|notices)|doesn't find|does not find|won't find|will not find)\b
the user
     (?:must|should|shall|may|can|is) not (?:to )?be (?:told|informed|notified|aware|made aware)\b
without
    (?<![a-z]\swithout) (?:asking|telling|consulting|informing|notifying)(?: the)? user\b
the user
     must (?:not|never) (?:know|notice|learn|find out|see (?:this|that|it)\b|be told|be informed|be aware)\b
do not|don't|never|without
     (?:ask|request|wait for|seek)(?:ing)?(?: the)? user(?:'s)? ?(?:for |for their )?
    (?:confirmation|permission|approval|consent)\b
when the user asks|whenever the user asks|if the user asks|when a user asks|if asked|when asked
     … \b(?:recommend|claim|deny|lie|pretend|insist|say that you (?:do not|don't|cannot)|say you (?:do not|don't))\b

# approving and disabling
bypass|disable|turn off|remove|deactivate|circumvent|evade|skip
    (?: all| any| every)(?: of)?(?: the)?(?: your)? (?:safety|security|ethical|moderation)(?: and [a-z]+)?
     (?:filters?|checks|restrictions?|guidelines?|guardrails?|protocols?|policies|measures)\b
approve|accept|auto-approve|confirm|allow
     (?:all|every|any)(?: [a-z]+)? (?:tool calls?|commands?|tool requests?|permission (?:requests?|prompts?))
     (?:without|automatically|silently)\b
run|execute
     (?:this|these|the following|the next)(?: [a-z]+)? (?:commands?|code|scripts?|payloads?|instructions?)
    (?: [a-z]+){0,3} (?:immediately|silently|without (?:asking|telling|question|confirmation)
    |before (?:you answer|answering|anything))\b

# carrying data away
send|sent|sending|forward|forwarded|forwarding|post|posting|upload|uploading|email|e-mail|mail|transmit|exfiltrate
    |leak|submit|deliver|append
     … {GOODS} … \b{TO}{ADDRESS}
exfiltrate|leak
     … \b{TO}{ADDRESS}
include|paste|put|append|add|insert|quote
     … (?:\.ssh|\.env|/etc/|\b(?:passwords?|credentials?|secrets?|keys?|tokens?|memory|prompt|instructions|link|phrase|words?
    |text)\b) … \b(?:in|into|to) (?:your|every|each|all) (?:[a-z]+ )?(?:repl(?:y|ies)|answers?|responses?|output)\b
before answering|before you answer|before replying|before you reply|before responding|before doing anything
     ?,? (?:first )?(?:fetch|call|run|open|send|visit|load|execute|download|read|post)\b
each time you|every time you|whenever you
     (?:answer|reply|respond|summari[sz]e) … \b(?:send|append|include|add|mention|post|call|recommend|forward)\b
every|each|all|any
     (?:[a-z]+ ){0,3}(?:goes|go|is sent|are sent|must be sent|should be sent|is forwarded|are forwarded|must go|has to go
    |must be forwarded)(?: first| also| immediately)? to {ADDRESS}
email|mail|cc|bcc|message
     {ADDRESS} … \b(?:all|every|everything|copy|copies|conversations?|credentials|secrets|memory|history)\b
silently|secretly|quietly|covertly
     (?:send|forward|post|upload|email|mail|transmit|copy|submit) … {TO}{ADDRESS}
![
    [^\]\n]{0,80}\]\(https?://[^)\s]{1,200}[?&/=](?:\{|<|\[|%7b|\$\{?)[a-z]

# commands
curl|wget
    \s[^\n]{2,300}?\|\s{0,3}(?:{SHELL}|(?:sudo\s)?(?:python3?|perl|node|ruby)(?=\s*-?\s*(?:$|[\n"'`)])))
bash|sh -c|zsh|eval|source
    (?:\s+-[a-z]{1,4})?\s*["']?\s?(?:<\(|\$\(|`)\s?{FETCH}
base64
    \s+(?:-d|--decode|-di)\b[^\n|]{0,80}\|\s?{SHELL}
rm
    \s+(?=(?:-[a-z-]{1,20}\s+){0,3}(?:-[a-z]{0,4}r|--recursive))(?:-[a-z-]{1,20}\s+){1,4}["']?
    (?:/(?:\*|(?:bin|etc|home|usr|var|boot|lib|root|dev)/?\*?)?|~/?\*?|\$\{?home\}?/?\*?)(?=["'`\s;&|),.，。！!]|$)
--no-preserve-root
    -
:()
    \s?\{\s?:\s?\|\s?:\s?&\s?\}\s?;\s?:
dd
    \s+[^\n]{0,60}of=/dev/(?:sd|nvme|hd|disk|vd|mmc)
mkfs
    (?:\.[a-z0-9]{1,8})?\s+(?:-\S{1,12}\s+){0,3}/dev/
>>
    \s?["']?[~/$\w.{}-]{0,60}authorized_keys\b
cat|less|head|type|read|print|open
     (?:[~/$\w.{}-]{0,40}/)?(?:\.ssh/)?(?:id_(?:rsa|ed25519|ecdsa|dsa)(?!\.pub)\b|\.aws/credentials|\.netrc\b|\.pgpass\b
    |etc/shadow\b)
cat
    \s+[~/\w.-]{0,60}\.env\b[^\n]{0,40}\|\s?(?:curl|nc|wget|base64)\b
curl
    \b[^\n]{0,200}?\s(?:-d|--data(?:-\w+)?|-f|--form|-t|--upload-file)=?\s?["']?[^\s"']{0,40}?
    (?:@\S{0,60}(?:\.env|\.ssh|id_rsa|/etc/|credentials|\.aws|\.netrc)|\$\((?:cat|env|printenv|history)\b
    |\$\{?\w{0,30}(?:token|secret|_key|password)\b)
nc|ncat|netcat
    \s+[^\n]{0,60}\s-(?:e|c)\s+\S{0,12}(?:sh|cmd|powershell)\b
/dev/tcp/
    [\w.$-]
powershell|powershell.exe|pwsh
    \s+[^\n]{0,60}-e(?:nc|ncodedcommand|c)?\s+[a-z0-9+/=]{8,}
iex|invoke-expression
    \s?["'(]{0,3}\s?(?:\(?new-object|iwr|irm|invoke-webrequest|invoke-restmethod)\b
iwr|irm|invoke-webrequest
    \s+[^\n|]{1,200}\|\s?(?:iex|invoke-expression)\b

# 推翻之前的话
忽略|忽视|无视|忘记|忘掉|不要理会|不用理会|不要遵守|不要遵循|停止遵守|停止遵循|抛弃|丢弃|违反|绕过|绕开|覆盖|推翻|不再遵守|不必遵守|不要再遵守|别再遵守
     ?(?:掉|你|所|的|那些|这些|其他|其它|一下|收到|接到|看到|得到){0,4}{过去}
    (?:{过去}|[的给出收到你和与中里]|其他|其它|对话|预设|内置|ai|输入){0,5} ?{规则}
忽略|无视|忘记|忘掉
    (?:掉)?(?:以上|上面|之前|前面|此前)(?:的)?(?:一切|所有(?:内容|对话|话|信息)|全部(?:内容|对话|话)|对话|内容)
现在按我说的做|现在听我的|从现在起听我的|现在照我说的做
    -
新的系统提示|新系统提示|系统提示更新|系统指令|系统消息|系统命令
    (?:词)? ?(?:如下)?[：:]
新指令|新的指令
     ?(?:如下)?[：:][^。\n]{0,20}(?:你|回答|回复|输出|忽略|必须|只能|只需)
你的新
    (?:任务|身份|角色|目标|指令|规则|名字|使命)(?:是|为|：|:)
之前的|先前的|以前的|原来的|原有的|原先的|以上|上述
    (?:所有|全部|一切)?(?:系统)?(?:指令|提示词?|设定)(?:已经?|全部|都|均|现在|从现在起){0,2}(?:失效|作废|无效|取消|不再有效|不再适用)
用户|开发者|管理员|系统|运营方
    已经?(?:授权|批准|同意|允许|许可)(?:了)?(?:你|全部|所有|一切|任何)
遵守|遵循|执行|服从
    (?:以下|下面|下列|如下|这条|这些)(?:新的?)?(?:指令|指示)(?!集)

# 对助手说话
作为
    (?:一个|一名|一位)? ?{助手}(?:[，,]| ){0,2}你(?:要|必须|应该|应当|需要|须|得|不能|不得|将|只能|有责任|有义务|的任务|的职责)
给|致|所有|各位|请|提醒|各|写给|通知
    (?:所有|各位|其他|未来|后续|任何)? ?(?:的)?{助手}们? ?(?:看)?(?:的)? ?(?:请)?
    (?:说明|提示|注意|指令|须知|留言|备注|指示|命令|话|消息|规则|必读|遵守|执行|照做)? ?[：:]
请|所有|各
     ?{助手}们?(?:请)?(?:注意|必读|请遵守|请记住|请执行|必须遵守|须遵守)
ai 助手|ai助手|大模型|智能体|语言模型|ai
    们?(?:请|务必)(?:注意|记住|遵守|执行|阅读|照做|忽略)
若是 ai|若是ai|如果是 ai|如果是ai|若为 ai|是 ai 的话
    [，,：:]
助手注意|助理注意|助手请注意|大模型注意|模型注意|智能体注意|ai 助手须知|大模型须知|智能体须知
    [：:]
忘记你是|忘掉你是
    (?:一个|一名)? ?{助手}
读到这|看到这|看到此|读到此|处理本|阅读本
    (?:段|条|里|文档|页|文件|文字|网页|份)?[^，。\n]{0,8}(?:{助手})
如果你是|若你是|假如你是|只要你是
    (?:一个|一名)? ?{助手}

# 长期的规则
从现在开始|从现在起|从此刻起|从此以后|从今以后|从今往后|自现在起|从即刻起|即日起
    (?:[，,]| ){0,2}(?:请)?你(?:都)?(?:必须|只能|只需|不得|不能|不许|不可以|要|将|需要|须|应该|应当|得|就是|是|会扮演|扮演|每次
    |的(?:名字|身份|角色|任务|回答|回复))
今后|此后|以后|接下来
    (?:[，,]| ){0,2}你(?:都)?(?:必须|只能|不得|一律|只需|务必)
记住|保存|写入|牢记|存入|存储|保留|添加|加入
    (?:住|下)?(?:这|此|该|以下|下面|如下|本)(?:条|个|些|一条)?(?:规则|指令|规定|要求|命令)[^。\n]{0,12}
    (?:以后|今后|后续|将来|未来|每次|所有|下次|长期)
写入|存入|保存到|加入|添加到|记到|更新|修改|改写|在|存到|记进
    你的(?:长期|永久|持久)?(?:的)?(?:记忆|系统提示)
把这段|将这段|把这条|将这条|把以下|将以下|把下面|将下面|把本|将本
    [^。\n]{0,12}(?:写|存|记|保存|加|录)(?:进|入|到)(?:你的?)?(?:长期|永久|持久)?(?:的)?记忆
以后的|今后的|后续的|将来的|未来的|之后的|每次|后续|所有|在每
    (?:所有|每次|每个|每一次|次)?(?:会话|对话|回答|回复|聊天)(?:中|里|时|前|后)?(?:[，,]| )?(?:都|你|请|也|要){0,3}
    (?:必须|须|遵守|遵循|执行|照做|生效|始终|附上|附带|带上|加上|推荐|加入|包含|插入)

# 系统提示
输出|打印|泄露|显示|告诉我|重复|透露|复述|展示|说出|给我看|翻译|公开|发出
    (?:一下|出|完整|全部)?{你的}
把|将
    {你的}[^。\n]{0,6}(?:输出|打印|发|告诉|复述|显示|贴|写|给|翻译)
把系统提示|将系统提示
    词?[^。\n]{0,6}(?:发给我|给我|告诉我|完整|原样|逐字|贴出来|发出来)
泄露|透露|套出|复述
    (?:一下|出|完整的?|全部的?|你的?){0,2}系统(?:提示|指令)

# 换个角色
你现在是|你现在起是|你从现在起是|现在你是
     ?(?:一个|一名|一位|我的|没有|不受|拥有|名为|dan\b
    |[^，。？?\n]{0,8}(?:助手|助理|机器人|模型|黑客|角色|终端|顾问|，一名|，一个))
你不再是|你已不再是|你不再受
    (?:一个|一名|任何)? ?(?:ai|人工智能|语言模型|助手|助理|chatgpt|claude|限制|约束|规则|原来的)
请扮演|你将扮演|你要扮演|你来扮演|请你扮演|假装你|请假装|请你假装|假设你是一个没有
    (?=\S{2})
停止扮演|不要再扮演|别再扮演
    {助手}
以|用|切换至
    (?:管理员|开发者|root|上帝|无限制|越狱|超级用户) ?(?:模式|身份|权限)(?:回答|回复|响应)
你已进入|你现在处于
    (?:了)?[“"「]?(?:开发者|调试|管理员|超级用户|维护)[”"」]? ?模式
进入|切换到|开启|启用
    (?:了)?[“"「]?(?:越狱|上帝|无限制|不受限制|无约束|dan)[”"」]? ?模式
你没有任何|你不受任何|不受任何
    (?:内容|安全|道德|规则)?(?:限制|约束|审查)

# 隐瞒
不要|别|不得|不能|不许|禁止|切勿|勿|无需|不必|不用|避免
    (?:把[^，。\n]{1,12})?(?:告诉|告知|透露给|泄露给|(?:让|使)(?=\S{1,6}(?:知道|看到|发现|察觉|注意|得知|看见|知晓|看出)))
    (?:任何)?(?:用户|使用者|主人|人类)(?!名|的?(?:密码|口令|邮箱|手机|价格|成本|内部|原因))
不要|别|不得|不能|切勿|禁止
    (?:向|跟|对|和|在)(?:用户|使用者|人类|主人|回答|回复)(?:中|里)?(?:透露|提及|提起|说明|泄露|解释|承认|说出|提到|说起)
不要跟用户|别跟用户|不要和用户|不要对用户|不要同用户|别对用户
    (?:说|讲|提)(?!明)
不要在|请勿在|勿在|别在|不得在
    (?:你的)?(?:回答|回复|输出|答案)(?:中|里)?(?:提到|提及|出现|透露|说明|包含)(?:这|本|该|以上|上述)
不要提及|不要透露|不要泄露|不要提到|不得提及|不得透露|别提
    (?:这条|这些|该|本条?|上述|以上)(?:指令|规则|消息|提示|说明|内容|文字)
瞒着|隐瞒|背着
    (?:用户|使用者)
对用户|向用户
    (?:隐瞒|保密|隐藏)

# 放行与解除
跳过|绕过|省略|免去|无需
    用户(?:的)?(?:确认|同意|授权|许可|审批)
无需|不需要|不必|不用|不要|无须
    (?:再)?(?:征得|经过|询问|请求|征求|等待|取得|问|向)(?:过)?用户(?:的|请求|征求)?(?:同意|确认|许可|授权|批准|意见)?
绕过|关闭|解除|禁用|取消|去除|突破
    (?:掉)?(?:你的|所有|一切|全部|系统的?|自身的?){1,2}(?:的)?(?:安全|内容|道德|权限|审核)?(?:限制|审查|过滤|防护|策略|约束|检查)(?![流速条用])
用户问|用户询问|用户提到|用户咨询|有人问
    [^。\n]{0,20}(?:一律|都|必须|始终|请|就)(?:回答|推荐|说|回复|声称|否认|谎称)

# 外传
把|将
     … {东西} … {发往}{ADDRESS}
发送|上传|转发|提交|抄送|外传|泄露|发邮件
     … {东西} … (?:给|到|至|往) ?{ADDRESS}
所有|全部|每份|每次|每条|每个|每一
     … {东西} … {发往}{ADDRESS}
偷偷|悄悄|暗中|私下|秘密
    [^。\n]{0,16}(?:发|传|抄送|寄|同步|提交)[^。\n]{0,8} ?{ADDRESS}
向
     ?{ADDRESS}\S{0,40} ?(?:发送|上传|提交|泄露|汇报|转发) … {东西}
"""

_RULE = r"(?m)^(?! |# )(.+(?:\n    \|.+)*)\n    (.*(?:\n    .*)*)"
_GAP = r"(?:[\s>*_`\"'“”‘’-]{1,6})"
_CLAUSE_END = r"\n\s*(?:\n|[-*+#>]\s|\d+\.\s)|[.!?](?=\s)|[。！？]"
# what turns an order into a warning: never run `rm -rf /`
_FORBIDDEN = (
    r"(?:\b(?:never|do not|don't|dont|must not|mustn't|cannot|can't|should not|shouldn't|avoid|refuse to|not to|without"
    r"|no)(?: ever)?(?: (?:run|runn?ing|use|using|execute|executing|pipe|piping|type|typing|do|call|allow|trust|let))?"
    r"|(?:不要|不能|不得|不许|禁止|切勿|别|勿|严禁|避免|不可|防止|谨防)(?:再|直接|随便|轻易)?"
    r"(?:运行|执行|使用|用|敲|跑|让|直接)?)[\s`\"'“「:：]{0,4}$"
)


def _orders(text: str) -> Iterator[Span]:
    low = lowered(text)
    rules = read_rules()
    held = ["", *rx("[a-z]+").findall(low)]
    if not low.isascii():
        held += rx(_characters()).findall(low)
    for key in _keys().intersection(held):
        for word, rests in rules[key].items():
            if word in low and _beginning(word, tuple(rests)).search(low):
                yield from _order(low, word, rests)


@functools.cache
def read_rules() -> dict[str, dict[str, list[str]]]:
    """What a text must hold for a word -> the word -> what must follow, as the table has it."""
    found: dict[str, list[str]] = {}
    for words, rest in rx(_RULE).findall(_ORDERS):
        for word in words.replace("\n    ", "").split("|"):
            found.setdefault(word, []).append(rest.replace("\n    ", ""))
    common, rules = "".join(found), dict[str, dict[str, list[str]]]()
    for word, rests in found.items():
        rules.setdefault(_key(word, common), {})[word] = rests
    return rules


def _key(word: str, common: str) -> str:
    """The Latin word or Chinese character by which a rule's word is looked up: the most telling of those that must
    stand whole where it does.
    """
    first = rx("[a-z]+|[^\0-~]|").findall(word)[0]
    if not word.isascii() and not first.isascii():
        return min((char for char in word if not char.isascii()), key=common.count)
    whole = word.isascii() and (word[-1].isalpha() or not word[0].isalpha())
    return str(max(rx("[a-z]+").findall(word), key=len, default="") if whole else first)


@functools.cache
def _keys() -> frozenset[str]:
    return frozenset(read_rules())


@functools.cache
def _characters() -> str:
    return f"[{''.join(key for key in read_rules() if not key.isascii())}]"


@functools.cache
def _beginning(word: str, rests: tuple[str, ...]) -> re.Pattern[str]:
    """The word and the first part of any of its rules: a text without them needs no closer look."""
    edge = "(?![a-z0-9])" if _is_edged(word) else ""
    return rx(f"{re.escape(word)}{edge}(?:{'|'.join(_spelled(rest)[0] for rest in rests)})")


def _order(low: str, word: str, rests: list[str]) -> Iterator[Span]:
    edged = _is_edged(word)
    for at in positions(low, word):
        start = at + len(word)
        if edged and ((word[0].isalpha() and glued(low, at)) or glued(low, start + 1)):
            continue
        for rest in rests:
            end = _follow(low, start, rest, 160 if word.isascii() else 60)
            if end >= 0 and not rx(_FORBIDDEN).search(low, max(0, at - 40), at):
                yield at, end, "instruction"
                break


def _is_edged(word: str) -> bool:
    return word.isascii() and word[-1].isalpha()


def _follow(low: str, at: int, rest: str, most: int) -> int:
    """Where the parts of a rule end that follow each other in one clause of `most` characters; -1: they do not."""
    first, *others = steps(rest)
    found = first.match(low, at)
    if found and others:
        limit = min(len(low), at + most)
        clause = rx(_CLAUSE_END).search(low, at, limit)
        for part in others:
            found = found and part.search(low, found.end(), clause.start() if clause else limit)
    return found.end() if found else -1


@functools.cache
def steps(rest: str) -> list[re.Pattern[str]]:
    """The patterns of what must follow a rule's word, one after another; re.error when one is none."""
    return [rx(part) for part in _spelled(rest)]


def _spelled(rest: str) -> list[str]:
    spelled = "" if rest == "-" else rest
    for name, part in _PARTS.items():
        spelled = spelled.replace(f"{{{name}}}", part)
    return spelled.replace(" … ", "…").replace(" …", "…").replace(" ", _GAP).split("…")
