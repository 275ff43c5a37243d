import json
import redis
from follow import follow, quote, r

def show(page, event, seconds):
    r.execute_command("ZADDEX", page, "EX", seconds, "@now", json.dumps(event))

def changed_members(message):  # b"zadd|3:ann,3:bob": lengths are in bytes
    what, rest = message.split(b"|", 1)
    members = []
    while rest:
        size, rest = rest.split(b":", 1)
        members.append(rest[:int(size)].decode())
        rest = rest[int(size) + 1:]
    return what.decode(), members

def watch_pages(again, changed):
    space = "__subkeyspace@0__:"
    p = redis.Redis(decode_responses=False).pubsub()
    p.psubscribe(space + "live:*")
    for m in p.listen():
        if m["type"] == "psubscribe":
            again()  # connected, or connected again: read what is open
        elif m["type"] == "pmessage":
            changed(m["channel"].decode()[len(space):], *changed_members(m["data"]))

def follow_page(page):
    return follow("__query@0__:ZRANGE %s 0 -1 REV" % quote(page))
