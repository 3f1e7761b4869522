"""The words the router goes by, as data: each cue has a reason, a weight and its phrases in English and Chinese.

A segment of a message is worth the sum of its cues, each counted once; `router.FIRE` (3) is enough to look. So a weight
of 3 decides alone, 2 needs company, 1 is a hint; what speaks against a look is negative. Phrases of English are runs of
one to four whole words, those of Chinese stand anywhere. Weights were set on the dev half of tests/golden/recall.
"""

from __future__ import annotations

EXPLANATION = -5.0
CUES: tuple[tuple[str, float, str, str], ...] = (
    # What was said, decided or met before: the reason memory exists.
    (
        "prior context",
        4,
        "last time|last week|last month|last year|last sprint|last quarter|the other day|previous|previously|"
        "back then|i remember|you remember|we remember|remember when|remember how|remember what|remember that|"
        "remind me|you know my|you know our|my style|my usual|our usual|the story with|what did we learn|recall|"
        "what did we|what did i|what did you|what did they|did we|did i|did you|have we|had we|haven't we|"
        "didn't we|didn't that|we decided|we agreed|we discussed|we settled|we said|you said|i told you|"
        "same issue|same problem|same error|same thing|same bug|known issue|as usual|the usual|like we|as we|"
        "we usually|do we usually|we always|we never|used to|we used|where are we|where were we|where did we|"
        "left off|carry on with|from yesterday|why did we|why do we|why don't we|why are we|why aren't we|"
        "why is our|our policy|our rule|our rules|our convention|our decision|are we still|do we still|"
        "do we have|any more|already tried|tried before|seen before|saw before|the reason we|how did we|"
        "how do we|when did we|who decided|still open|open loops|pick up|the way the other|like the other|"
        "same as in|as in the other|is up again|are up again|is down again|are down again|happening again",
        "上次 上回 上一次 上周 上个月 去年 前几天 前阵子 以前 当时 那时候 曾经 来着 还记得 记得吗 记得不 记不记得 "
        "记得我 记得有 记得是 记得上 回忆 查历史 踩过 踩坑 老规矩 老样子 照旧 "
        "按规矩 按惯例 惯例 同样的问题 一样的问题 老问题 再次 为什么这么 怎么定的 怎么决定 定的是 说好的 说过 "
        "提过 讨论过 商量过 决定过 定过 试过 吵过 后来怎么 后来定 后来呢 之前怎么 之前说 "
        "之前定 之前那 之前是 之前好像 之前的 我们一般 我们通常 一般怎么 一般提前 平时怎么 平时吃 的规矩 接着写 "
        "接着做 做到哪 写到哪 看到第 看到哪 进行到 到哪一步 哪一步了 进展 进度 还差 "
        "还没做 昨天的 昨天那 照搬 跟上次",
    ),
    (
        "a hint of earlier",
        1,
        "again|before|earlier|yesterday|already|remember|still|since|once|anymore|another|last|same",
        "又 再 之前 昨天 记得 后来 还是 一直 老是 总是 还在 还没 好像 依然 刚才",
    ),
    # Whose it is: what belongs to the people here is no general knowledge.
    (
        "ours",
        2,
        "we|our|ours|us|we're|we've|we'll|the team|the project|this repo|this repository|this project|this channel",
        "我们 咱们 咱 本项目 这个项目 这个仓库 公司 群里 组里",
    ),
    (
        "mine",
        1,
        "my|mine|me",
        "我的 我那 我妈 我爸 我家 我几 我有 我要 我能 我想",
    ),
    # Something broke: an earlier failure, lesson or tool quirk may say why.
    (
        "a failure",
        3,
        "fails|failed|failing|failure|fail|crash|crashes|crashed|crashing|crashloopbackoff|red on|goes red|"
        "can't be|cannot be|fall behind|falls behind|outdated|out of date|deprecated|stale|obsolete|skips|"
        "skipped|ignores|ignored|crashloop|stops at|stops working|keeps|every single time|piling up|vanish|"
        "complains|error|errors|exception|traceback|timeout|timeouts|times out|timed out|hangs|hung|hanging|"
        "stuck|stalled|stalls|freezes|flaky|broken|broke|break|breaks|rejects|rejected|is gone|it's gone|"
        "disappeared|vanished|dies|died|is down|went down|are down|outage|incident|incidents|is red|doesn't work|"
        "not working|doesn't respond|not responding|does not respond|doesn't start|won't start|refused|denied|"
        "no space left|out of memory|oom|out of disk|segfault|panic|deadlock|leak|conflict|twice|wrong|bug|"
        "regression|rate limit|logged out|won't turn on|won't open|won't load|won't print|won't boot|"
        "can't connect|can't log in|can't open|cannot open|cannot connect|unable to|jams|jammed|is dead|blank|"
        "white screen|not loading|mismatch|missing|expired|expire|about to expire|corrupted|off by|double booked|"
        "booked twice|overbooked|duplicate|duplicated|furious|too low|too high|too little|too few|not enough|"
        "shows the old|too slow|is slow|lag|is full|no longer works|sitting there",
        "报错 报警 告警 错误 异常 失败 崩溃 崩了 挂了 又挂 爆了 刚爆 卡住 卡在 卡死 堵住 超时 故障 事故 坏了 "
        "出问题 出错 不生效 没反应 打不开 连不上 登不上 起不来 启动不了 跑不起来 不通 "
        "扫不出 读不出 不对劲 不一致 泄漏 断了 掉线 过期 旧的 不更新 不稳定 重复 被拒 踩雷 拒绝 停不下来 老是红 "
        "变红 标红 飘红 延期 延误 又报 老报 一直报 死机 白屏 黑屏 没退 没到账 "
        "没收到 没发货 对不上 差了 少了 丢了 弄错 开错 填错 打印不了 坏掉 漏水 断网 断电 停电 停水 卡纸 没刷新 "
        "没更新 没变 撑满 满了 超重 摔伤 崴脚 扭伤 受伤 摔坏 漏报 漏发 高温 蓝屏 "
        "不见了 找不到 捡到 用不了 进不去 登不进 打不通 装不上 删不掉 发不出 收不到 没信号 起皱 出血 积压",
    ),
    # Work on the project: how it is done here is what memory holds.
    (
        "project work",
        3,
        "pr|prs|a fix|upgrading|upgraded|deploy|deploys|deployed|deploying|deployment|deployments|ship it|"
        "ship to|ship this|rollback|roll back|roll it back|roll this back|rolled back|revert|migration|"
        "migrations|migrate|refactor|release notes|changelog|the release|a release|releases|rollout|roll out|"
        "hotfix|runbook|on call|on-call|oncall|load test|load tests|restore drill|fix the|fix this|fix it|debug|"
        "debug logging|implement|bump|upgrade|run the tests|run tests|the tests|build fails|the build|drain|"
        "rebase onto|merge it|merge this|feature flag|incident report|postmortem|adr|push to prod|go live|"
        "codebase",
        "部署 上线 发版 回滚 热修 修复 迁移 重构 灰度 压测 值班 交接 排班 应急 预案 检修 巡检 演练 演习 变更 扩容 "
        "升级 升到 构建失败 跑测试 修一下 查一下日志 停机 恢复 线上 生产环境",
    ),
    # Preference-sensitive tasks: how these people want it done.
    (
        "a task with preferences",
        3,
        "commit message|commit messages|commit this|commit it|commit these|commit the|commit my|commit and|"
        "commits|pull request|a pr|the pr|open a pr|package manager|code style|coding style|naming|our style|"
        "the way we|the way i|the way you|lint|linter|convention|conventions|an email|an e-mail|an english mail|"
        "a mail|the mail|email to|mail to|slides|slide deck|presentation|meeting notes|meeting minutes|"
        "the minutes|weekly report|status report|newsletter|flyer|announcement|install the|add the package|"
        "add a dependency|format the|format this|reformat|prefer|preference|preferences|favourite|favorite",
        "提交信息 提交说明 提交记录 commit信息 包管理 代码风格 命名规范 规范 风格 格式化 周报 日报 月报 会议纪要 "
        "纪要 群公告 公告 通知 邮件 发言稿 广播稿 文案 幻灯片 大纲 汇报 报告 "
        "排版 口味 偏好 习惯 忌口 不能吃 过敏 语气 PPT ppt",
    ),
    (
        "a request",
        2,
        "continue with|status of|wants|squash|check|move|set|put|install|configure|enable|disable|publish|record|"
        "prepare|book|order|schedule|arrange|plan|draft|write|write up|set up|add|create|make a|make the|make me|"
        "reserve|organise|organize|rename|remove|delete|update the|move the|move our|send|post|need to|i need|"
        "i want to|i'd like to|i would like to|we'd like to|would like to|have a look|run a|run the|invite|"
        "reply to",
        "帮我 帮忙 写个 写封 写一下 写份 写这 拟一 拟个 做一份 做个 订一 订个 订今 订明 约个 约一 安排 整理 准备 "
        "发一 发个 新增 增加 加一 加个 改一版 你来写 你来定 挑个 买个 送个 选个 "
        "订三 订两 预约 添加 装个 改一下 删掉 看下 看一下 查下 查一下 起草 预订 买张 选一家 选一个 挑一个 "
        "推荐一家 写进",
    ),
    # Questions that people here have an answer to.
    (
        "a question of who, when, where or how much",
        3,
        "which|where|where's|when|when's|wasn't that|isn't that|wasn't it|isn't it|weren't we|shouldn't it|"
        "shouldn't that|supposed to|who|whose|who owns|who's on|who is on|who runs|who handles|who approves|"
        "who has to|who reviews|who maintains|who do i|how do they|how does she|how does he|whom|who should|"
        "who can|which version|which port|which host|which branch|which database|which server|which key|"
        "which file|which repo|which address|which days|which day|which package|which command|which channel|"
        "which account|what happened|what must|what should be|what has to|what version|what port|"
        "what's the command|what was the|what were the|what's the password|what is our|what's our|what are our|"
        "when is the|when are the|when was the|when were the|when does the|when do the|when will the|"
        "where is the|where are the|where do i|where does|where can i|where should i|where should|at what time|"
        "how long do|how long does|how long are|how long is the|for how long|how many seconds|how big is the|"
        "from which|at which|in which|on which|to which|with which|up to what|up to which|since when|"
        "how far ahead|in advance|is it ok|is it okay|is that ok|ok to|okay to|allowed to|fine to|am i allowed|"
        "do i have|do i need|who do we|whom do i|what do we|until when|by when|due for|is the limit|"
        "what's the limit|the deadline|how much did|how much do|what do i have",
        "谁负责 谁值班 谁管 谁定 谁批 谁说 谁来 谁在 谁提 谁要 由谁 归谁 找谁 问谁 在谁 给谁 谁领 谁审 联系谁 "
        "哪天 哪一天 每天几 提前几 提前多久 为什么那么 为什么这么 为啥那么 为啥这么 "
        "周几 几点前 几点钟 几点发 几点开 几点来 是几点 几号 几月 什么时候 何时 截止 多久 多长时间 多少钱 多少天 "
        "怎么收费 收费 收钱 收不收 扣不扣 要扣 打几折 几折 几岁 几岁以下 怎么算 "
        "怎么退 怎么处理 怎么规定 怎么办 怎么登记 怎么走 怎么还 怎么约 怎么申请 哪家 哪台 哪个环境 哪个文件 "
        "哪个包 哪个分支 哪个版本 哪条路 在哪 放哪 存哪 放到哪 去哪领 去哪办 哪里领 地址 "
        "编号 电话是 账号 抬头 先查哪 先看哪 第一步 先做什么 要不要管 咋整 咋办 咋处理 要准备什么 叫什么名 叫什么 "
        "姓什么 什么措施 什么原因 怎么回事 能不能 可不可以 可以不 允不允许 允许 行不行 "
        "能靠 能进 能带 能上 修好没 好了没 到了没 弄好没 限行",
    ),
    # Asked about something particular: by default that is looked for, unless it is common knowledge (below).
    (
        "a question",
        2,
        "how|what|what's|why|how long|how many|how much|how often|how big|can i|can we|could we|can it|can this|"
        "can they|could it|may i|may we|may it|should i|should we|should it|should this|shall we|is it|is this|"
        "is that|does it|does this|do they|do you have|are they|are these|was it|will it|is the|are the|does the|"
        "do the|was the|is there a|are there any|allowed|any idea|whats",
        "",
    ),
    (
        "a Chinese question",
        3,
        "",
        "了吗 了没 几本 几件 几张 几辆 几间 几瓶 几箱 几桌 几轮 几页 几步 几遍 几周 几年 几分 几秒 几折 "
        "的事跟我说 跟我说说 跟我说下 跟我讲讲 什么口径 谁 哪个 哪种 哪款 哪天 哪家 哪台 "
        "哪条 哪位 哪里 哪儿 哪几 几点 几个 几天 几班 几次 几趟 几人 几位 几台 几条 几吨 几种 几份 几家 几成 几级 "
        "几段 几号 几版 几层 几楼 第几 多少 多大 多远 多长 多重 多快 多宽 "
        "多厚 最多 最少 够不够 算不算 百分之几 叠加不 合适吗 啥时候 先要什么 要什么 用什么 还是用 还是英文 "
        "还是分钟 怎么上报 怎么约 怎么申请 怎么领 怎么报 怎么交 怎么请 怎么登 怎么联系 怎么排 "
        "怎么分 怎么结 怎么开 怎么收 怎么写 怎么弄 怎么改 怎么配 怎么定 怎么查 怎么发 怎么走流程 什么要求 "
        "什么格式 什么样的",
    ),
    (
        "a Chinese question of a thing",
        2,
        "",
        "还是 了没 没有 什么 怎么 怎样 为什么 为啥 是不是 咋 哪 是什么 是啥 什么规范 吗",
    ),
    (
        "something particular",
        1,
        "the|this|that|did|was|were|has been|have been|had been|got|made|everybody|everyone|january|february|"
        "march|april|june|july|august|september|october|november|december|winter|summer|spring|autumn|quarter",
        "改成 换成 变成 去年 今年 本周 上半年 下半年 季度",
    ),
    (
        "a yes-or-no question",
        0,
        "",
        "吗 么？ 不？ 没？",
    ),
    (
        "whose",
        0,
        "",
        "的",
    ),
    (
        "what it is",
        0,
        "",
        "是什么 是啥 是多少",
    ),
    (
        "what one may do",
        0,
        "",
        "可以 还 能 要 会 该 得 用 需要 必须",
    ),
    # What people work with: a hint, more of them a stronger one.
    (
        "a thing of work",
        1,
        "staging|production|prod|live|server|database|db|port|endpoint|pipeline|ci|cache|cached|queue|webhook|"
        "bot|api|token|secret|vault|certificate|cert|wildcard|cluster|node|pod|container|image|docker|"
        "k8s|terraform|gateway|ingress|dns|vpn|firewall|disk|alert|paging|dashboard|log|logging|metric|backup|"
        "restore|retention|threshold|limit|config|setting|branch|repo|repository|commit|merge|column|table|"
        "schema|index|field|package|dependency|library|frontend|backend|test|suite|build|release|session|login|"
        "module|service|code|feature|job|worker|consumer|producer|runner|command|account|console|peer|"
        "export|import|csv|pdf|request|body|response|payload|replica|slot|lockfile|state|lock|layer|"
        "upload|download|zone|panel|screen|button|form|page|menu|route|router|handler|middleware|hook|"
        "event|topic|stream|broker|scheduler|cron|thread|process|memory|cpu|network|proxy|cdn|bucket|storage|"
        "volume|mount|variable|flag|toggle|locale|translation|template|sms|push|notification|payment|checkout|"
        "cart|currency|amount|total|tag|diff|review|reviewer|sprint|milestone|roadmap|version|docs|"
        "readme|wiki|spec|design|mockup|header|ui|label|script|system|policy|standard|environment|credential|key|"
        "rotation|freeze|traffic|latency|throughput|quota|registry|mirror|tenant|namespace|domain|subdomain|url|"
        "link|password|permission|role|user|admin|length|size|width|height|duration|maximum|minimum|format|"
        "percentage|ratio|count|budget|deadline|customer|client|passenger|vendor|supplier|provider|contract|"
        "invoice|refund|discount|fare|fee|price|tax|bill|cost|report|meeting|standup|calendar|colleague|staff|"
        "office|access|booking|shipment|inventory|payroll|interview|onboarding|training|audit|legal|"
        "approval|task|checklist|room|exam|projector|printer|rule|product|timetable|shift|driver|seat|"
        "trip|courier|parcel|warehouse|store|return|claim|complaint|deposit|lease|patient|ward|student|teacher|"
        "course|class|lesson|grade|investor|board|intern|manager|team|department|sponsor|partner|quote|proposal|"
        "offer|signature|stamp|file|folder|monthly|weekly|daily|quarterly|monday|tuesday|wednesday|thursday|"
        "friday|front end|back end",
        "服务器 数据库 缓存 队列 接口 机器人 阈值 上限 限制 密钥 证书 流程 版本 分支 端口 仓库 配置 测试 用例 "
        "日志 指标 监控 网关 集群 节点 流水线 环境 备份 权限 后台 机器 设备 前端 "
        "后端 文件 参数 字段 记录 页面 按钮 表单 菜单 路由 回调 事件 消费者 生产者 定时任务 线程 进程 内存 磁盘 "
        "带宽 网络 代理 域名 解析 存储 变量 开关 模块 组件 脚本 系统 服务 任务 "
        "镜像 容器 总结 压测 分页 导出 导入 上传 下载 推送 登录 账号 二维码 尺寸 颜色 字体 大小 提交 合并 需求 排期 "
        "工单 线上 代码 函数 注释 依赖 仓 库 固件 客户 旅客 用户 会员 员工 同事 "
        "学生 学员 家长 患者 病人 租客 住户 司机 师傅 领导 老板 供应商 合同 预算 计划 方案 结论 决定 约束 待办 "
        "教训 规则 账单 费用 发票 报销 会议 例会 开会 开个会 会场 会议室 客诉 "
        "投诉 赔偿 退款 退票 退货 换货 改签 优惠 票价 票 库存 订单 包 客服 话术 班次 检查 考核 目标 公众号 图片 "
        "打印机 教室 考试 监考 教案 药房 押金 租金 快递 满减 模板 文书 归档 "
        "短信 电话 排队 检票 登记 名单 报数 换装 产品 项目 报价 发货 收货 物流 采购 单价 考勤 面试 入职 离职 招聘 "
        "培训 审计 法务 盖章 签字 审批 审核 上报 报备 验收 质检 盘点 入库 "
        "出库 对账 结算 开票 付款 回款 打款 定金 尾款 台账 报表 清单 单据 编号 批次 型号 规格 图纸 样品 原料 仪器 "
        "车辆 钥匙 门禁 保险 物业 门店 课程 工期 提前 每天 每周 每月 周一 "
        "周二 周三 周四 周五 周末 窗口 措施 公司 部门 合作 班组 现场 工地 车间 产线 食堂 宿舍 制服 费",
    ),
    (
        "a thing of someone's life",
        1,
        "fly|appointment|lunch|dinner|restaurant|hotel|flight|train|ticket|birthday|gift|present|allergic|"
        "allergy|vegetarian|vegan|holiday|vacation|doctor|dentist|school|timezone|time zone|wife|husband|"
        "daughter|son|kids|car|insurance",
        "午饭 午餐 中午吃 晚饭 晚上吃 餐厅 聚餐 酒店 航班 高铁 机票 火车票 出差 生日 礼物 素食 假期 请假 医生 "
        "牙医 复诊 学校 班主任 女儿 儿子 老婆 老公 妈妈 爸爸 车 保险 那本书 书 "
        "发票 约我 药",
    ),
    # Against: what needs no memory of these people.
    (
        "a generic explanation",
        EXPLANATION,
        "what is a|what is an|what's a|what's an|what are|explain|explain the|explain what|explain this|"
        "difference between|stand for|stands for|in simple words|in simple terms|in layman's terms|eli5|define|"
        "definition of|give me an example|an example of|tell me about|teach me|tutorial|what does a|what do a|"
        "differ from|how do containers|a one-liner|a regex|regex that|time complexity|is the meaning|"
        "pros and cons|best practices|introduction to|better than|which is better|best way|should one|"
        "the meaning of|overview of|what does this",
        "什么是 是什么意思 啥意思 什么意思 解释 讲讲 讲一下 讲解 介绍 区别 有什么不同 原理 通俗 科普 举个 举例 "
        "全称 缩写 定义 优缺点 教程 教我 入门 有哪些算法 常见的 概念 冒泡排序 "
        "时间复杂度 有必要吗 有必要用吗 哪个好 哪个更好 二叉树 排序算法 啥是",
    ),
    (
        "the general way of a public tool",
        0,
        "how do i|how can i|how would i|what does|how do you|is there a way|how does|how is|what is|"
        "write a|write me|one-liner|one liner|can you|is o|write an",
        "怎么 如何 怎样 写一个 写个 是什么",
    ),
    (
        "a public tool",
        0,
        "git|vim|emacs|css|html|excel|bash|linux|awk|sed|sql|tls|"
        "http|react|numpy|pandas|tmux|ssh|npm|latex|markdown|json|list|lists|string|"
        "array",
        "git vim python java excel linux bash 正则 列表 数组 字符串 css html 冒泡 tcp http docker 递归",
    ),
    (
        "a textbook term",
        -3,
        "fizzbuzz|haskell|reverse proxy|virtual machine|containers|ubuntu|megapixels|function that|"
        "function which|a function to|script that|program that|rust|golang|java|javascript|typescript|python|"
        "ruby|php|swift|kotlin|promises|race condition|nginx or|apache|load balancer|sidecar|sre|https|tcp|udp|"
        "ssd|nvme|kubernetes|big o|binary search|garbage collection|foreign key|primary key|fibonacci|"
        "walrus operator|decorator|mutex|semaphore|closure|recursion|polymorphism|inheritance|hash map|"
        "linked list|binary tree|quicksort|bubble sort|regex|lambda|monad|coroutine|async await|context manager|"
        "list comprehension|truncate|left join|acid|cap theorem|oop|solid principles|design pattern|singleton|"
        "blue green|chaos engineering|service mesh|eventual consistency|idempotency|idempotent|machine learning|"
        "neural network|blockchain|turing|halting problem|asymptotic|codec|bokeh|three point lighting|h264|h265|"
        "small companies|by default",
        "外键 主键 垃圾回收 二分查找 复杂度 斐波那契 装饰器 互斥锁 信号量 闭包 递归 多态 继承 哈希表 链表 二叉树 "
        "快速排序 冒泡 正则表达式 协程 设计模式 单例 蓝绿部署 混沌工程 服务网格 "
        "最终一致性 幂等 机器学习 神经网络 区块链 图灵 三次握手 负载均衡常见 进程和线程 默认端口 解析的过程 ssd "
        "nvme https 小公司 哪个好学 哪个快 写个函数 写一个函数 判断质数 的正则 "
        "反向代理 虚拟机 cap 定理 ubuntu haskell fizzbuzz 排序算法 竞态条件 按值排序 promise sidecar 编译型 "
        "解释型 一元二次方程",
    ),
    (
        "world knowledge",
        -5,
        "capital of|world cup|who wrote|who invented|who discovered|who painted|who sang|how tall|how far is|"
        "how high|how deep|population|planet|planets|president|prime minister|king of|queen of|the moon|"
        "the earth|the sun|galaxy|novel|novels|a movie|movies|a film for|best film|singer|actor|actress|album|"
        "in history|of all time|in the world|world war|nobel|universe|literature|star wars|theme song|composed|"
        "spider|spiders|elephant|whale|shark|lion|tiger|penguin|snake|bee|bees|ant|ants|rabbit|wolf|"
        "chemical formula|molecule|atom|volcano|earthquake|black hole|oxygen|triangle|calculus|eiffel|olympics|"
        "synonyms|synonym|fun fact|trivia|dinosaur|dinosaurs|the sky|speed of light|how fast is light|"
        "digits of pi|leap year|life|wikipedia|continent|country|countries|ocean|mountain|river|species|animal|"
        "animals|bird|birds|insect|photosynthesis|gravity|quantum|chemistry|physics|biology|vaccine|vaccines|"
        "protein|dna|prime number|theorem|philosophy|religion|dynasty|emperor|who directed|blade runner|"
        "mona lisa|marathon|pancakes|feet 11|tallest|longest river|largest|roman|greek mythology|shakespeare|"
        "einstein|syntax",
        "首都 首相 国王 女王 世界上 世界杯 历史上 作者是谁 谁写的 谁发明 多高 珠穆朗玛 总统 星球 行星 月球 月亮 "
        "太阳 地球 宇宙 蒙娜丽莎 谁画的 文言文 作文 勾股 牛顿 潮汐是怎么 台风的名字 "
        "马拉松 松饼 电影 电视剧 歌手 演员 小说 朝代 皇帝 古代 诗人 成语 脑筋急转弯 几大洲 面积 人口 英文名 "
        "数学题 百科 国家 动物 鸟类 昆虫 恐龙 物理 化学 生物学 光合作用 量子 相对论 "
        "蛋白质 基因 疫苗 质数 定理 哲学 宗教 神话 首歌 奥运 奥斯卡 诺贝尔 狮子 老虎 大象 鲸鱼 鲨鱼 蜜蜂 蚂蚁 "
        "蜘蛛 企鹅 熊猫 狐狸 兔子 化学式 面积公式 元素 原子 分子 细胞 病毒 细菌 "
        "进化论 火山 地震 黑洞 氧气 三角形 圆形 微积分 战争 哪一年 四季 浮起来 泰坦尼克 秦始皇 统一六国 二战 一战 "
        "拿破仑 唐朝 宋朝 明朝 清朝 汉朝 三国 红楼梦 西游记 水浒 孔子 李白 杜甫 "
        "苏轼 比喻句 被动句 修辞 拼音 笔画 偏旁 近义词 反义词 造句 组词 鸡兔同笼 海水为什么 天空 天是蓝 光速 沸点 "
        "熔点 海拔 圆周率 闰年 原名 海洋面积 长江 黄河 长城 故宫",
    ),
    (
        "everyday life",
        -3,
        "gift for|banana|chocolate|shirt|stain|stains|guitar|tie a|suggest a|recommend a|out of office|funny|"
        "love letter|cat|dog|dogs|puppy|kitten|tomato|fruit|vegetable|octopus|octopuses|watch tonight|weather|"
        "egg|eggs|coffee|tea|beer|recipe|cook|cooking|boil|healthy|calories|sleep|tired|headache|workout|"
        "horoscope|zodiac|snow|my mac|my phone|goldfish|meme|the answer shorter|answer shorter|podcast|riddle|"
        "dream|green tea|wine|drink|drinking|delicious|tasty|taste|eat|eating|breakfast|water|haha|lol|hahaha",
        "领带 吉他 油渍 女朋友 男朋友 星座 热量 昵称 情书 拼单 堵车 多穿 晚霞 奶茶 章鱼 心脏 水果 蔬菜 西红柿 "
        "红烧 怎么做菜 看什么剧 那部剧 浇水 请客 胖 天气 下雨 鸡蛋 番茄 炒 煮 感冒 "
        "咖啡 喝 睡 好吃 减肥 护肤 面膜 失眠 红酒 洗衣 绿茶 牛奶 蜂蜜 瑜伽 看球 笑死 水波蛋 烧开 我的电脑 "
        "我的手机 金鱼 播客 谜语 夜宵 怪梦 下雪 好热 好冷 好困 吃了吗 睡了吗 军训感言 "
        "运势 好累 烦死 打球 哈哈 头疼 熬夜 养生 多吃 晒太阳",
    ),
    (
        "arithmetic or conversion",
        -6,
        "in decimal|to decimal|in hex|to hex|km/h|to km|in km|in miles|feet in|mile in|nautical mile|to miles|"
        "in euros|in dollars|in usd|to celsius|to fahrenheit|square root|how many days until|how many days till|"
        "days between|divided by|multiplied by|percent of|off 3|% off|fps to|random password|random number|"
        "random string",
        "等于多少 等于几 乘以 加上多少 平方根 是多少公里 多少公里 多少公斤 英里 英尺 厘米 换算 多少人民币 "
        "多少美元 还有多少天 随机",
    ),
    (
        "how to",
        -2,
        "how to",
        "",
    ),
    (
        "a sum",
        -3,
        "",
        "除以 再加 乘以",
    ),
    (
        "talk about the assistant",
        -6,
        "are you a|are you an|are you there|what can you|who are you|what are you|what model|can you speak|"
        "you just a|your name|do you like|do you feel|do you have feelings",
        "你是谁 你能做 你会 你能干 你是哪 你是什么 你叫什么 你喜欢 你有没有感情 假如你 如果你是 你说的对",
    ),
    (
        "small talk",
        -3,
        "thanks|thank you|thx|cheers|good morning|good night|good evening|hello|hi|hey|bye|see you|congrats|"
        "congratulations|happy birthday|brb|nice|well done|merry christmas|happy new year|sorry",
        "换一种 换个 换一个 谢谢 多谢 辛苦 早上好 早安 晚安 你好 您好 再见 恭喜 生日快乐 新年快乐 加油 抱歉 "
        "不好意思 我去 回来 明天见 在吗",
    ),
)

