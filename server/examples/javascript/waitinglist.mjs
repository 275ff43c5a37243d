import { client, follow, quote } from './follow.mjs';

export async function checkIn(room, user) {
  const [, rank] = await Promise.all([ // commands of one tick go together
    client.sendCommand(['ZADDEX', room, 'EX', '20', '*', user]),
    client.zRank(room, user)]);
  return rank;
}

export const followRank = (room, user, tell) => // null: no place
  follow(`__query@0__:ZRANK ${quote(room)} ${quote(user)}`, tell);
