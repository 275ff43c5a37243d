import { createClient } from 'redis'; // node-redis

export const client = await createClient().connect();
const subscriber = await client.duplicate().connect();

export const quote = word => '"' + word.replace(/["\\]/g, '\\$&') + '"'; // a word of a live query
export const follow = (query, f) => // calls f with the reply, and with each one that differs
  subscriber.subscribe(query, message => f(JSON.parse(message).result));