# Two cues that together mean something else than each alone.
PAIRS: tuple[tuple[str, str, float, str], ...] = (
    ("the general way of a public tool", "a public tool", -5, "the general way of a public tool"),
    ("what one may do", "a yes-or-no question", 1, "a question of what one may do"),
    ("what one may do", "a Chinese question", 1, "a question of what is to be done"),
    ("what one may do", "a Chinese question of a thing", 1, "a question of what is to be done"),
    ("whose", "what it is", 1, "a question of what it is"),
)

# Requests that work on text of their own or need nothing but invention; they stand at the beginning or the end.
TRANSFORM = (
    "translate|proofread|spell check|spellcheck|rephrase|reword|refine the wording|polish this|"
    "polish the wording|repeat that|repeat it|make it shorter|paraphrase|summarise this|summarize this|"
    "summarise the following|summarize the following|tl;dr|tldr|fix the grammar|fix my grammar|"
    "correct the grammar|check the grammar|how do you say|make this sound|make it sound|convert this|"
    "convert the following|turn this|turn these|turn the following|sort these|sort the following|pretty print|"
    "reformat this json|what does this function|what does this code|what does this do|explain this|"
    "explain the following|shorten this|rewrite this|rewrite the following|count the words|alphabetise|"
    "alphabetize|solve|simplify this|say that again|the time complexity of this",
    "翻译 翻成 译成 润色 改错别字 错别字 换个说法 换种说法 换句话 缩写这 扩写 总结一下下面 总结下面 概括下面 "
    "概括一下 总结这段 总结一下这段 怎么念 怎么读 用中文怎么说 用英文怎么说 用英语怎么说 "
    "英文怎么说 英语怎么说 下面这段 把这段 给这段 这段代码 这段话 这句话 按字母排序 把下面的",
)
CREATIVE = (
    "joke|jokes|poem|haiku|limerick|riddle|lullaby|bedtime story|short story|a story|song|lyrics|rap|sonnet|"
    "fairy tale|role play|roleplay|pretend",
    "笑话 一首 写诗 诗歌 故事 歌词 对联 祝福语 段子 绕口令 猜谜 接龙 朋友圈 顺口溜",
)
CLOCK = (
    "what time is it|what's the time|what day is it|what day is today|what date is it|what is the date|"
    "what's the date|what year is it",
    "今天是几月几号 今天几月几号 春节是几月几号 今天几号 今天是几号 今天星期几 今天周几 现在几点 现在是几点 "
    "几点了 今天是星期几 今年是哪年 今天什么日子",
)
SHELL = (
    "ls cd pwd cat echo git grep rg rm cp mv mkdir touch curl wget ps top kill tail head less make npm pnpm yarn "
    "npx node pip uv python python3 pytest cargo go docker kubectl helm terraform ssh scp chmod chown sudo "
    "systemctl journalctl vim nano tar ping whoami which env export exit clear history df du find sed awk brew "
    "apt"
)
SENTENCE = (
    "the a an is are was it we i you my our on in of for to this that does do did and but with why how what when "
    "who not no fails failed fail error hangs hung dies broken gives says doesn't won't can't stuck please pls "
    "again"
)
PUBLIC = (
    "utf-8 utf-16 iso-8859-1 iso-8601 sha-1 h264 h265 mp3 mp4 sha-256 sha256 sha512 md5 http/2 http/3 ipv4 ipv6 "
    "gpt-3 gpt-4 gpt-5 covid-19 base64 k8s i18n a11y l10n s3 ec2 m1 m2 m3 m4 3d 2d 4k 5g 4g b2b b2c p2p web3 "
    "python3 python2 es6 html5 css3 oauth2 log4j x86 x64 arm64 wi-fi e-mail ci/cd and/or he/she tcp/ip i/o n/a "
    "w/o 24/7 km/h c++ github javascript typescript youtube whatsapp powerpoint linkedin postgresql mysql nosql "
    "graphql statefulset daemonset configmap readme.md node.js next.js vue.js"
)
EXTENSIONS = (
    "py md ts tsx js jsx go rs toml yaml yml json sh sql ini log c h cpp java kt swift rb php css html vue tf "
    "cfg conf lock csv xml txt env proto"
)

