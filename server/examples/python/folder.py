import time
from follow import follow, r

def fold(group, detail):
    with r.pipeline() as p:
        p.execute_command("ZADD", "due", "NX", "@now+5s", group)
        p.zincrby("due", 0.000001, group)  # changes the score for a worker that holds the group
        p.execute_command("ZADD", "details:" + group, "@now", detail)
        return p.execute()[0]  # 1: the first of its group

def work(publish):
    while True:
        _, [[group, lease]] = r.execute_command("BZCLAIM", 0, 1, "due", "-inf", "@now", "@now+30s", "LEASE")
        began, ends = "%.6f" % (float(lease) - 30), time.monotonic() + 30
        publish(group, r.zrangebyscore("details:" + group, "-inf", began))
        if time.monotonic() > ends:
            continue  # another worker may have the group
        with r.pipeline() as p:
            p.execute_command("ZREMIFEQ", "due", lease, group)
            p.execute_command("ZADD", "due", "XX", "LT", "@now+5s", group)
            p.zremrangebyscore("details:" + group, "-inf", began)
            p.execute()

def follow_due():
    return follow("__query@0__:ZCOUNT due -inf @now")
