// node-redis does what applications do with it.
'use strict';
const { test, before, after } = require('node:test');
const assert = require('node:assert/strict');
const { createClient, createClientPool, defineScript, WatchError, ErrorReply, RESP_TYPES, BasicClientSideCache } = require('redis');
const { host, port, until, range } = require('./common.js');

const clients = [];
async function connect(options = {}) {
  const c = createClient({ socket: { host, port }, ...options });
  c.on('error', error => { throw error; });
  clients.push(c);
  return c.connect();
}
let r;
before(async () => { r = await connect(); });
after(() => clients.filter(c => c.isOpen).forEach(c => c.destroy()));

// plain makes a plain object of a reply's object without a prototype.
const plain = object => ({ ...object });

for (const RESP of [2, 3]) {
  test(`types of replies, RESP${RESP}`, async () => {
    const c = await connect({ RESP });
    await c.flushDb();
    assert.equal(await c.zAdd('z', [{ value: 'a', score: 1.5 }, { value: 'b', score: Infinity }]), 2);
    assert.deepEqual(await c.zRangeWithScores('z', 0, -1), [{ value: 'a', score: 1.5 }, { value: 'b', score: Infinity }]);
    assert.deepEqual(await c.zPopMax('z'), { value: 'b', score: Infinity });
    await c.hSet('h', { f: 'v', n: 1 });
    assert.deepEqual(plain(await c.hGetAll('h')), { f: 'v', n: '1' });
    await c.sAdd('s', ['x', 'y']);
    assert.deepEqual((await c.sMembers('s')).sort(), ['x', 'y']);
    assert.equal(await c.get('none'), null);
    const blob = Buffer.from(range(256));
    await c.set('blob', blob);
    assert.deepEqual(await c.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).get('blob'), blob);
    await c.geoAdd('geo', { member: 'Palermo', longitude: 13.361389, latitude: 38.115556 });
    const [at] = await c.geoPos('geo', 'Palermo');
    assert.ok(Math.abs(Number(at.longitude) - 13.361389) < 1e-4);
    assert.match(await c.info('server'), /redis_version/);
    assert.equal(plain(await c.configGet('maxmemory-policy'))['maxmemory-policy'], 'noeviction');
  });
}

test('pipelines', async () => {
  // What is sent in the same turn goes in one write.
  const counts = await Promise.all(range(1000).map(i => r.incrBy('counter', i)));
  assert.equal(counts.at(-1), 999 * 1000 / 2);
  const replies = await r.multi().set('p', 1).incr('p').get('p').execAsPipeline();
  assert.deepEqual(replies, ['OK', 2, '2']);
  await assert.rejects(r.lPush('p', 'x'), ErrorReply);
});

test('transactions', async () => {
  assert.deepEqual(await r.multi().set('a', 1).incr('a').mGet(['a', 'none']).exec(), ['OK', 2, ['2', null]]);
  const pool = await createClientPool({ socket: { host, port } }, { minimum: 1, maximum: 2 }).connect();
  await assert.rejects(pool.execute(async c => {
    await c.watch('a');
    await r.set('a', 'theirs');
    return c.multi().set('a', 'ours').exec();
  }), WatchError);
  assert.equal(await r.get('a'), 'theirs');
  assert.deepEqual(await pool.execute(async c => {
    await c.watch('a');
    return c.multi().set('a', 'ours').get('a').exec();
  }), ['OK', 'ours']);
  pool.destroy();
});

test('messages', async () => {
  const sub = await connect(), got = [];
  const listen = kind => (text, channel) => got.push([kind, channel, text]);
  await sub.subscribe(['news', 'more'], listen('channel'));
  await sub.pSubscribe('n?ws*', listen('pattern'));
  await sub.sSubscribe('shard:1', listen('shard'));
  assert.equal(await r.publish('news', 'hello'), 2);
  assert.equal(await r.publish('newsletter', 'hi'), 1);
  assert.equal(await r.sPublish('shard:1', 'piece'), 1);
  await until(() => got.length === 4);
  assert.deepEqual(got, [['channel', 'news', 'hello'], ['pattern', 'news', 'hello'], ['pattern', 'newsletter', 'hi'], ['shard', 'shard:1', 'piece']]);
  assert.deepEqual(plain(await r.pubSubNumSub('news')), { news: 1 });
  await sub.sUnsubscribe('shard:1');
  await sub.pUnsubscribe();
  await sub.unsubscribe();
  assert.equal(await r.publish('news', 'nobody'), 0);
  assert.equal(await sub.ping(), 'PONG');
});

