// Byte strings and numbers as text. A byte string is a JavaScript string where it is UTF-8, else a Bin.

export class Bin {
	constructor(base64) {
		this.base64 = base64;
	}
	get bytes() {
		return Uint8Array.from(atob(this.base64), (c) => c.charCodeAt(0));
	}
}

export const same = (a, b) => id(a) === id(b);

// id returns a string that is equal for equal byte strings only.
export const id = (v) => (v instanceof Bin ? 'b' + v.base64 : 's' + v);

export const bytesOf = (v) => (v instanceof Bin ? v.bytes : new TextEncoder().encode(v));
export const size = (v) => (v instanceof Bin ? Math.floor((v.base64.length * 3) / 4) - (v.base64.match(/=*$/)[0].length) : v.length < 64 ? bytesOf(v).length : v.length);

export function fromBytes(bytes) {
	try {
		return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
	} catch {
		let s = '';
		for (const b of bytes) s += String.fromCharCode(b);
		return new Bin(btoa(s));
	}
}

// Control characters, and those that change the direction of a line or have no width, are shown as escapes:
// two different names never look the same.
const hidden = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\\]/g;
const short = { '\n': '\\n', '\t': '\\t', '\r': '\\r', '\\': '\\\\' };
const hex = (n, width) => n.toString(16).padStart(width, '0');
const escape = (c) => short[c] || (c < '\x80' ? '\\x' + hex(c.charCodeAt(0), 2) : '\\u' + hex(c.charCodeAt(0), 4));

// show returns a byte string in one line of at most about max characters.
export function show(v, max = 300) {
	if (v === null || v === undefined) return '(nil)';
	if (v instanceof Bin) {
		const part = max === Infinity ? v.bytes : new Bin(v.base64.slice(0, Math.ceil(max / 3) * 4)).bytes.slice(0, max);
		let s = '';
		for (const b of part) s += b >= 32 && b < 127 && b !== 92 ? String.fromCharCode(b) : '\\x' + hex(b, 2);
		return s + (size(v) > part.length ? `… (${count(size(v))} bytes)` : '');
	}
	v = String(v);
	if (v === '') return '""';
	const cut = v.length > max;
	return (cut ? v.slice(0, max) : v).replace(hidden, escape) + (cut ? `… (${count(v.length)} characters)` : '');
}

// multiline is show that keeps line ends and tabs.
export const multiline = (v, max) => (v instanceof Bin ? show(v, max) : v.slice(0, max).replace(hidden, (c) => (c === '\n' || c === '\t' || c === '\\' ? c : escape(c))));

// plainText reports whether a text field shows each character of a value, and changes none.
export const plainText = (v) => !(v instanceof Bin) && !/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(v);

// escapes returns a byte string as a text of several lines that unescape reads back. A text field holds it.
export const escapes = (v) => (v instanceof Bin ? show(v, Infinity) : v.replace(hidden, (c) => (c === '\n' || c === '\t' ? c : escape(c))));

// unescape returns the byte string of a text with escapes. It throws an Error for one that is not known.
export function unescape(text) {
	const bytes = [], put = (s) => {
		for (const b of new TextEncoder().encode(s)) bytes.push(b);
	};
	for (const [part, x, u, c] of text.matchAll(/\\x([0-9a-fA-F]{2})|\\u([0-9a-fA-F]{4})|\\([^]?)|[^\\]+/g)) {
		if (x) bytes.push(parseInt(x, 16));
		else if (u && !/^d[89a-f]/i.test(u)) put(String.fromCharCode(parseInt(u, 16)));
		else if (part[0] !== '\\') put(part);
		else {
			const known = { n: '\n', t: '\t', r: '\r', '\\': '\\' }[c];
			if (!known) throw new Error(`The escape ${part} is not known: write \\\\ for a backslash.`);
			put(known);
		}
	}
	return fromBytes(new Uint8Array(bytes));
}

// pretty returns a JSON text with line ends and indentation between its tokens, which stay as they are, or null if it is
// no JSON: numbers and names that a number or an object of JavaScript cannot have are shown as well.
export function pretty(text) {
	try {
		JSON.parse(text);
	} catch {
		return null;
	}
	const tokens = text.match(/"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{},:]|[^\s"[\]{},:]+/g), out = [];
	let depth = 0;
	const line = () => out.push('\n', '  '.repeat(Math.min(depth, 40)));
	tokens.forEach((t, i) => {
		const opens = t === '[' || t === '{', closes = t === ']' || t === '}', before = tokens[i - 1];
		if (closes) depth--;
		if (i && (closes ? before !== '[' && before !== '{' : before === ',' || before === '[' || before === '{')) line();
		out.push(t, t === ':' ? ' ' : '');
		if (opens) depth++;
	});
	return out.join('');
}

export function hexdump(v, max) {
	const bytes = bytesOf(v).slice(0, max), lines = [];
	for (let i = 0; i < bytes.length; i += 16) {
		const part = [...bytes.slice(i, i + 16)];
		lines.push(hex(i, 8) + '  ' + part.map((b) => hex(b, 2)).join(' ').padEnd(48) + ' ' + part.map((b) => (b >= 32 && b < 127 ? String.fromCharCode(b) : '.')).join(''));
	}
	return lines.join('\n');
}

