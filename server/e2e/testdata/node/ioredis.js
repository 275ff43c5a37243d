// ioredis does what applications do with it.
'use strict';
const { test, after } = require('node:test');
const assert = require('node:assert/strict');
const Redis = require('ioredis');
const { host, port, until, range } = require('./common.js');

const clients = [];
function connect(options = {}) {
  const c = new Redis({ host, port, ...options });
  clients.push(c);
  return c;
}
const r = connect();
after(() => clients.filter(c => c.status !== 'end').forEach(c => c.disconnect()));

test('pipelines', async () => {
  const p = r.pipeline();
  for (const i of range(1000)) p.rpush('list', i);
  p.hset('list', 'f', 1).llen('list').lrange('list', -2, -1);
  const replies = await p.exec();
  assert.equal(replies[999][1], 1000);
  assert.match(replies[1000][0].message, /^WRONGTYPE/);
  assert.deepEqual(replies.slice(1001), [[null, 1000], [null, ['998', '999']]]);

  const auto = connect({ enableAutoPipelining: true });
  const values = await Promise.all(range(500).map(i => auto.incrby('counter', i)));
  assert.equal(values.at(-1), 499 * 500 / 2);
  const blob = Buffer.from(range(256));
  await auto.set(blob, blob);
  assert.deepEqual(await auto.getBuffer(blob), blob);
});

test('transactions', async () => {
  const replies = await r.multi().set('a', 1).incr('a').zadd('z', 1.5, 'm').zrange('z', 0, -1, 'WITHSCORES').exec();
  assert.deepEqual(replies, [[null, 'OK'], [null, 2], [null, 1], [null, ['m', '1.5']]]);
  const other = connect();
  await r.watch('a');
  await other.set('a', 'theirs');
  assert.equal(await r.multi().set('a', 'ours').exec(), null);
  assert.equal(await r.get('a'), 'theirs');
  await r.watch('a');
  await r.unwatch();
  await other.set('a', 'again');
  assert.deepEqual(await r.multi().get('a').exec(), [[null, 'again']]);
  await assert.rejects(r.multi().call('nonsense').set('a', 1).exec(), /EXECABORT/);
});

test('messages', async () => {
  const sub = connect(), got = [];
  sub.on('message', (channel, text) => got.push([channel, text]));
  sub.on('pmessage', (pattern, channel, text) => got.push([pattern, channel, text]));
  sub.on('smessage', (channel, text) => got.push(['shard', channel, text]));
  assert.equal(await sub.subscribe('news', 'more'), 2);
  assert.equal(await sub.psubscribe('n?ws*'), 3);
  assert.equal(await sub.ssubscribe('shard:1'), 1);
  assert.equal(await r.publish('news', 'hello'), 2);
  assert.equal(await r.publish('newsletter', 'hi'), 1);
  assert.equal(await r.spublish('shard:1', 'piece'), 1);
  await until(() => got.length === 4);
  assert.deepEqual(got, [['news', 'hello'], ['n?ws*', 'news', 'hello'], ['n?ws*', 'newsletter', 'hi'], ['shard', 'shard:1', 'piece']]);
  assert.deepEqual(await r.pubsub('NUMSUB', 'news'), ['news', 1]);
  assert.deepEqual(await r.pubsub('SHARDCHANNELS'), ['shard:1']);
  await sub.sunsubscribe('shard:1');
  assert.equal(await sub.unsubscribe('more'), 2);
  assert.equal(await r.publish('more', 'nobody'), 0);
});

test('live queries', async t => {
  if (!/zsetd_version/.test(await r.info('server'))) return t.skip('a real Redis has none');
  const channel = '__query@0__:ZRANGE "live board" 0 -1 WITHSCORES', got = [];
  const sub = connect({ connectionName: 'live', retryStrategy: () => 10 });
  sub.on('message', (channel, text) => got.push([channel, text]));
  const receives = async want => {
    await until(() => got.length > 0);
    assert.deepEqual(got.splice(0), [[channel, want]]);
  };
  assert.equal(await sub.subscribe(channel), 1);
  await receives('{"result":[]}');
  await r.zadd('live board', 1.5, 'ann');
  await receives('{"result":[["ann",1.5]]}');
  const live = (await r.client('LIST')).split('\n').find(c => / name=live /.test(c));
  await r.client('KILL', 'ID', /id=(\d+)/.exec(live)[1]);
  await receives('{"result":[["ann",1.5]]}'); // the library connects again
  await r.del('live board');
  await receives('{"result":[]}');
  await assert.rejects(sub.subscribe('__query@0__:DEL board'), /DEL is not a command that only reads/);
  await sub.unsubscribe(channel);
});

test('blocking commands', async () => {
  const waiting = connect();
  const pop = waiting.bzpopmin('queue', 0);
  await until(async () => /blocked_clients:1\r/.test(await r.info('clients')));
  await r.zadd('queue', 2, 'late', 1, 'soon');
  assert.deepEqual(await pop, ['queue', 'soon', '1']);
  const move = waiting.blmove('in', 'out', 'LEFT', 'RIGHT', 0);
  await until(async () => /blocked_clients:1\r/.test(await r.info('clients')));
  await r.rpush('in', 'job');
  assert.equal(await move, 'job');
  assert.deepEqual(await r.lrange('out', 0, -1), ['job']);
  assert.equal(await waiting.blpop('nothing', 'none', 0.01), null);
});

