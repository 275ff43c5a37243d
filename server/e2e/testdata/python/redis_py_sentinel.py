"""redis-py follows the primary that Sentinels name: python3 redis_py_sentinel.py HOST:PORT ...

It increments a counter, and prints "steady" when 100 increments in a row have
succeeded. A line of its input makes it begin again.
"""
import os
import sys
import threading
import time
import redis.sentinel

sentinels = [tuple(a.split(":")) for a in sys.argv[1:]]
r = redis.sentinel.Sentinel(sentinels, socket_timeout=5).master_for("zsetd", socket_timeout=5)
row, reported = 0, False


def read():
    global row, reported
    for _ in sys.stdin:
        row, reported = 0, False
    os._exit(0)


threading.Thread(target=read, daemon=True).start()
while True:
    try:
        r.incr("counter:redis-py")
    except redis.RedisError:
        row = -1
    time.sleep(0.001)
    row += 1
    if row >= 100 and not reported:
        reported = True
        print("steady", flush=True)
