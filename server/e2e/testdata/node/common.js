// What the programs beside this file share. Each is run as
//
//   NODE_PATH=…/node_modules node PROGRAM.js HOST:PORT
//
// against an empty server, and says with node's own test runner what holds.
'use strict';
const [host, port] = process.argv[2].split(':');

// until waits, for a busy machine's half a minute, for what comes about without a reply.
async function until(holds) {
  for (const end = Date.now() + 30_000; !(await holds());) {
    if (Date.now() > end) throw new Error(`never: ${holds}`);
    await new Promise(f => setTimeout(f, 5));
  }
}

// range is 0, 1, … n - 1.
const range = n => [...Array(n).keys()];

module.exports = { host, port: Number(port), until, range };
