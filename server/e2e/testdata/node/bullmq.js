// A job queue: BullMQ, whose every step is a Lua script, most of them long, with
// cjson and cmsgpack.
'use strict';
const { test, after } = require('node:test');
const assert = require('node:assert/strict');
const { Queue, QueueEvents, Worker, FlowProducer, UnrecoverableError } = require('bullmq');
const { host, port, until, range } = require('./common.js');

const connection = { host, port };
const open = [];
const opened = it => (open.push(it), it);
after(() => Promise.all(open.reverse().map(it => it.close(true))));

test('jobs are done, in the order of their priority', async () => {
  const queue = opened(new Queue('plain', { connection }));
  const events = opened(new QueueEvents('plain', { connection }));
  await events.waitUntilReady();
  await queue.addBulk(range(20).map(i => ({ name: 'mail', data: { i }, opts: { priority: 20 - i } })));
  assert.deepEqual(await queue.getJobCounts('prioritized', 'waiting'), { prioritized: 20, waiting: 0 });
  const last = await queue.add('mail', { i: 20 }, { priority: 30 });
  const done = [];
  opened(new Worker('plain', async job => { done.push(job.data.i); return { sent: job.data.i }; }, { connection }));
  assert.deepEqual(await last.waitUntilFinished(events, 60_000), { sent: 20 });
  assert.deepEqual(done, [...range(20).reverse(), 20]);
  assert.equal((await queue.getJobCounts('completed')).completed, 21);
  const [newest] = await queue.getJobs(['completed'], 0, 0);
  assert.deepEqual(newest.returnvalue, { sent: 20 });
});

test('delays, attempts, failures', async () => {
  const queue = opened(new Queue('hard', { connection }));
  const log = [];
  const delayed = await queue.add('delayed', {}, { delay: 200 });
  assert.equal(await delayed.getState(), 'delayed');
  opened(new Worker('hard', async job => {
    log.push(`${job.name} ${job.attemptsMade}`);
    await job.updateProgress(50);
    await job.log('working');
    if (job.name === 'hopeless') throw new UnrecoverableError('no way');
    if (job.name === 'flaky' && job.attemptsMade < 2) throw new Error('not yet');
    return job.name;
  }, { connection }));
  const flaky = await queue.add('flaky', {}, { attempts: 3, backoff: { type: 'exponential', delay: 10 } });
  const hopeless = await queue.add('hopeless', {}, { attempts: 5 });
  await until(async () => await flaky.getState() === 'completed' && await delayed.getState() === 'completed' && await hopeless.getState() === 'failed');
  assert.deepEqual(log.filter(l => l.startsWith('flaky')), ['flaky 0', 'flaky 1', 'flaky 2']);
  assert.deepEqual(log.filter(l => l.startsWith('hopeless')), ['hopeless 0']);
  assert.deepEqual((await queue.getJobLogs(flaky.id)).logs, ['working', 'working', 'working']);
  const [failed] = await queue.getFailed();
  assert.equal(failed.failedReason, 'no way');
  await failed.remove();
  assert.equal(await queue.getFailedCount(), 0);
  const finished = await queue.getJob(delayed.id);
  assert.ok(finished.finishedOn - finished.timestamp >= 190);
});

test('flows, deduplication, pausing, cleaning', async () => {
  const queue = opened(new Queue('steps', { connection }));
  const flow = opened(new FlowProducer({ connection }));
  await queue.pause();
  const { job } = await flow.add({
    name: 'sum', queueName: 'steps',
    children: range(5).map(i => ({ name: 'part', queueName: 'steps', data: { i } })),
  });
  assert.equal(await job.getState(), 'waiting-children');
  const once = await queue.add('once', {}, { deduplication: { id: 'same' } });
  const again = await queue.add('once', {}, { deduplication: { id: 'same' } });
  assert.equal(again.id, once.id);
  opened(new Worker('steps', async job => {
    if (job.name === 'sum') return Object.values(await job.getChildrenValues()).reduce((a, b) => a + b);
    return job.data.i ?? 0;
  }, { connection, concurrency: 3 }));
  assert.equal(await queue.isPaused(), true);
  await queue.resume();
  await until(async () => await job.getState() === 'completed' && await once.getState() === 'completed');
  assert.equal((await queue.getJob(job.id)).returnvalue, 10);
  assert.equal((await queue.clean(0, 100, 'completed')).length, 7);
  await queue.obliterate({ force: true });
});

test('a schedule and a limit', async () => {
  const queue = opened(new Queue('timed', { connection }));
  await queue.upsertJobScheduler('tick', { every: 50 }, { name: 'tick' });
  let ticks = 0;
  const worker = opened(new Worker('timed', async () => { ticks++; }, { connection, limiter: { max: 2, duration: 100 } }));
  await until(() => ticks >= 4);
  assert.equal(await queue.removeJobScheduler('tick'), true);
  await worker.close();
});
