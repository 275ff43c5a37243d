"""redis-py does what applications do with it: python3 redis_py.py HOST:PORT"""
import sys
import threading
import time
import redis

host, port = sys.argv[1].split(":")


def connect(**options):
    return redis.Redis(host=host, port=int(port), decode_responses=True, **options)


r = connect()


def until(holds):
    """Waits, for a busy machine's half a minute, for what comes about without a reply."""
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "never came about"
        time.sleep(0.005)


def equal(got, want):
    assert got == want, f"{got!r} is not {want!r}"


def later(f, *args):
    """Runs f beside and returns a function that waits for its result."""
    result = []
    thread = threading.Thread(target=lambda: result.append(f(*args)), daemon=True)
    thread.start()
    until(lambda: r.info("clients")["blocked_clients"] == 1)

    def wait():
        thread.join(30)
        return result[0]
    return wait


def pipelines():
    p = r.pipeline(transaction=False)
    for i in range(1000):
        p.rpush("list", i)
    p.hset("list", "f", 1)
    p.lrange("list", -2, -1)
    replies = p.execute(raise_on_error=False)
    equal(replies[999], 1000)
    assert isinstance(replies[1000], redis.ResponseError), replies[1000]
    equal(replies[1001], ["998", "999"])
    binary = redis.Redis(host=host, port=int(port))
    blob = bytes(range(256))
    binary.set(blob, blob)
    equal(binary.get(blob), blob)


def transactions():
    equal(r.pipeline().set("a", 1).incr("a").zadd("z", {"m": 1.5}).zrange("z", 0, -1, withscores=True).execute(),
          [True, 2, 1, [("m", 1.5)]])
    with r.pipeline() as p:
        p.watch("a")
        connect().set("a", "theirs")
        p.multi()
        p.set("a", "ours")
        try:
            p.execute()
            raise AssertionError("the conflict went unnoticed")
        except redis.WatchError:
            pass
    equal(r.get("a"), "theirs")
    tries = []

    def swap(p):
        value = p.get("a")
        if not tries:
            connect().append("a", "!")
        tries.append(value)
        p.multi()
        p.set("a", value.upper())
    equal(r.transaction(swap, "a"), [True])
    equal((tries, r.get("a")), (["theirs", "theirs!"], "THEIRS!"))


def messages():
    sub = r.pubsub(ignore_subscribe_messages=False)
    sub.subscribe("news")
    sub.psubscribe("n?ws*")
    got = []

    def read(n):
        until(lambda: len(got) >= n or got.extend(m for m in [sub.get_message(timeout=1)] if m))
    read(2)
    equal([(m["type"], m["channel"], m["data"]) for m in got], [("subscribe", "news", 1), ("psubscribe", "n?ws*", 2)])
    equal(r.publish("news", "hello"), 2)
    equal(r.publish("newsletter", "hi"), 1)
    read(5)
    equal([(m["type"], m["channel"], m["data"]) for m in got[2:]],
          [("message", "news", "hello"), ("pmessage", "news", "hello"), ("pmessage", "newsletter", "hi")])
    equal(r.pubsub_numsub("news"), [("news", 1)])
    sub.close()


def live_queries():
    if "zsetd_version" not in r.info("server"):
        return  # the server is a real Redis
    for options in ({"protocol": 2}, {"protocol": 3}) if redis.__version__ >= "5" else ({},):
        channel = '__query@0__:ZRANGE "live board" 0 -1 WITHSCORES'
        sub, got = connect(client_name="live", **options).pubsub(), []
        sub.subscribe(channel)

        def read():
            try:
                return sub.get_message(timeout=1)
            except redis.ConnectionError:
                return None  # the next call connects again

        def receives(*want):
            until(lambda: len(got) >= len(want) or got.extend(m for m in [read()] if m))
            equal([(m["type"], m["channel"], m["data"]) for m in got], [(kind, channel, data) for kind, data in want])
            got.clear()
        receives(("subscribe", 1), ("message", '{"result":[]}'))
        r.zadd("live board", {"ann": 1.5})
        receives(("message", '{"result":[["ann",1.5]]}'))
        for c in r.client_list():
            if c["name"] == "live":
                r.client_kill_filter(_id=c["id"])
        receives(("subscribe", 1), ("message", '{"result":[["ann",1.5]]}'))  # the library connects again
        r.delete("live board")
        receives(("message", '{"result":[]}'))
        try:
            sub.subscribe("__query@0__:DEL board")
            sub.get_message(timeout=30)
            assert False, "a query that writes is accepted"
        except redis.ResponseError as e:
            equal(str(e), "live query: DEL is not a command that only reads")
        sub.close()


