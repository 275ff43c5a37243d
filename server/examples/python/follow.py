import json
import redis  # redis-py

r = redis.Redis(decode_responses=True)

def quote(word):  # a word of a live query
    return '"%s"' % word.replace("\\", r"\\").replace('"', r'\"')

def follow(query):  # yields the reply, and each one that differs
    sub = r.pubsub(ignore_subscribe_messages=True)
    sub.subscribe(query)
    for m in sub.listen():
        yield json.loads(m["data"])["result"]