# Words that carry no subject: a query goes without them unless nothing else is left. They are many in requests and
# stand by chance in any passage; without this list four blocks in ten held something irrelevant.
FILLER = (
    "add adding get getting got give need needs needed want wants write writing wrote draft make makes making "
    "made create run runs running put puts use uses used using usually always never ever still again anymore "
    "yesterday today tomorrow tonight morning afternoon evening last next new old big ok okay repo repository "
    "project app codebase long short late early fast quick quickly much many often how what which who when where "
    "why day days week month year years time times hour hours minute minutes date half few fine good bad thing "
    "things something anything nothing part parts way ways sort kind lot bit place work works working worked "
    "help look looks looking see seen saw show shows find found tell told say says said know think thought guess "
    "idea remember remind recall decide decided agree agreed like likes just really please pls thanks hi hey yes "
    "no let go goes going gone went come comes came back take takes took keep keeps kept start starts started "
    "stop set setting settings up have has had been happen happens happened change changed changes problem "
    "problems issue issues reason cause right wrong able possible maybe whole entire line lines name one two "
    "three first second other another since ago already there here them they this that these those send having "
    "continue our your their also only even do does did done can could should would will may might must shall "
    "open nobody somebody someone everybody everyone people person me my mine we us you he she it its is are was "
    "were be being a an the of for from with without and or not in on at to by as if then than too very so but "
    "about into out over under after before while during via per any some all both each every same different wtf "
    "asap i message messages error errors exception info supposed due sitting latest doesn't don't didn't isn't "
    "aren't wasn't won't can't couldn't it's i'm i've we're we've that's what's who's where's there's let's "
    "customer customers update updated version versions field file files site screen table valid colleague touch "
    "touched move moved",
    "交给 几点前 有个旅客 旅客 顾客 帮我 帮忙 麻烦 请问 请 一下 看看 看下 查下 我们 咱们 你们 他们 我 你 他 她 它 "
    "这个 那个 这次 那次 这边 那边 这里 那里 今天 明天 昨天 后天 现在 刚才 "
    "刚刚 上次 下次 之前 以前 后来 当时 最近 平时 一般 通常 一直 老是 总是 又 再 还 也 都 就 才 了 吗 呢 吧 啊 呀 "
    "的 地 得 来着 好像 记得 还记得 知道 什么 怎么 怎样 如何 为什么 "
    "为啥 哪个 哪些 哪里 哪 谁 几 多少 多久 是不是 有没有 能不能 可不可以 可以 能 要不要 要 会 想 应该 需要 到底 "
    "直接 顺便 有个 一个 写个 写封 写一下 做个 做一份 整理 安排 提前 第一步 "
    "第几 做什么 准备 规矩 事 东西 问题 办 咋 急 发我 说 给 把 让 被 和 跟 与 是 有 没 没有 不 这么 那么 出 去 来 "
    "到 在 里 上 下 中 前 后 个 位 件 条 张 份 些 点 步",
)

