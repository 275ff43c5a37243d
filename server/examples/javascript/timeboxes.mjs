import { client, follow, quote } from './follow.mjs';

export function hit(key, at = Date.now(), width = 60_000, keep = 5) { // null: too late
  const start = Math.floor(at / width) * width;
  return client.sendCommand(
    ['ZADDEX', key, 'INCR', 'PXAT', String(start + keep * width - 1), '1', String(start)]);
}

export function hits(key, n, width = 60_000) {
  const start = Math.floor(Date.now() / width) * width;
  return client.zmScore(key, Array.from({ length: n }, (_, i) => String(start - i * width)));
}

export const followHits = (key, update) =>
  follow(`__query@0,1s__:ZRANGE ${quote(key)} 0 -1 WITHSCORES`, buckets => update(Object.fromEntries(buckets)));