test('scripts', async () => {
  // Sent as EVALSHA, and as EVAL when the server does not have it.
  r.defineCommand('take', {
    numberOfKeys: 1,
    lua: `local n = tonumber(redis.call('GET', KEYS[1]) or 0)
          if n < tonumber(ARGV[1]) then return redis.error_reply('SHORT of it') end
          return {redis.call('DECRBY', KEYS[1], ARGV[1]), cjson.encode({key = KEYS[1]}), redis.sha1hex('')}`,
  });
  await r.set('stock', 10);
  await r.script('FLUSH');
  assert.deepEqual(await r.take('stock', 3), [7, '{"key":"stock"}', 'da39a3ee5e6b4b0d3255bfef95601890afd80709']);
  await r.script('FLUSH');
  const replies = await r.pipeline().take('stock', 3).take('stock', 30).exec();
  assert.equal(replies[0][1][0], 4);
  assert.match(replies[1][0].message, /^SHORT of it/);
  const sha = await r.script('LOAD', 'return {1, ARGV[1], false, {ok="fine"}, 3.9}');
  assert.deepEqual(await r.evalsha(sha, 0, 'x'), [1, 'x', null, 'fine', 3]);
  await assert.rejects(r.evalsha('0'.repeat(40), 0), /^ReplyError: NOSCRIPT No matching script/);

  const library = `#!lua name=counters
    redis.register_function('up', function(keys, args) return redis.call('INCRBY', keys[1], args[1]) end)
    redis.register_function{function_name='see', callback=function(keys) return redis.call('GET', keys[1]) end, flags={'no-writes'}}`;
  assert.equal(await r.function('LOAD', 'REPLACE', library), 'counters');
  assert.equal(await r.fcall('up', 1, 'n', 5), 5);
  assert.equal(await r.fcall_ro('see', 1, 'n'), '5');
  assert.equal((await r.function('LIST'))[0][1], 'counters');
  assert.equal(await r.function('DELETE', 'counters'), 'OK');
});

test('scans', async () => {
  const fields = range(700).map(i => `field:${i}`);
  await r.mset(Object.fromEntries(fields.map(f => [`scan:${f}`, 1])));
  await r.hset('scan hash', Object.fromEntries(fields.map(f => [f, 'v'])));
  await r.sadd('scan set', fields);
  await r.zadd('scan zset', ...fields.flatMap((f, i) => [i, f]));
  const collect = async stream => {
    const seen = [];
    for await (const part of stream) seen.push(...part);
    return seen;
  };
  const distinct = values => [...new Set(values)].sort();
  const pairs = flat => Object.fromEntries(range(flat.length / 2).map(i => [flat[2 * i], flat[2 * i + 1]]));
  assert.deepEqual(distinct(await collect(r.scanStream({ match: 'scan:*', count: 50 }))), fields.map(f => `scan:${f}`).sort());
  assert.deepEqual(await collect(r.scanStream({ type: 'zset', match: 'scan *', count: 500 })), ['scan zset']);
  assert.deepEqual(pairs(await collect(r.hscanStream('scan hash', { count: 20 }))), Object.fromEntries(fields.map(f => [f, 'v'])));
  assert.deepEqual(distinct(await collect(r.sscanStream('scan set'))), [...fields].sort());
  assert.deepEqual(pairs(await collect(r.zscanStream('scan zset', { match: 'field:69?' }))),
    Object.fromEntries(range(10).map(i => [`field:${690 + i}`, String(690 + i)])));
});

test('streams', async () => {
  await r.xgroup('CREATE', 'events', 'workers', '$', 'MKSTREAM');
  const ids = [];
  for (const i of range(5)) ids.push(await r.xadd('events', 'MAXLEN', '~', 1000, '*', 'n', i));
  const [[key, entries]] = await r.xreadgroup('GROUP', 'workers', 'ann', 'COUNT', 3, 'BLOCK', 0, 'STREAMS', 'events', '>');
  assert.equal(key, 'events');
  assert.deepEqual(entries, ids.slice(0, 3).map((id, i) => [id, ['n', String(i)]]));
  assert.equal(await r.xack('events', 'workers', ids[0]), 1);
  assert.deepEqual(await r.xpending('events', 'workers'), [2, ids[1], ids[2], [['ann', '2']]]);
  const [, claimed] = await r.xautoclaim('events', 'workers', 'ben', 0, '0');
  assert.deepEqual(claimed.map(e => e[0]), ids.slice(1, 3));
  const waiting = connect();
  const read = waiting.xread('BLOCK', 0, 'STREAMS', 'events', '$');
  await until(async () => /blocked_clients:1\r/.test(await r.info('clients')));
  const last = await r.xadd('events', '*', 'n', 'last');
  assert.deepEqual(await read, [['events', [[last, ['n', 'last']]]]]);
});

test('the server lets go of a client that quits', async () => {
  const c = connect({ connectionName: 'leaving', db: 2 });
  await c.set('k', 'of 2');
  assert.equal(await r.get('k'), null);
  assert.match(await r.client('LIST'), /name=leaving .*db=2/);
  assert.equal(await c.quit(), 'OK');
  await until(async () => c.status === 'end' && !/name=leaving/.test(await r.client('LIST')));
});
