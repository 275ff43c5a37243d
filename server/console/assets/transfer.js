// Values as files and as texts: the forms in which a value is copied and downloaded, and from which a new key is made.

import { button, fill, h, $, say } from './dom.js';
import { CommandError, pairs, pipeline, state } from './api.js';
import { Bin, bytes, bytesOf, count, fromBytes, score, show, split } from './text.js';
import { tell } from './dialog.js';

// maxBytes bounds what the page reads of a value at once, by its MEMORY USAGE.
const maxBytes = 16000000, maxElements = 100000;

// copy puts a text on the clipboard, which a browser gives to pages of https and of this machine; elsewhere a dialog
// has the text.
export async function copy(v) {
	const text = v instanceof Bin ? show(v, Infinity) : v;
	try {
		await navigator.clipboard.writeText(text);
		say('Copied.');
	} catch {
		const dialog = $('#dialog'), area = h('textarea', { rows: 8, readonly: true, 'aria-label': 'Text' });
		area.value = text;
		dialog.classList.remove('dangerous');
		fill(dialog, h('h2', { id: 'dialog-title' }, 'The browser does not let the page copy'), h('div', { class: 'field' }, area), h('div', { class: 'actions' }, button('Close', () => dialog.close())));
		dialog.onclose = null;
		dialog.showModal();
		area.select();
	}
}

// save offers a file to the browser.
export function save(name, parts, type) {
	const address = URL.createObjectURL(new Blob([parts].flat(), { type }));
	h('a', { href: address, download: name.replace(/[^\w.@+-]+/g, '_').slice(0, 100) }).click();
	setTimeout(() => URL.revokeObjectURL(address), 10000);
	say('Saved ' + name + '.');
}

// json is JSON.stringify for byte strings: one that is not UTF-8 is {"base64": …}, as in the files of zsetd export.
const json = (v) => JSON.stringify(v, (_, one) => (one instanceof Bin ? { base64: one.base64 } : one));

const readers = {
	string: (key) => ['GET', key], list: (key) => ['LRANGE', key, 0, -1], set: (key) => ['SMEMBERS', key], hash: (key) => ['HGETALL', key],
	zset: (key) => ['ZRANGE', key, 0, -1, 'WITHSCORES'], stream: (key) => ['XRANGE', key, '-', '+'],
};

// readWhole returns the value of a key, with its deadlines. It throws an Error for one that is too large.
async function readWhole(key, facts) {
	if ((facts.memory || 0) > maxBytes) throw new Error(`The value has ${bytes(facts.memory)}; the page reads up to ${bytes(maxBytes)}. The command zsetd export writes all of a file.`);
	if (!readers[facts.type]) throw new Error('The page does not read values of this type.');
	const [value, end] = await pipeline([readers[facts.type](key), ['PEXPIRETIME', key]]);
	if (value instanceof CommandError) throw value;
	if (value === null) throw new Error('It is no longer there.');
	const out = { value, end };
	if (facts.type === 'hash' || facts.type === 'zset') {
		const list = pairs(value).map(([m]) => m);
		const ends = list.length ? (await pipeline([facts.type === 'hash' ? ['HPEXPIRETIME', key, 'FIELDS', list.length, ...list] : ['ZPEXPIRETIME', key, 'MEMBERS', list.length, ...list]]))[0] : [];
		if (Array.isArray(ends)) out.deadlines = list.map((m, i) => [m, ends[i]]).filter(([, t]) => t > 0);
	}
	return out;
}

// line returns a key as a line of JSON, in the form of zsetd export; a stream, which that has as commands, has the form
// [[id, [[field, value], …]], …].
export async function line(key, facts) {
	const { value, end, deadlines } = await readWhole(key, facts);
	const forms = { hash: pairs, stream: (v) => v.map(([entry, fields]) => [entry, pairs(fields)]) };
	// An infinite score is a text, and JSON.stringify writes 0 for -0.
	const scores = (v) => '[' + pairs(v).map(([m, s]) => `[${json(m)},${isFinite(s) ? score(s) : json(score(s))}]`).join(',') + ']';
	const parts = [['db', state.db], ['key', key], ['type', facts.type], ...(end > 0 ? [['expireat', end]] : []), ['value'], ...(deadlines?.length ? [['deadlines', deadlines]] : [])];
	return '{' + parts.map(([name, v]) => `"${name}":` + (name !== 'value' ? json(v) : facts.type === 'zset' ? scores(value) : json((forms[facts.type] || ((all) => all))(value)))).join(',') + '}';
}