// quote returns an argument as redis-cli takes it.
export function quote(v, max = 200) {
	if (!(v instanceof Bin) && /^[^\s"'\\\u0000-\u001f\u007f-\u009f\u200b-\u206f]+$/.test(v) && v.length <= max) return v;
	if (v instanceof Bin) return '"' + show(v, max).replace(/"/g, '\\"') + '"';
	return '"' + (v === '' ? '' : show(v, max).replace(/"/g, '\\"')) + '"';
}
export const commandLine = (args, max) => args.map((a) => quote(typeof a === 'number' ? String(a) : a, max)).join(' ');

// split reads a line as redis-cli does: words, "…" with escapes, '…'. It throws an Error.
export function split(line) {
	const args = [];
	let i = 0;
	while (i < line.length) {
		if (/\s/.test(line[i])) {
			i++;
			continue;
		}
		const bytes = [];
		const put = (s) => bytes.push(...new TextEncoder().encode(s));
		const plain = (end) => {
			const from = i;
			while (i < line.length && !end.test(line[i])) i++;
			put(line.slice(from, i));
		};
		while (i < line.length && !/\s/.test(line[i])) {
			if (line[i] !== '"' && line[i] !== "'") {
				plain(/[\s"']/);
				continue;
			}
			const q = line[i++];
			for (;;) {
				if (i >= line.length) throw new Error(`A ${q} is missing at the end.`);
				if (line[i] === q) {
					i++;
					break;
				}
				if (line[i] !== '\\') {
					plain(q === '"' ? /["\\]/ : /['\\]/);
					continue;
				}
				const c = line[i + 1];
				const x = q === '"' && c === 'x' && /^[0-9a-fA-F]{2}$/.test(line.slice(i + 2, i + 4));
				if (x) {
					bytes.push(parseInt(line.slice(i + 2, i + 4), 16));
					i += 4;
				} else if (q === '"' && c !== undefined) {
					const u = c === 'u' && /^[0-9a-fA-F]{4}$/.test(line.slice(i + 2, i + 6));
					put(u ? String.fromCharCode(parseInt(line.slice(i + 2, i + 6), 16)) : ({ n: '\n', r: '\r', t: '\t', b: '\b', a: '\x07' }[c] || c));
					i += u ? 6 : 2;
				} else if (c === "'") {
					put(c);
					i += 2;
				} else {
					put('\\');
					i++;
				}
			}
		}
		args.push(fromBytes(new Uint8Array(bytes)));
	}
	return args;
}

const grouped = new Intl.NumberFormat('en');
export const count = (n) => (typeof n === 'number' ? grouped.format(n) : String(n));

// brief returns a number in four characters or so: 12.3k.
export function brief(n) {
	if (!isFinite(n)) return String(n);
	for (const [unit, suffix] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
		if (Math.abs(n) >= unit) return trim(n / unit) + suffix;
	}
	return Number.isInteger(n) ? String(n) : String(Number(n.toPrecision(3)));
}
const trim = (n) => (n >= 100 ? n.toFixed(0) : n.toFixed(1).replace(/\.0$/, ''));

export function bytes(n) {
	if (n === null || n === undefined) return '–';
	for (const [unit, suffix] of [[2 ** 30, 'GB'], [2 ** 20, 'MB'], [2 ** 10, 'KB']]) {
		if (n >= unit) return trim(n / unit) + ' ' + suffix;
	}
	return n + ' B';
}

// duration returns milliseconds as two units at most: 1h 20m.
export function duration(ms) {
	const sign = ms < 0 ? '-' : '';
	ms = Math.abs(ms);
	if (ms < 1000) return sign + (ms < 10 && ms % 1 ? ms.toFixed(1) : Math.round(ms)) + ' ms';
	if (ms < 10000) return sign + (ms / 1000).toFixed(1) + ' s';
	const s = Math.floor(ms / 1000);
	const units = [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]];
	const at = units.findIndex(([, n]) => s >= n);
	const [u, n] = units[at];
	if (at === 3) return sign + s + ' s';
	const [v, m] = units[at + 1];
	const rest = Math.floor((s % n) / m);
	return sign + Math.floor(s / n) + u + (rest ? ' ' + rest + v : '');
}

export const micros = (us) => (us === null || us === undefined ? '–' : us >= 1000 ? duration(us / 1000) : Math.round(us) + ' µs');

const two = (n) => String(n).padStart(2, '0');
export const clock = (ms, seconds = true) => {
	const d = new Date(ms);
	return two(d.getHours()) + ':' + two(d.getMinutes()) + (seconds ? ':' + two(d.getSeconds()) : '');
};
export const day = (ms) => {
	const d = new Date(ms);
	return d.getFullYear() + '-' + two(d.getMonth() + 1) + '-' + two(d.getDate());
};
export const moment = (ms) => (isFinite(new Date(ms).getTime()) ? day(ms) + ' ' + clock(ms) : String(ms));

// score returns a score as the server writes it.
export const score = (n) => (n === Infinity ? 'inf' : n === -Infinity ? '-inf' : Object.is(n, -0) ? '-0' : String(n));
