// Commands and streams of the console's server.

import { throttle } from './dom.js';
import { Bin, commandLine, id, score, show } from './text.js';

export class CommandError extends Error {}

export const state = { db: 0, skew: 0 };

// now returns the server's clock, in milliseconds since 1970.
export const now = () => Date.now() + state.skew;

const encode = (v) => (v instanceof Bin ? { base64: v.base64 } : typeof v === 'number' ? score(v) : String(v));
const value = (v) => (v === null ? null : Array.isArray(v) ? v.map(value) : encode(v));
const text = (node) => (node.base64 ? new Bin(node.value) : String(node.value));

// plain returns the value of a typed reply: strings and Bins, numbers, booleans, null, arrays; a map is an array of pairs.
export function plain(node) {
	switch (node.type) {
		case 'array': case 'set': case 'push':
			return node.value === null ? null : node.value.map(plain);
		case 'map':
			return node.value.map(([k, v]) => [plain(k), plain(v)]);
		case 'integer': // one that does not fit a number stays text
			return node.value;
		case 'double':
			return typeof node.value === 'string' ? Number(node.value.replace('inf', 'Infinity')) : node.value;
		case 'null':
			return null;
		case 'boolean':
			return node.value;
		case 'error':
			return new CommandError(node.value);
		default:
			return text(node);
	}
}

// post sends commands. Those of a view are left out of the server's statistics, unless they write.
async function post(body, view, signal) {
	let response;
	try {
		response = await fetch('command?types=1' + (view ? '&view=1' : '') + (state.db ? '&db=' + state.db : ''), { // a user may lack SELECT
			method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body), signal, credentials: 'same-origin',
		});
	} catch (e) {
		if (e.name === 'AbortError') throw e;
		lost();
		throw new CommandError('The server does not answer.');
	}
	if (response.status === 401) {
		location.assign('login');
		throw new CommandError('The session has ended: log in again.');
	}
	const source = await response.text();
	try {
		return parse(source);
	} catch {
		throw new CommandError(source.trim() || response.statusText);
	}
}