// text returns a value as it is copied: a string as it is, another value as JSON.
export async function text(key, facts) {
	if (facts.type === 'string') return (await readWhole(key, facts)).value;
	return line(key, facts);
}

const fileName = (key) => show(key, 60).replace(/\.+$/, '') || 'key';

// attempt runs a function, and says in a dialog why it failed.
export const attempt = (title, f) => f().catch((e) => tell(title, e.message));

export const downloadJSON = async (key, facts) => save(fileName(key) + '.json', await line(key, facts) + '\n', 'application/json');
export const downloadRaw = async (key, facts) => save(fileName(key), bytesOf((await readWhole(key, facts)).value), 'application/octet-stream');

// rowsOf returns the heads and the rows of a table that the page shows. A cell of byte strings has them as they are.
function rowsOf(shown) {
	const heads = [...shown.tHead.rows[0].cells].map((c) => c.textContent);
	const used = heads.map((_, i) => i).filter((i) => heads[i] !== 'Actions');
	const value = (cell) => {
		const list = [...cell.querySelectorAll('.bytes')].map((e) => e.bytes);
		return list.length > 1 ? list : list.length ? list[0] : (cell.matches('.n') && cell.firstChild ? cell.firstChild : cell).textContent;
	};
	return { heads: used.map((i) => heads[i]), rows: [...shown.tBodies[0].rows].map((r) => used.map((i) => value(r.cells[i]))) };
}