def blocking():
    pop = later(connect().bzpopmin, "queue", 0)
    r.zadd("queue", {"job": 1})
    equal(pop(), ("queue", "job", 1.0))
    move = later(connect().blmove, "in", "out", 0, "LEFT", "RIGHT")
    r.rpush("in", "job")
    equal(move(), "job")


def locks():
    lock = r.lock("the lock", timeout=30)
    assert lock.acquire(blocking=False)
    assert not connect().lock("the lock", timeout=30).acquire(blocking=False)
    assert lock.extend(10)
    lock.release()  # by a script
    assert connect().lock("the lock").acquire(blocking=False)


def scripts():
    take = r.register_script("return {redis.call('DECRBY', KEYS[1], ARGV[1]), cjson.encode({a = {1, 2}})}")
    r.set("stock", 10)
    r.script_flush()
    equal(take(keys=["stock"], args=[3]), [7, '{"a":[1,2]}'])  # NOSCRIPT, SCRIPT LOAD, EVALSHA
    p = r.pipeline()
    take(keys=["stock"], args=[3], client=p)
    equal(p.execute(), [[4, '{"a":[1,2]}']])
    try:
        r.evalsha("0" * 40, 0)
        raise AssertionError("a script that nobody loaded")
    except redis.exceptions.NoScriptError:
        pass
    equal(r.execute_command("FUNCTION", "LOAD", "REPLACE", """#!lua name=counters
        redis.register_function('up', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)
    """), "counters")
    equal(r.execute_command("FCALL", "up", 1, "n", 5), 5)
    r.execute_command("FUNCTION", "DELETE", "counters")


def scans():
    fields = [f"field:{i}" for i in range(700)]
    r.mset({"scan:" + f: 1 for f in fields})
    r.hset("scan hash", mapping={f: "v" for f in fields})
    r.sadd("scan set", *fields)
    r.zadd("scan zset", {f: i for i, f in enumerate(fields)})
    equal(set(r.scan_iter("scan:*", count=50)), {"scan:" + f for f in fields})
    equal(list(r.scan_iter("scan *", _type="zset")), ["scan zset"])
    equal(dict(r.hscan_iter("scan hash")), {f: "v" for f in fields})
    equal(set(r.sscan_iter("scan set", count=5)), set(fields))
    equal(dict(r.zscan_iter("scan zset", "field:69?")), {f"field:{690 + i}": 690.0 + i for i in range(10)})


def streams():
    r.xgroup_create("events", "workers", "$", mkstream=True)
    ids = [r.xadd("events", {"n": i}, maxlen=1000) for i in range(5)]
    equal(r.xreadgroup("workers", "ann", {"events": ">"}, count=3),
          [["events", [(id, {"n": str(i)}) for i, id in enumerate(ids[:3])]]])
    equal(r.xack("events", "workers", ids[0]), 1)
    equal(r.xpending("events", "workers"),
          {"pending": 2, "min": ids[1], "max": ids[2], "consumers": [{"name": "ann", "pending": 2}]})
    equal([e[0] for e in r.xclaim("events", "workers", "ben", 0, ids[1:3])], ids[1:3])
    equal(r.xinfo_groups("events")[0]["consumers"], 2)
    read = later(lambda: connect().xread({"events": "$"}, block=0))
    last = r.xadd("events", {"n": "last"})
    equal(read(), [["events", [(last, {"n": "last"})]]])


def the_server():
    equal(r.config_get("maxmemory-policy"), {"maxmemory-policy": "noeviction"})
    assert r.command_count() > 200 and r.command()["get"]["arity"] == 2
    r.client_setname("tester")
    assert "tester" in [c["name"] for c in r.client_list()]
    assert r.acl_whoami() == "default" and r.acl_getuser("default")["enabled"]
    assert r.memory_usage("events") > 0 and r.object("encoding", "events") == "stream"
    equal(r.slowlog_reset(), True)


for todo in (pipelines, transactions, messages, live_queries, blocking, locks, scripts, scans, streams, the_server):
    begin = time.monotonic()
    todo()
    print(f"ok {todo.__name__} ({time.monotonic() - begin:.2f} s)")