# What a task is called where people note how they want it done: looked for besides the words of the message, since
# "commit this" shares no word with 提交信息, and a file's name would outweigh "format".
SUBJECTS: tuple[tuple[str, str, str], ...] = (
    (
        "commit message|commit messages|commits|commit this|commit it|commit these|commit the|commit my|commit and",
        "提交信息 提交说明 提交记录 commit信息",
        "commit message messages 提交信息",
    ),
    ("pull request|pull requests|pr|prs", "合并请求 拉取请求", "pull request review 合并请求"),
    ("release notes|changelog", "发布说明 更新日志", "release notes changelog 发布说明"),
    (
        "format|reformat|format the|format this|code style|coding style|refactor|naming|variable name|"
        "function name|class name|rename|our style|lint|linter",
        "代码风格 命名规范 格式化 重构",
        "code style formatted functions names naming 代码风格 命名",
    ),
    (
        "package manager|add the package|install the|add a dependency",
        "包管理 装个",
        "package manager managers 包管理器",
    ),
    ("roll back|roll it back|roll this back|rollback|revert", "回滚", "rollback rolling back 回滚"),
    ("migration|migrations", "迁移", "migration migrations 迁移"),
    ("an email|an e-mail|a mail|an english mail|the mail|email to|mail to", "邮件", "email mail 邮件"),
    ("slides|slide deck|presentation", "幻灯片 PPT ppt", "slides PPT 幻灯片"),
    ("the minutes|meeting minutes|meeting notes", "会议纪要 纪要", "meeting minutes notes 会议纪要"),
    ("weekly report|status report", "周报", "weekly report 周报"),
    ("announcement", "公告 群公告", "announcement 公告"),
    (
        "lunch|dinner|restaurant",
        "午饭 午餐 中午吃 晚饭 晚上吃 点个 外卖 餐厅 聚餐",
        "lunch diet allergy allergic vegetarian 午饭 过敏 忌口",
    ),
    ("hotel|book a hotel", "酒店", "hotel 酒店"),
    ("train|flight", "高铁 机票 火车票 航班", "train flight seat 高铁 出差"),
    ("schedule a meeting|set up a meeting|a meeting", "开个会 约个会 安排会议", "meeting meetings 会议"),
    ("adr", "", "architecture decision records ADR"),
    ("incident report|postmortem", "事故报告 复盘", "incident report postmortem 事故报告"),
    ("debug logging|logging", "", "log logging 日志"),
    (
        "who owns|whom do i ask|who should i ask|who do i ask|who should|who maintains|who is responsible|who knows",
        "谁负责 找谁 问谁",
        "owns owner responsible 负责",
    ),
    ("", "小孩 孩子 小朋友", "儿童"),
    ("", "小狗 小猫 带狗 带猫 猫咪 狗狗", "宠物"),
    ("", "捡到 丢了 丢失", "失物"),
    ("complaint|complaints", "投诉 客诉", "complaint 投诉 客诉"),
    ("refund|refunds|money back", "退款 退票 退钱", "refund 退款 退票"),
    ("on call|oncall|on-call", "值班", "on-call 值班"),
    ("api key|api keys|password|passwords|credentials", "密钥 口令 密码", "secrets 密钥 口令"),
    ("outage|postmortem", "宕机 故障 事故", "outage incident 故障 事故"),
)