for (const RESP of [2, 3]) {
  test(`live queries, RESP${RESP}`, async t => {
    if (!/zsetd_version/.test(await r.info('server'))) return t.skip('a real Redis has none');
    const channel = '__query@0__:ZRANGE "live board" 0 -1 WITHSCORES', got = [];
    const sub = createClient({ socket: { host, port, reconnectStrategy: () => 10 }, RESP, name: `live${RESP}` });
    sub.on('error', () => {}); // the connection is killed below
    clients.push(sub);
    await sub.connect();
    const receives = async want => {
      await until(() => got.length > 0);
      assert.deepEqual(got.splice(0), [[channel, want]]);
    };
    await sub.subscribe(channel, (text, channel) => got.push([channel, text]));
    await receives('{"result":[]}');
    await r.zAdd('live board', { value: 'ann', score: 1.5 });
    await receives('{"result":[["ann",1.5]]}');
    const { id } = (await r.clientList()).find(c => c.name === `live${RESP}`);
    await r.clientKill({ filter: 'ID', id });
    await receives('{"result":[["ann",1.5]]}'); // the library connects again
    await r.del('live board');
    await receives('{"result":[]}');
    await assert.rejects(sub.subscribe('__query@0__:DEL board', () => {}), /DEL is not a command that only reads/);
    await sub.unsubscribe(channel);
  });
}

test('blocking commands', async () => {
  const waiting = await connect();
  const blocked = async () => /blocked_clients:1\r/.test(await r.info('clients'));
  const pop = waiting.bzPopMin('queue', 0);
  await until(blocked);
  await r.zAdd('queue', { value: 'job', score: 1 });
  assert.deepEqual(plain(await pop), { key: 'queue', value: 'job', score: 1 });
  const take = waiting.blmPop(0, ['one', 'two'], 'LEFT', { COUNT: 2 });
  await until(blocked);
  await r.rPush('two', ['x', 'y', 'z']);
  assert.deepEqual(await take, ['two', ['x', 'y']]);
  assert.equal(await waiting.blPop('nothing', 0.01), null);
});

test('scripts', async () => {
  const c = await connect({
    scripts: {
      take: defineScript({
        SCRIPT: `return {redis.call('DECRBY', KEYS[1], ARGV[1]), cjson.encode({left = {1, 2}}), cmsgpack.unpack(cmsgpack.pack('m'))}`,
        NUMBER_OF_KEYS: 1,
        FIRST_KEY_INDEX: 1,
        parseCommand(parser, key, n) { parser.pushKey(key); parser.push(String(n)); },
        transformReply: reply => reply,
      }),
    },
    functions: {
      counters: {
        up: {
          NUMBER_OF_KEYS: 1,
          parseCommand(parser, key, n) { parser.pushKey(key); parser.push(String(n)); },
          transformReply: reply => reply,
        },
      },
    },
  });
  await c.set('stock', 10);
  await c.scriptFlush();
  assert.deepEqual(await c.take('stock', 3), [7, '{"left":[1,2]}', 'm']); // NOSCRIPT, and then EVAL
  assert.deepEqual(await c.take('stock', 3), [4, '{"left":[1,2]}', 'm']);
  assert.deepEqual(await c.eval('return {KEYS[1], ARGV[1], false}', { keys: ['k'], arguments: ['v'] }), ['k', 'v', null]);
  assert.equal(plain(await c.eval('redis.setresp(3) return {map = {a = 1}}')).a, 1);
  await assert.rejects(c.eval('return redis.call("LPUSH", KEYS[1], 1)', { keys: ['stock'] }), /WRONGTYPE/);

  await c.functionLoad(`#!lua name=counters
    redis.register_function('up', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)`, { REPLACE: true });
  assert.equal(await c.counters.up('n', 5), 5);
  const [library] = await c.functionList();
  assert.equal(library.library_name, 'counters');
  const dump = await c.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).functionDump();
  await c.functionFlush();
  assert.equal(await c.functionRestore(dump), 'OK');
  assert.equal(await c.counters.up('n', 5), 10);
  await c.functionDelete('counters');
});

test('scans', async () => {
  const fields = range(700).map(i => `field:${i}`);
  await r.mSet(Object.fromEntries(fields.map(f => [`scan:${f}`, '1'])));
  await r.hSet('scan hash', Object.fromEntries(fields.map(f => [f, 'v'])));
  await r.sAdd('scan set', fields);
  await r.zAdd('scan zset', fields.map((value, score) => ({ value, score })));
  const collect = async parts => {
    const seen = new Set();
    for await (const part of parts) for (const item of part) seen.add(item.field ?? item.value ?? item);
    return [...seen].sort();
  };
  assert.deepEqual(await collect(r.scanIterator({ MATCH: 'scan:*', COUNT: 50 })), fields.map(f => `scan:${f}`).sort());
  assert.deepEqual(await collect(r.scanIterator({ TYPE: 'zset', MATCH: 'scan *', COUNT: 500 })), ['scan zset']);
  assert.deepEqual(await collect(r.hScanIterator('scan hash')), [...fields].sort());
  assert.deepEqual(await collect(r.sScanIterator('scan set', { COUNT: 5 })), [...fields].sort());
  assert.deepEqual(await collect(r.zScanIterator('scan zset', { MATCH: 'field:69?' })), range(10).map(i => `field:${690 + i}`));
});

