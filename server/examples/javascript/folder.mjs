import { client, follow } from './follow.mjs';

export async function fold(group, detail) {
  const [added] = await client.multi()
    .addCommand(['ZADD', 'due', 'NX', '@now+5s', group])
    .zIncrBy('due', 0.000001, group) // changes the score for a worker that holds the group
    .addCommand(['ZADD', 'details:' + group, '@now', detail])
    .exec();
  return added; // 1: the first of its group
}

export async function work(publish) {
  const worker = await client.duplicate().connect();
  for (;;) {
    const [, [[group, lease]]] = await worker.sendCommand(
      ['BZCLAIM', '0', '1', 'due', '-inf', '@now', '@now+30s', 'LEASE']);
    const began = (lease - 30).toFixed(6), ends = performance.now() + 30_000;
    await publish(group, await worker.zRangeByScore('details:' + group, '-inf', began));
    if (performance.now() > ends) continue; // another worker may have the group
    await worker.multi()
      .addCommand(['ZREMIFEQ', 'due', String(lease), group])
      .addCommand(['ZADD', 'due', 'XX', 'LT', '@now+5s', group])
      .zRemRangeByScore('details:' + group, '-inf', began)
      .exec();
  }
}

export const followDue = update => follow('__query@0__:ZCOUNT due -inf @now', update);
