// ioredis as a client of a cluster, with one node.
'use strict';
const { test, after } = require('node:test');
const assert = require('node:assert/strict');
const { Cluster } = require('ioredis');
const { host, port, until, range } = require('./common.js');

const r = new Cluster([{ host, port }], { scaleReads: 'all' });
after(() => r.disconnect());

test('keys of all slots', async () => {
  await Promise.all(range(200).map(i => r.set(`key:${i}`, i)));
  assert.deepEqual(await Promise.all(range(200).map(i => r.get(`key:${i}`))), range(200).map(String));
  assert.equal(r.nodes('all').length, 1);
  const found = new Set();
  for (const node of r.nodes('master')) {
    for await (const keys of node.scanStream({ match: 'key:*' })) keys.forEach(k => found.add(k));
  }
  assert.equal(found.size, 200);
});

test('several keys', async () => {
  await r.mset('{user:1}.name', 'ann', '{user:1}.age', '7');
  assert.deepEqual(await r.mget('{user:1}.name', '{user:1}.age'), ['ann', '7']);
  await assert.rejects(r.mget('a', 'b'), /CROSSSLOT Keys in request don't hash to the same slot/);
  assert.deepEqual(await r.multi().incr('{user:1}.n').incr('{user:1}.n').exec(), [[null, 1], [null, 2]]);
  assert.deepEqual(await r.pipeline().set('{p}1', 1).get('{p}1').exec(), [[null, 'OK'], [null, '1']]);
  r.defineCommand('both', { numberOfKeys: 2, lua: `return redis.call('MGET', KEYS[1], KEYS[2])` });
  assert.deepEqual(await r.both('{user:1}.name', '{user:1}.age'), ['ann', '7']);
});

test('messages', async () => {
  const got = [];
  const sub = r.duplicate();
  after(() => sub.disconnect());
  sub.on('message', (channel, text) => got.push([channel, text]));
  await sub.subscribe('news');
  await until(async () => (await r.publish('news', 'hello')) > 0);
  await until(() => got.length > 0);
  assert.deepEqual(got[0], ['news', 'hello']);
});
