import { client, follow, quote } from './follow.mjs';

export const show = (page, event, seconds) => client.sendCommand(
  ['ZADDEX', page, 'EX', String(seconds), '@now', JSON.stringify(event)]);

export function changedMembers(message) { // a Buffer, for lengths are in bytes: zadd|3:ann,3:bob
  const bar = message.indexOf('|'), members = [];
  for (let i = bar + 1; i < message.length;) {
    const colon = message.indexOf(':', i);
    const end = colon + 1 + Number(message.toString('utf8', i, colon));
    members.push(message.toString('utf8', colon + 1, end));
    i = end + 1;
  }
  return [message.toString('utf8', 0, bar), members];
}

export async function watchPages(again, changed) {
  const space = '__subkeyspace@0__:';
  const subscriber = client.duplicate();
  subscriber.on('ready', again); // connected, or connected again: read what is open
  await subscriber.connect();
  await subscriber.pSubscribe(space + 'live:*', (message, channel) =>
    changed(channel.toString().slice(space.length), ...changedMembers(message)), true);
  return subscriber;
}

export const followPage = (page, update) => follow(`__query@0__:ZRANGE ${quote(page)} 0 -1 REV`, update);
