// ioredis follows the primary that Sentinels name:
//
//   NODE_PATH=…/node_modules node ioredis_sentinel.js HOST:PORT ...
//
// It increments a counter, and prints "steady" when 100 increments in a row have
// succeeded. A line of its input makes it begin again.
'use strict';
const Redis = require('ioredis');

const sentinels = process.argv.slice(2).map(a => ({ host: a.split(':')[0], port: Number(a.split(':')[1]) }));
const r = new Redis({ sentinels, name: 'zsetd', maxRetriesPerRequest: 1 });
r.on('error', () => {}); // each command tells as well

let row = 0, reported = false;
require('node:readline').createInterface({ input: process.stdin })
  .on('line', () => { row = 0; reported = false; })
  .on('close', () => process.exit());

async function run() {
  for (;;) {
    try {
      await r.incr('counter:ioredis');
    } catch {
      row = -1;
    }
    await new Promise(f => setTimeout(f, 1));
    if (++row >= 100 && !reported) {
      reported = true;
      console.log('steady');
    }
  }
}
run();