// parse is JSON.parse. Integers of more than 15 digits do not fit a number: they stay text where the browser tells it.
const parse = (source) => JSON.parse(source, /[^0-9."][0-9]{16}/.test(source) ? (_, v, c) => (typeof v === 'number' && !Number.isSafeInteger(v) && c?.source && /^-?[0-9]+$/.test(c.source) ? c.source : v) : undefined);

// lost asks each second whether the server answers, after a request or a stream has failed. Events of the document say
// that it does not, and that it does so again.
let asking = false;
async function lost() {
	if (asking) return;
	asking = true;
	const since = Date.now();
	let why, was = false;
	while ((why = await health())) {
		was = true;
		document.dispatchEvent(new CustomEvent('away', { detail: { since, why } }));
		await new Promise((resolve) => setTimeout(resolve, 1000));
	}
	asking = false;
	if (was) document.dispatchEvent(new CustomEvent('back'));
}

// health returns why the server does not serve, or null.
async function health() {
	try {
		const response = await fetch('healthz', { cache: 'no-store' });
		return response.ok ? null : (await response.text()).trim() || response.statusText;
	} catch {
		return 'it does not answer';
	}
}

// every calls f now, and each ms milliseconds while the page is in sight. It returns a function that ends that.
export function every(f, ms) {
	const timer = setInterval(() => document.hidden || f(), ms);
	f();
	return () => clearInterval(timer);
}

const unwrap = (reply) => (reply.error !== undefined && reply.type === undefined ? { type: 'error', value: reply.error } : reply.result !== undefined ? reply.result : reply);

// typed runs a command and returns its reply as a tree {type, value, base64}.
export async function typed(args, signal, view) {
	return unwrap(await post(args.map(encode), view, signal));
}

// typedPipeline runs commands on one connection and returns their replies as trees.
export async function typedPipeline(commands, signal, view) {
	const reply = await post(commands.map((args) => args.map(encode)), view, signal);
	if (!Array.isArray(reply)) {
		const whole = unwrap(reply);
		if (whole.type === 'error') throw new CommandError(whole.value);
		return Array.isArray(whole) ? whole.map(unwrap) : whole.value;
	}
	return reply.map(unwrap);
}

// run returns the value of the reply to a command of a view; it throws a CommandError for an error.
export async function run(...args) {
	const value = plain(await typed(args, undefined, true));
	if (value instanceof CommandError) throw value;
	return value;
}

// pipeline returns the values of the replies to commands of a view; errors are among them.
export async function pipeline(commands, signal) {
	return commands.length ? (await typedPipeline(commands, signal, true)).map(plain) : [];
}

// transact runs commands in a transaction if the conditions hold: each is a command, whose key is its first argument, and
// the value that it must have. It throws a CommandError, after which nothing has changed, if one does not.
export async function transact(conditions, commands) {
	const keys = new Map(conditions.map(([[, key]]) => [id(key), key]));
	const reply = await post({ watch: [...keys.values()].map(encode), if: conditions.map(([args, v]) => [args.map(encode), value(v)]), then: commands.map((args) => args.map(encode)) }, true);
	if (reply.condition !== undefined) {
		const [args, was] = conditions[reply.condition], is = reply.now;
		const text = Array.isArray(was) || Array.isArray(is) || is?.error ? '' : `: ${commandLine(args, 60)} is now ${show(stringField(is), 200)}`;
		const why = was === null || was === 0 && args[0] !== 'ZSCORE' ? 'It is there already' : 'Another client has changed this meanwhile';
		throw new CommandError(`${why}${text}. Nothing was written. Close this dialog to see what is there.`);
	}
	if (!Array.isArray(reply)) throw new CommandError(reply.error);
	return reply.map(unwrap).map(plain);
}

export const ok = (v, otherwise) => (v instanceof CommandError ? otherwise : v);

export const pairs = (flat) => {
	if (!flat || !flat.length || Array.isArray(flat[0])) return flat || [];
	const out = [];
	for (let i = 0; i + 1 < flat.length; i += 2) out.push([flat[i], flat[i + 1]]);
	return out;
};

export async function readClock() {
	const sent = Date.now();
	const [s, us] = await run('TIME');
	state.skew = s * 1000 + us / 1000 - (sent + Date.now()) / 2;
}

export function stringField(v) {
	return v !== null && typeof v === 'object' && v.base64 !== undefined ? new Bin(v.base64) : v;
}

// escaped returns a byte string for the query of an address. Other bytes than UTF-8 are there as they are.
const escaped = (v) => (v instanceof Bin ? [...v.bytes].map((b) => '%' + b.toString(16).padStart(2, '0')).join('') : encodeURIComponent(v));

// stream opens Server-Sent Events of a path with parameters. on has listeners by event name, and state(open, reason, refused).
// It returns a function that closes it. Browsers open few connections to a server, so a page that is not in
// sight has no stream, unless keep is set.
export function stream(path, params, on, keep) {
	const query = Object.entries(params).flatMap(([k, v]) => [v].flat().map((one) => k + '=' + escaped(one))).join('&');
	let source, timer, wait = 500;
	const stop = () => {
		clearTimeout(timer);
		source?.close();
		source = null;
	};
	const open = () => {
		stop();
		source = new EventSource(path + '?' + query);
		source.onopen = () => {
			wait = 500;
			on.state?.(true);
		};
		source.onerror = () => {
			on.state?.(false);
			lost();
			if (!source || source.readyState !== EventSource.CLOSED) return;
			timer = setTimeout(open, wait);
			wait = Math.min(wait * 2, 15000);
			reason();
		};
		source.addEventListener('end', (e) => on.state?.(false, JSON.parse(e.data).error));
		for (const [name, f] of Object.entries(on)) {
			if (name !== 'state') source.addEventListener(name, (e) => f(parse(e.data)));
		}
	};
	// reason asks why a stream was refused, which an EventSource does not say.
	const reason = async () => {
		const abort = new AbortController();
		try {
			const response = await fetch(path + '?' + query, { signal: abort.signal });
			if (response.status === 401) location.assign('login');
			else if (!response.ok) on.state?.(false, (await response.json().catch(() => ({}))).error || response.statusText, true);
			abort.abort();
		} catch { /* the stream tries again */ }
	};
	const seen = () => (document.hidden ? stop() : source || open());
	if (!keep) document.addEventListener('visibilitychange', seen);
	if (keep || !document.hidden) open();
	return () => {
		document.removeEventListener('visibilitychange', seen);
		stop();
	};
}

// query returns a command as a live query: words in quotes, whose other bytes than characters are escapes.
const query = (args) => args.map((v) => (/^[\w.:@+-]+$/.test(v) ? v : '"' + (v instanceof Bin ? Array.from(v.bytes, byte).join('') : encode(v).replace(/["\\\x00-\x1f]/g, (c) => byte(c.charCodeAt(0)))) + '"')).join(' ');
const byte = (b) => '\\x' + b.toString(16).padStart(2, '0');
const result = (v) => (Array.isArray(v) ? v.map(result) : stringField(v));

// follow calls show with the replies to commands: now, and when one differs. commands(replies, reading) returns them, and
// after them those that need the replies to the ones before, which may be missing at first. One stream of live queries
// brings the replies. Where the server refuses it, or a command is no query, the commands run again after each change of
// their keys: then reading is true. It returns functions that ask for other commands, read where no stream brings the
// replies, and close.
export function follow(key, commands, show, status) {
	const known = new Map();
	let asked = '', refused = false, reading = false, closed = false, timer = 0, stop = () => {};
	// A cursor means nothing once the data has changed, so that no query has one.
	const noQueries = (all) => refused || all.length > 100 || all.some(([name]) => name.endsWith('SCAN'));
	const read = throttle(async () => {
		const replies = [];
		let all;
		try {
			while ((all = commands(replies, true)).length > replies.length) replies.push(...await pipeline(all.slice(replies.length)));
		} catch (e) {
			replies.splice(0, Infinity, ...(all = commands([], true)).map(() => e));
		}
		if (closed || !reading) return;
		show(replies);
		if (!noQueries(all) && !noQueries(commands([]))) ask();
	}, 80);
	const open = (name, path, params, on) => {
		if (name === asked) return;
		asked = name;
		stop();
		stop = stream(path, { ...params, db: state.db }, { ...on, state: (...how) => name === asked && !closed && on.state(...how) });
	};
	const fallBack = () => {
		refused = true;
		ask();
	};
	const ask = () => {
		clearTimeout(timer);
		timer = 0;
		if (closed) return;
		const replies = (all) => all.map((one) => known.get(query(one))), first = commands([]);
		let all, next = first;
		do next = commands(replies((all = next)));
		while (next.length > all.length);
		all = next;
		if ((reading = noQueries(all))) {
			known.clear();
			const keys = [...new Map(first.map(([name, k, second]) => (name === 'XINFO' ? second : k)).map((k) => [id(k), k])).values()];
			open('changes ' + keys.map(id), 'events', { changes: keys }, { message: read, state: (on, reason) => {
				status(on, reason);
				if (on || reason) read(); // changes before the stream
			} });
			return read();
		}
		const q = all.map(query);
		for (const name of known.keys()) if (!q.includes(name)) known.delete(name);
		open(q.join('\n'), 'live', { q }, {
			state: (on, reason, no) => (no ? fallBack() : status(on, reason)),
			message: ({ query, result: value, error }) => {
				if (error?.includes('exceeds')) return fallBack(); // the size of a reply
				known.set(q[query], error === undefined ? result(value) : new CommandError(error));
				timer ||= setTimeout(ask, 10); // after the replies to the other queries
			},
		});
		if (!replies(all).slice(0, first.length).includes(undefined)) show(replies(all));
	};
	ask();
	return { ask, read: () => reading && read(), close: () => {
		closed = true;
		clearTimeout(timer);
		stop();
	} };
}
