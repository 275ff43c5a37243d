// A session store: connect-redis, over node-redis.
'use strict';
const { test, before, after } = require('node:test');
const assert = require('node:assert/strict');
const { createClient } = require('redis');
const { RedisStore } = require('connect-redis');
const { host, port, range } = require('./common.js');

const client = createClient({ socket: { host, port } });
before(() => client.connect());
after(() => client.destroy());

test('sessions', async () => {
  const store = new RedisStore({ client, prefix: 'sess:', ttl: 100 });
  const session = user => ({ cookie: { originalMaxAge: null }, user });
  for (const i of range(150)) await store.set(`id${i}`, session(i));
  assert.deepEqual(await store.get('id7'), session(7));
  assert.equal(await store.get('nobody') ?? null, null);
  assert.equal(await store.length(), 150);
  assert.equal((await store.all()).length, 150);
  await client.expire('sess:id7', 10);
  await store.touch('id7', session(7));
  assert.ok(await client.ttl('sess:id7') > 90);
  await store.destroy('id7');
  assert.equal((await store.ids()).length, 149);
  await store.clear();
  assert.equal(await client.dbSize(), 0);
});