// saveTable saves the table that the page shows, as CSV (RFC 4180) or JSON. A text that a spreadsheet would run as a formula
// has an apostrophe before it in CSV.
export function saveTable(key, shown, form) {
	if (!shown) return tell('Export the table', 'This view has no table.');
	const { heads, rows } = rowsOf(shown), name = fileName(key) + '-table.' + form;
	if (form === 'json') return save(name, json(rows.map((r) => Object.fromEntries(r.map((v, i) => [heads[i], v])))) + '\n', 'application/json');
	const field = (v) => {
		let s = Array.isArray(v) ? json(v) : v instanceof Bin ? show(v, Infinity) : v;
		if (/^[=+\-@\t\r]/.test(s) && isNaN(Number(s))) s = "'" + s;
		return /[",\r\n]/.test(s) ? '"' + s.replace(/"/g, '""') + '"' : s;
	};
	save(name, [heads, ...rows].map((r) => r.map(field).join(',') + '\r\n'), 'text/csv');
}

// parts returns the elements of a JSON array, or the names and values of an object, as byte strings: a string has its
// characters, and another value the text of its tokens, so that numbers stay as they are written.
function parts(source) {
	JSON.parse(source); // throws for what is no JSON
	const tokens = source.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s"[\]{},:]+/g);
	const plain = (list) => (list.length === 1 && list[0][0] === '"' ? JSON.parse(list[0]) : bytesIn(list.join('')));
	const bytesIn = (s) => {
		const m = /^\{"base64":"([A-Za-z0-9+/=]*)"\}$/.exec(s);
		return m ? fromBytes(new Bin(m[1]).bytes) : s;
	};
	if (tokens[0] !== '[' && tokens[0] !== '{') throw new Error('This is neither an array nor an object.');
	const out = [];
	let depth = 0, one = [], name;
	for (const t of tokens.slice(1, -1)) {
		if (depth === 0 && t === ',') {
			out.push(name === undefined ? { list: one } : { name, list: one });
			[one, name] = [[], undefined];
		} else if (depth === 0 && t === ':') {
			name = JSON.parse(one[0]);
			one = [];
		} else {
			depth += '[{'.includes(t) ? 1 : ']}'.includes(t) ? -1 : 0;
			one.push(t);
		}
	}
	if (one.length) out.push(name === undefined ? { list: one } : { name, list: one });
	return { object: tokens[0] === '{', parts: out.map(({ name, list }) => ({ name, value: plain(list), source: list.join('') })) };
}

const nested = (p) => p.source[0] === '[' || (p.source[0] === '{' && !p.source.startsWith('{"base64":'));

// pairsOf returns the pairs of an object, of an array of pairs, or of an array in which a value follows its name.
function pairsOf(source) {
	const { object, parts: list } = parts(source);
	if (object) return list.map((p) => [p.name, p.value]);
	if (list.every((p) => p.source[0] === '[')) {
		return list.map((p) => {
			const two = parts(p.source).parts.map((q) => q.value);
			if (two.length !== 2) throw new Error(`${p.source.slice(0, 60)} is no pair.`);
			return two;
		});
	}
	if (list.length % 2) throw new Error('A name has no value.');
	return pairs(list.map((p) => p.value));
}

// words returns the words of each line of a text, as redis-cli splits it: n of them.
function words(source, n) {
	return source.split('\n').filter((l) => l.trim()).map((l) => {
		const list = split(l);
		if (list.length !== n) throw new Error(`${l.slice(0, 60)}: ${n} words are expected. Put one with spaces in quotes.`);
		return list;
	});
}

// downloaded returns what line has written: the type, the text of the value and the deadlines.
function downloaded(source) {
	const found = Object.fromEntries(parts(source).parts.map((p) => [p.name, p]));
	if (!found.type || !found.value) throw new Error('This is no value that the page has saved: "type" and "value" are missing.');
	const { type, expireat, deadlines = [] } = JSON.parse(source, (_, v) => (v?.base64 !== undefined && Object.keys(v).length === 1 ? fromBytes(new Bin(v.base64).bytes) : v));
	return { type, source: type === 'string' ? found.value.value : found.value.source, expireat, deadlines };
}

// build returns the commands that make a key of what the user has written: lines, JSON, or what line has written.
export function build(key, type, form, source, ttl) {
	if (key === '') throw new Error('Give the key a name.');
	if (ttl && !/^(\d+|@now(ms)?([+-](\d+(ms|[smhd]))+)?)$/.test(ttl)) throw new Error('The time to live is a number of seconds, or a time such as @now+1h30m.');
	const kept = [];
	if (form === 'download') {
		const from = downloaded(source);
		({ type, source } = from);
		if (from.expireat && !ttl) kept.push(['PEXPIREAT', key, from.expireat]);
		for (const [m, end] of from.deadlines) kept.push(type === 'hash' ? ['HPEXPIREAT', key, end, 'FIELDS', 1, m] : ['ZPEXPIREAT', key, end, 'MEMBERS', 1, m]);
		form = type === 'string' ? 'lines' : 'json';
	}
	const isJSON = form === 'json';
	const elements = () => (isJSON ? parts(source).parts.map((p) => p.value) : source.split('\n').filter((l, i, all) => l !== '' || i < all.length - 1));
	const list = [], some = (v) => {
		if (!v.length) throw new Error('Give it an element at least.');
		if (v.length > maxElements) throw new Error(`At most ${count(maxElements)} elements: the prompt, or zsetd import, takes more.`);
		return v.flat();
	};
	switch (type) {
		case 'zset': {
			const scored = isJSON ? pairsOf(source).map(([m, s]) => [s, m]) : words(source, 2);
			for (const [s] of scored) if (typeof s !== 'string' || !/^(@now.*|[-+]?(inf|infinity|(\d+\.?\d*|\.\d+)(e[-+]?\d+)?))$/i.test(s)) throw new Error(`${show(s, 40)} is no score.`);
			list.push(['ZADD', key, ...some(scored)]);
			break;
		}
		case 'hash':
			list.push(['HSET', key, ...some(isJSON ? pairsOf(source) : words(source, 2))]);
			break;
		case 'list': case 'set':
			list.push([type === 'list' ? 'RPUSH' : 'SADD', key, ...some(elements())]);
			break;
		case 'stream': {
			const all = isJSON ? parts(source) : null;
			if (isJSON && !all.object && all.parts.every(nested)) {
				if (!all.parts.length) some([]);
				for (const p of all.parts) {
					const entry = p.source[0] === '[' ? parts(p.source).parts : null;
					const id = entry?.length === 2 && !nested(entry[0]) && nested(entry[1]) ? entry[0].value : '*';
					list.push(['XADD', key, id, ...some(pairsOf(id === '*' ? p.source : entry[1].source))]);
				}
			} else list.push(['XADD', key, '*', ...some(isJSON ? pairsOf(source) : words(source, 2))]);
			break;
		}
		default:
			if (isJSON) JSON.parse(source);
			list.push(['SET', key, source]);
	}
	if (ttl) list.push([ttl[0] === '@' ? 'EXPIREAT' : 'EXPIRE', key, ttl]);
	return [...list, ...kept];
}