# Short forms and what they are short for: both are looked for.
SHORT = (
    "prod production|db database|env environment|var variable|vars variables|k8s kubernetes|repo repository|"
    "config configuration|docs documentation|perf performance|cert certificate|certs certificates|"
    "auth authentication|admin administrator|pkg package|deps dependencies|dep dependency|e2e end-to-end|"
    "tz timezone|dev development|pic picture|info information|msg message|fe frontend|be backend|lang language|"
    "dir directory|num number|max maximum|min minimum|temp temporary|infra infrastructure|xmas christmas|"
    "appt appointment|dept department|mgr manager|eng engineering|app application"
)

# Work words in both languages: a message is also asked in the other one, since one team writes its notes in both.
GLOSSARY = (
    "deploy 部署|release 发布|rollback 回滚|migration 迁移|backup 备份|restore 恢复|certificate 证书|"
    "wildcard 泛域名|expired 过期|"
    "expires 到期|password 密码|secret 密钥|token 令牌|database 数据库|cache 缓存|queue 队列|server 服务器|"
    "port 端口|gateway 网关|"
    "cluster 集群|node 节点|disk 磁盘|memory 内存|log 日志|alert 告警|on-call 值班|handover 交接|outage 故障|"
    "incident 事故|"
    "timeout 超时|limit 限制|threshold 阈值|retention 保留|branch 分支|commit 提交|review 评审|merge 合并|"
    "test 测试|build 构建|"
    "environment 环境|configuration 配置|permission 权限|account 账号|login 登录|session 会话|user 用户|"
    "customer 客户|"
    "supplier 供应商|contract 合同|invoice 发票|refund 退款|discount 优惠|price 价格|budget 预算|cost 成本|"
    "report 报告|weekly 周报|"
    "meeting 会议|email 邮件|mail 邮件|english 英文|letter 信|boss 老板|colour 颜色|color 颜色|font 字体|"
    "announcement 公告|"
    "notice 通知|schedule 排班|calendar 日历|holiday 放假|vacation 休假|birthday 生日|allergic 过敏|allergy 过敏|"
    "lunch 午饭|"
    "hotel 酒店|flight 航班|train 高铁|ticket 票|trip 出差|gift 礼物|school 学校|dentist 牙医|insurance 保险|"
    "office 办公室|"
    "warehouse 仓库|shipment 发货|delivery 送货|return 退货|complaint 投诉|deadline 截止|plan 计划|decision 决定|"
    "constraint 约束|"
    "preference 偏好|convention 约定|style 风格|naming 命名|format 格式|language 语言|translation 翻译|label 标签|"
    "page 页面|"
    "button 按钮|form 表单|upload 上传|download 下载|export 导出|import 导入|payment 支付|order 订单|stock 库存|"
    "key 密钥|rotation 轮换|"
    "access 权限|firmware 固件|sensor 传感器|temperature 温度|calibration 校准|speech 发言稿|slides 幻灯片|"
    "safety 安全|training 培训|"
    "exam 考试|student 学生|teacher 老师|patient 患者|legal 法务|audit 审计|approval 审批|signature 签字|"
    "receipt 收据|expense 报销|"
    "salary 工资|interview 面试|onboarding 入职|company 公司|staff 员工|employee 员工|search 搜索|replica 副本|browser 浏览器|"
    "address 地址|phone 电话|size 尺寸|cancel 取消|automatically 自动|seat 座位|wind 风速|speed 速度|error 错误|"
    "failed 失败|retry 重试|header 请求头|image 镜像|container 容器|dependency 依赖|"
    "file 文件|video 视频|picture 图片|logo 标志|brand 品牌|reply 回复|answer 回答|"
    "team 团队|colleague 同事|visitor 访客|passenger 乘客|doctor 医生|parent 家长|lesson 课程|"
    "machine 机器|device 设备|repair 维修|inspection 检查|drill 演习|emergency 应急|weather 天气|stop 停止|"
    "monitoring 监控|metric 指标|dashboard 仪表盘|proxy 代理|replication 复制|flaky 不稳定"
)

