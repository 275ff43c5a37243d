import time
from follow import follow, quote, r

def hit(key, at=None, width=60, keep=5):
    start = int((at or time.time()) // width * width)
    end = (start + keep * width) * 1000 - 1
    return r.execute_command("ZADDEX", key, "INCR", "PXAT", end, 1, start)  # None: too late

def hits(key, n, width=60):
    start = int(time.time() // width * width)
    return r.zmscore(key, [start - i * width for i in range(n)])

def follow_hits(key):
    return map(dict, follow("__query@0,1s__:ZRANGE %s 0 -1 WITHSCORES" % quote(key)))
