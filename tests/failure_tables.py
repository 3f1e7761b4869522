"""Failures as they were noted, another of the same sort beside each, and the report as it comes again elsewhere.

The last twelve were written after the rules and measured once before anybody looked at what they gave.
"""

from __future__ import annotations

TRACES: tuple[tuple[str, str, str], ...] = (
    (
        "KeyError 'tariff_code' in price_quote: old rows have no tariff; run the backfill first",
        "KeyError 'locale' in render_page: the template wants a default language",
        "Traceback (most recent call last):\n"
        '  File "/srv/app-7/quotes/price.py", line 218, in price_quote\n'
        '    code = row["tariff_code"]\n'
        "KeyError: 'tariff_code'",
    ),
    (
        "ModuleNotFoundError: No module named 'wheelhouse_ext': build it with make ext before the tests",
        "ModuleNotFoundError: No module named 'tomlkit': install the dev extra",
        "Traceback (most recent call last):\n"
        '  File "/home/ines/w/tests/test_a.py", line 3, in <module>\n'
        "    import wheelhouse_ext\n"
        "ModuleNotFoundError: No module named 'wheelhouse_ext'",
    ),
    (
        "TypeError: Cannot read properties of undefined (reading 'berth'): the berth feed is empty at night, guard it",
        "TypeError: Cannot read properties of undefined (reading 'avatar'): guests have no avatar",
        "TypeError: Cannot read properties of undefined (reading 'berth')\n"
        "    at assignBerth (/var/www/r42/dist/plan.js:88:17)\n"
        "    at processTicksAndRejections (node:internal/process/task_queues:95:5)",
    ),
    (
        "ERR_REQUIRE_ESM for node-fetchling: stay on version 2 until the bundle is ESM",
        "ERR_OSSL_EVP_UNSUPPORTED: Node 17 needs the legacy provider",
        "Error [ERR_REQUIRE_ESM]: require() of ES Module /app/node_modules/node-fetchling/src/index.js from /app/dist/main.js not supported.\n"
        "    at Object.<anonymous> (/app/dist/main.js:12:21)",
    ),
    (
        "NullPointerException in InvoiceMapper.toDto: the customer was deleted; map to the archived one",
        "NullPointerException in SeatMapper.toRow: a seat without a deck",
        'Exception in thread "worker-9" java.lang.NullPointerException: Cannot invoke "no.fjord.Customer.getName()" because "c" is null\n'
        "\tat no.fjord.billing.InvoiceMapper.toDto(InvoiceMapper.java:143)\n"
        "\tat java.base/java.lang.Thread.run(Thread.java:1583)",
    ),
    (
        "OutOfMemoryError: Metaspace after forty hot reloads: restart the dev server, leak in the class loader of plugins",
        "OutOfMemoryError: Java heap space in the nightly export: stream the rows",
        "2026-11-29 04:12:55 ERROR [main] java.lang.OutOfMemoryError: Metaspace\n"
        "\tat java.base/java.lang.ClassLoader.defineClass1(Native Method)",
    ),
    (
        "thread 'tokio-runtime-worker' panicked, called Option::unwrap() on a None value in tide_cache: the cache is cold after a deploy, warm it",
        "panicked at attempt to subtract with overflow in depth_meter: use saturating_sub",
        "thread 'tokio-runtime-worker' panicked at src/tide_cache/mod.rs:77:31:\n"
        "called `Option::unwrap()` on a `None` value\n"
        "note: run with `RUST_BACKTRACE=1`",
    ),
    (
        "error[E0502] cannot borrow `ledger` as mutable: split the loop in two passes",
        "error[E0277] the trait Send is not implemented for Rc: use Arc in the scheduler",
        "error[E0502]: cannot borrow `ledger` as mutable because it is also borrowed as immutable\n"
        "  --> src/books/post.rs:61:9",
    ),
    (
        "panic: assignment to entry in nil map in (*Registry).Add: Registry must be made with NewRegistry",
        "panic: send on closed channel in (*Pump).Run: close only in Stop",
        "panic: assignment to entry in nil map\n"
        "\n"
        "goroutine 34 [running]:\n"
        "github.com/fjord/dock.(*Registry).Add(0xc0000b4000, {0xc00001c0a8, 0x5})\n"
        "\t/build/9911/dock/registry.go:52 +0x1d",
    ),
    (
        "fatal error: all goroutines are asleep - deadlock in drainQueue: the WaitGroup was copied",
        "fatal error: concurrent map writes in sessionStore: guard with the mutex",
        "fatal error: all goroutines are asleep - deadlock!\n"
        "\n"
        "goroutine 1 [semacquire]:\n"
        "sync.runtime_Semacquire(0xc0000140a8)\n"
        "\t/usr/local/go/src/runtime/sema.go:62 +0x25\n"
        "main.drainQueue(...)\n"
        "\t/build/77/main.go:40",
    ),
    (
        "rsync: connection unexpectedly closed, error in rsync protocol data stream (code 12): the backup host's disk was full",
        "tar: unexpected end of file: the upload was cut off",
        "rsync: connection unexpectedly closed (8123 bytes received so far) [sender]\n"
        "rsync error: error in rsync protocol data stream (code 12) at io.c(231) [sender=3.2.7]",
    ),
    (
        "make: *** No rule to make target 'gen/api.pb.go': run just protos first",
        "make: *** recursive variable FLAGS references itself: an environment variable of that name was set",
        "make: *** No rule to make target 'gen/api.pb.go', needed by 'build/dock-4f2a91c7'.  Stop.",
    ),
    (
        "deadlock detected on table berth_slots while the nightly vacuum runs: lock rows in order of id",
        "duplicate key value violates unique constraint passengers_mail_key: fold mails before the insert",
        "ERROR:  deadlock detected\n"
        "DETAIL:  Process 18231 waits for ShareLock on transaction 9921833; blocked by process 18240.\n"
        'CONTEXT:  while updating tuple (0,71) in relation "berth_slots"',
    ),
    (
        'duplicate key value violates unique constraint "cargo_ref_idx": the importer ran twice, use on conflict',
        "null value in column tonnage violates not-null constraint: the form allows empty",
        'psycopg.errors.UniqueViolation: duplicate key value violates unique constraint "cargo_ref_idx"\n'
        "DETAIL:  Key (ref)=(CR-2026-88121) already exists.",
    ),
    (
        "429 from the quay API: it allows ten calls a minute, batch the berths",
        "404 from the ticket API: the sandbox forgets tickets at night",
        "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://quay.example/api/v2/berths?page=17",
    ),
    (
        "502 Bad Gateway from the gate proxy after a deploy: keepalive_timeout was shorter than the upstream's",
        "504 Gateway Timeout on the report page: the query lacks an index",
        '2026/11/29 03:11:02 [error] 31#31: *98121 upstream prematurely closed connection, client: 10.3.0.14, upstream: "http://10.3.0.22:8080/"\n'
        "HTTP/1.1 502 Bad Gateway",
    ),
    (
        "连接池耗尽：定时任务没有归还连接，改用 with 语句",
        "连接被拒绝：防火墙没有放行 5432 端口",
        "2026-11-29 02:14:55 ERROR [pool-7] 获取连接失败: 连接池耗尽, 等待 30000ms, active=50, idle=0",
    ),
    (
        "签名校验失败是因为服务器时间快了三分钟，装 chrony 校时",
        "验证码校验失败：短信渠道欠费",
        "支付回调异常: 签名校验失败, order_id=20261129104455, nonce=9f8e7d6c5b, timestamp=1796000000",
    ),
    (
        "文件编码错误 UnicodeDecodeError gbk：读港口舱单要用 gb18030",
        "UnicodeDecodeError utf-8：日志里混了二进制",
        "Traceback (most recent call last):\n"
        '  File "D:\\jobs\\manifest.py", line 41, in load\n'
        "UnicodeDecodeError: 'gbk' codec can't decode byte 0x80 in position 1021: illegal multibyte sequence",
    ),
    (
        "磁盘空间不足导致 Kafka 副本下线：清理 log.dirs 下过期的段",
        "内存不足导致导出进程被杀：分批导出",
        "java.io.IOException: 磁盘空间不足\n"
        "\tat kafka.log.LogSegment.append(LogSegment.scala:158)\n"
        "ERROR 副本 dock-events-3 下线, broker=7",
    ),
    (
        "npm ERR! ERESOLVE could not resolve react-dock-grid: pin its peer react to 18",
        "npm ERR! EACCES mkdir in the global folder: set a prefix",
        "npm ERR! code ERESOLVE\n"
        "npm ERR! ERESOLVE could not resolve\n"
        "npm ERR! While resolving: react-dock-grid@4.2.1\n"
        "npm ERR! A complete log of this run can be found in: /root/.npm/_logs/2026-11-29T03_12_11_123Z-debug-0.log",
    ),
    (
        "ImagePullBackOff for quay-sync: the pull secret was missing in the new namespace",
        "CrashLoopBackOff for tide-poller: its config map had a tab",
        "Warning  Failed  2m (x4 over 3m)  kubelet  Error: ImagePullBackOff\n"
        'Failed to pull image "registry.example/quay-sync:9f3c2d1": unauthorized',
    ),
    (
        "AssertionError in test_fare_rounding: the fixture used floats; compare in cents",
        "AssertionError in test_login_redirect: the clock was not frozen",
        "tests/test_fares.py:88: in test_fare_rounding\n"
        "    assert total == 1204\n"
        "E   AssertionError: assert 1203.9999 == 1204\n"
        "=== 1 failed, 412 passed in 38.20s ===",
    ),
    (
        "ECONNREFUSED to the search container: it takes twenty seconds to start, wait for its health check",
        "ETIMEDOUT to the map tiles: the office proxy blocks them",
        "Error: connect ECONNREFUSED 172.18.0.4:9200 (search)\n"
        "    at TCPConnectWrap.afterConnect [as oncomplete] (node:net:1555:16)",
    ),
    (
        "HikariPool connection is not available: a report kept transactions open, set its timeout",
        "LazyInitializationException in CrewController: fetch the crew in the query",
        "org.springframework.dao.DataAccessResourceFailureException: HikariPool-1 - Connection is not available, request timed out after 30001ms.\n"
        "\tat com.zaxxer.hikari.pool.HikariPool.createTimeoutException(HikariPool.java:696)",
    ),
    (
        "linker `lld` not found on the build box: apt install lld, or unset RUSTFLAGS",
        "cargo: failed to select a version for time: update the lock file",
        "error: linker `lld` not found\n"
        "  |\n"
        "  = note: No such file or directory (os error 2)\n"
        'error: could not compile `dockyard` (bin "dockyard") due to 1 previous error',
    ),
    (
        "x509: certificate signed by unknown authority from the artifact store: mount the company CA into the image",
        "x509: certificate has expired on the staging gateway: renew by hand",
        '2026/11/29 08:11:40 Get "https://store.example/v2/": tls: failed to verify certificate: x509: certificate signed by unknown authority',
    ),
    (
        "Permission denied (publickey) from the mirror host: its key was rotated, use the deploy key in the vault",
        "Permission denied writing /var/log/dock: the unit runs as another user",
        "git@mirror-3.example: Permission denied (publickey).\nfatal: Could not read from remote repository.",
    ),
    (
        "canceling statement due to statement timeout in the manifest export: move it to the replica",
        "relation cargo_v2 does not exist: the migration was not run",
        "sqlalchemy.exc.OperationalError: (psycopg.errors.QueryCanceled) canceling statement due to statement timeout\n"
        "[SQL: SELECT * FROM manifest WHERE day = %(d)s]",
    ),
    (
        "403 from the weather service: the plan allows one key per host",
        "401 from the crew portal: the token lives fifteen minutes",
        "httpx.HTTPStatusError: Client error '403 Forbidden' for url 'https://weather.example/v1/wind?lat=60.39'",
    ),
    (
        "导入舱单时报主键冲突：同一份文件传了两次，先按批次号去重",
        "导出舱单时报列数不符：模板多了一列",
        "[2026-11-29 11:20:31] ERROR manifest.import - 主键冲突: Duplicate entry '88213' for key 'PRIMARY' (舱单导入失败, batch=7712)",
    ),
    (
        "微信登录返回 invalid code 40029：code 只能用一次，前端重复提交",
        "微信支付返回余额不足：商户号没充值",
        '登录失败: {"errcode":40029,"errmsg":"invalid code, rid: 65f1a2b3-1c2d3e4f-5a6b7c8d"}',
    ),
    (
        "Segmentation fault in libtide while plotting: version 4 of the library is broken, pin 3.9",
        "Bus error in the sonar driver: unaligned buffer",
        "Fatal Python error: Segmentation fault\n"
        "\n"
        "Current thread 0x00007f2a1c7fe700 (most recent call first):\n"
        '  File "/opt/v/lib/python3.11/site-packages/libtide/plot.py", line 77 in draw',
    ),
    (
        "terraform: Error acquiring the state lock: a killed pipeline keeps it; force-unlock after asking in ops",
        "terraform: Unsupported argument subnet_ids: the provider was upgraded",
        "╷\n"
        "│ Error: Error acquiring the state lock\n"
        "│ \n"
        "│ Error message: ConditionalCheckFailedException\n"
        "│ Lock Info:\n"
        "│   ID:        4c1f8b9e-1122-3344-5566-77889900aabb\n"
        "╵",
    ),
)
