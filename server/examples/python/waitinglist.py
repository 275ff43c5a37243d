import json
from follow import quote, r

def check_in(room, user):
    with r.pipeline(transaction=False) as p:
        p.execute_command("ZADDEX", room, "EX", 20, "*", user)
        p.zrank(room, user)
        return p.execute()[1]

class Line:  # tells the users of a room their ranks, over one connection
    def __init__(self, room):
        self.room, self.sub, self.users = room, r.pubsub(ignore_subscribe_messages=True), {}

    def follow(self, user):
        channel = "__query@0__:ZRANK %s %s" % (quote(self.room), quote(user))
        self.users[channel] = user
        self.sub.subscribe(channel)

    def run(self, tell):  # None: no place
        for m in self.sub.listen():
            tell(self.users[m["channel"]], json.loads(m["data"])["result"])