# Names that everybody has: not the name of something particular here.
NAMES = (
    "africa ai amazon america american angular ansible api apple asia beijing berlin cap chatgpt china chinese "
    "christmas claude css deployment django dns docker dr english europe european excel facebook flask france "
    "french friday german germany github gitlab god google gpt html http https i i'd i'll i'm i've iceland india "
    "internet italy japan japanese java javascript jenkins json kafka kubernetes linux llm london mac macos mars "
    "microsoft ml monday mongodb mr mrs ms mysql norway norwegian ok paris postgres postgresql powerpoint python "
    "react redis rest rome russia saturday shanghai spain spanish sql ssh statefulset sunday tcp terraform "
    "thursday tls tokyo tuesday twitter typescript vpn vue wednesday windows word xml yaml youtube"
)

# A sentence that begins with one of these asks for something to be done.
IMPERATIVE = (
    "add answer archive assign book cancel change check clean clear close collect compile configure connect copy "
    "count create cut debug define delete deliver deploy describe disable document download draft drop edit "
    "enable export extend extract file fill fix flash format generate grant import include increase insert "
    "install integrate invite invoice join label launch link list load lock log mail make map mark measure merge "
    "migrate mount move name notify open optimise optimize order organise organize pack pause pick pin plan "
    "point post prepare print process prune publish pull purge push put queue raise record reduce register "
    "reject release remove rename render renew reopen repair replace reply report request reschedule reserve "
    "reset resize resolve restart restore review roll rotate run scale scan schedule seed send set setup share "
    "ship shut split squash stage start stop store submit subscribe switch sync tag tear test tidy track "
    "transfer trim tune unlock unpin update upgrade upload validate verify wake wipe wire write",
    "订 买 退 租 借 约 查 写 发 改 加 删 建 装 跑 推 拉 合并 提交 上传 下载 导出 生成 更新 通知 联系 登记 申请 "
    "汇总 统计 核对 打印 归档 给",
)
NO_ORDER = "写得 改成 改得 给我 发现 约等 加油 建议 跑步 装作 推荐 查无 建国 发烧 发呆"
# What the name of a thing asked for ends with, where no question is asked: 落水救援的流程.
ASKED_FOR = (
    "流程 标准 规定 要求 规则 步骤 尺寸 价格 时间 地址 电话 编号 名单 账号 密码 格式 模板 期限 比例 额度 上限 "
    "原因 进度 情况 安排 方案 清单 联系人 负责人 措施 经验 教训 记录 结论 办法 "
    "预案 分工"
)