test('streams', async () => {
  await r.xGroupCreate('events', 'workers', '$', { MKSTREAM: true });
  const ids = await Promise.all(range(5).map(i => r.xAdd('events', '*', { n: String(i) })));
  const [{ name, messages }] = await r.xReadGroup('workers', 'ann', { key: 'events', id: '>' }, { COUNT: 3 });
  assert.equal(name, 'events');
  assert.deepEqual(messages.map(m => [m.id, m.message.n]), ids.slice(0, 3).map((id, i) => [id, String(i)]));
  assert.equal(await r.xAck('events', 'workers', ids[0]), 1);
  assert.equal((await r.xPending('events', 'workers')).pending, 2);
  const claimed = await r.xAutoClaim('events', 'workers', 'ben', 0, '0');
  assert.deepEqual(claimed.messages.map(m => m.id), ids.slice(1, 3));
  const info = await r.xInfoStream('events');
  assert.equal(info.length, 5);
  assert.equal((await r.xInfoGroups('events'))[0].lag, 2);
  const waiting = await connect();
  const read = waiting.xRead({ key: 'events', id: '$' }, { BLOCK: 0 });
  await until(async () => /blocked_clients:1\r/.test(await r.info('clients')));
  const last = await r.xAdd('events', '*', { n: 'last' });
  assert.deepEqual((await read)[0].messages.map(m => m.id), [last]);
});

for (const RESP of [2, 3]) {
  test(`commands of Redis 8.0 to 8.10, RESP${RESP}`, async () => {
    const c = await connect({ RESP });
    await c.flushDb();
    const hour = { type: 'EX', value: 3600 };
    assert.equal(await c.hSetEx('session', { user: 'ann', cart: '3' }, { mode: 'FNX', expiration: hour }), 1);
    assert.deepEqual(await c.hGetEx('session', ['user', 'absent'], { expiration: 'PERSIST' }), ['ann', null]);
    assert.deepEqual(await c.hGetDel('session', 'cart'), ['3']);
    assert.deepEqual(await c.hTTL('session', 'user'), [-1]);

    assert.equal(await c.mSetEx({ m1: 'one', m2: 'two' }, { mode: 'NX', expiration: hour }), 1);
    assert.equal(await c.set('m1', 'three', { condition: 'IFEQ', matchValue: 'one', GET: true }), 'one');
    const digest = await c.digest('m1');
    assert.match(digest, /^[0-9a-f]{16}$/);
    assert.equal(await c.set('m1', 'four', { condition: 'IFDEQ', matchValue: digest, expiration: hour }), 'OK');
    assert.equal(await c.delEx('m1', { condition: 'IFEQ', matchValue: 'other' }), 0);
    assert.deepEqual(await c.increx('quota', { by: 5, upperBound: 3, saturate: true, expiration: hour }), [3, 3]);

    await c.rPush('from', ['a', 'b', 'c']);
    assert.deepEqual(await c.lMoveM('from', 'to', 'LEFT', 'RIGHT', { COUNT: 2, ORDER: 'BULK' }), ['a', 'b']);

    assert.equal(await c.hImportPrepare('person', ['name', 'age']), 'OK');
    assert.equal(await c.hImportSet('ann', 'person', ['Ann', '7']), 'OK');
    assert.deepEqual(plain(await c.hGetAll('ann')), { name: 'Ann', age: '7' });

    const order = () => c.xAdd('orders', '*', { n: '1' }, { IDMP: { pid: 'shop', iid: '17' } });
    const id = await order();
    assert.equal(await order(), id);
    assert.equal(await c.xCfgSet('orders', { IDMP_DURATION: 60 }), 'OK');
    await c.xGroupCreate('orders', 'workers', '0');
    await c.xReadGroup('workers', 'ann', { key: 'orders', id: '>' });
    const [{ messages }] = await c.xReadGroup('workers', 'ben', { key: 'orders', id: '>' }, { CLAIM: 1, BLOCK: 60_000 });
    assert.deepEqual(messages.map(m => m.id), [id]);
    assert.deepEqual(await c.xAckDel('orders', 'workers', id, 'DELREF'), [1]);
    assert.equal(await c.xLen('orders'), 0);
    assert.deepEqual(await c.xDelEx('orders', id, 'KEEPREF'), [-1]);
  });
}

test('client-side caching', async () => {
  const cache = new BasicClientSideCache({ recordStats: true });
  const c = await connect({ RESP: 3, clientSideCache: cache });
  await r.mSet({ cached: 'old', other: 'same' });
  assert.deepEqual([await c.get('cached'), await c.get('cached'), await c.get('other')], ['old', 'old', 'same']);
  assert.equal(cache.stats().hitCount, 1);
  await r.set('cached', 'new');
  await until(async () => await c.get('cached') === 'new'); // the invalidation has come
  const { missCount } = cache.stats();
  assert.equal(await c.get('other'), 'same');
  assert.equal(cache.stats().missCount, missCount);
  await r.set('soon', 'gone');
  assert.equal(await c.get('soon'), 'gone');
  await r.pExpire('soon', 50);
  await until(async () => await c.get('soon') === null);
  await r.flushDb();
  await until(async () => await c.get('other') === null);
});
