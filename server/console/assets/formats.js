// The forms in which a byte string is read: text, JSON, hexadecimal, base64, gzip, MessagePack, a time.

import { now } from './api.js';
import { Bin, bytesOf, count, duration, fromBytes, hexdump, multiline, pretty, size } from './text.js';
import { h } from './dom.js';

// maxBytes bounds what is decoded, and what gzip may become.
export const maxBytes = 700000;

const shownBytes = 200000;

const forms = [['text', 'text'], ['json', 'JSON'], ['hex', 'hex'], ['msgpack', 'MessagePack'], ['gzip', 'gzip or zlib'], ['frombase64', 'from base64'], ['base64', 'as base64'], ['date', 'date']];

// whole reports whether a form needs all of the value.
export const whole = (form) => !['', 'text', 'hex'].includes(form);

// guess returns the form that fits a byte string.
export function guess(v) {
	if (!(v instanceof Bin)) return /^\s*[[{]/.test(v) && pretty(v) !== null ? 'json' : 'text';
	const b = v.bytes;
	if (b[0] === 0x1f && b[1] === 0x8b) return 'gzip';
	if ((b[0] >= 0x80 && b[0] <= 0x9f) || (b[0] >= 0xdc && b[0] <= 0xdf)) {
		try {
			unpack(b);
			return 'msgpack';
		} catch { /* other bytes */ }
	}
	return 'text';
}

// format returns a byte string in a form. It throws an Error if the byte string does not have it.
export async function format(form, v) {
	switch (form) {
		case 'json': {
			const text = v instanceof Bin ? null : pretty(v);
			if (text === null) throw new Error('This is no JSON.');
			return multiline(text, Infinity);
		}
		case 'hex':
			return hexdump(v, shownBytes);
		case 'msgpack':
			return multiline(unpack(bytesOf(v)), Infinity);
		case 'gzip':
			return readable(await inflate(bytesOf(v)));
		case 'base64':
			return v instanceof Bin ? v.base64 : encode64(bytesOf(v));
		case 'frombase64':
			return readable(decode64(v));
		case 'date':
			return date(v);
	}
	return multiline(v, shownBytes);
}

// readable returns bytes in the form that fits them.
function readable(bytes) {
	const v = fromBytes(bytes), form = guess(v);
	if (form === 'json') return multiline(pretty(v), Infinity);
	if (form === 'msgpack') return multiline(unpack(bytes), Infinity);
	return v instanceof Bin ? hexdump(v, shownBytes) : multiline(v, shownBytes);
}

function encode64(bytes) {
	let s = '';
	for (const b of bytes) s += String.fromCharCode(b);
	return btoa(s);
}

function decode64(v) {
	const text = v instanceof Bin ? '' : v.replace(/\s/g, '').replace(/-/g, '+').replace(/_/g, '/');
	try {
		if (text) return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
	} catch { /* said below */ }
	throw new Error('This is no base64.');
}

// inflate returns what gzip (RFC 1952) or zlib (RFC 1950) has made smaller, of at most maxBytes.
async function inflate(bytes) {
	const kind = bytes[0] === 0x1f && bytes[1] === 0x8b ? 'gzip' : (bytes[0] & 15) === 8 && (bytes[0] * 256 + bytes[1]) % 31 === 0 ? 'deflate' : '';
	if (!kind) throw new Error('This is neither gzip nor zlib.');
	const reader = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(kind)).getReader();
	const parts = [];
	let n = 0;
	try {
		for (;;) {
			const { done, value } = await reader.read();
			if (done) break;
			parts.push(value);
			if ((n += value.length) > maxBytes) {
				reader.cancel().catch(() => {});
				throw new Error(`It becomes more than ${count(maxBytes)} bytes.`);
			}
		}
	} catch (e) {
		throw new Error(e.message.startsWith('It becomes') ? e.message : 'The compressed data are damaged, or not all here.');
	}
	const out = new Uint8Array(n);
	let at = 0;
	for (const part of parts) {
		out.set(part, at);
		at += part.length;
	}
	return out;
}

// unpack returns a value of MessagePack (github.com/msgpack/msgpack, spec.md) as indented text, in the manner of JSON:
// names need not be strings, and integers, bytes and extensions are as they are.
function unpack(bytes) {
	const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), out = [];
	let at = 0, values = 0;
	const need = (n) => {
		if (at + n > bytes.length) throw new Error('This is no MessagePack, or not all of it.');
		at += n;
		return at - n;
	};
	const number = (n, name) => out.push(String(view[name](need(n))));
	const length = (n) => ({ 1: () => view.getUint8(need(1)), 2: () => view.getUint16(need(2)), 4: () => view.getUint32(need(4)) })[n]();
	const hex = (n) => {
		const from = need(n), part = bytes.subarray(from, Math.min(from + n, from + 1000));
		return Array.from(part, (b) => b.toString(16).padStart(2, '0')).join('') + (n > 1000 ? `… (${count(n)} bytes)` : '');
	};
	const string = (n) => {
		const from = need(n), v = fromBytes(bytes.slice(from, from + n));
		out.push(v instanceof Bin ? `bytes ${hexOf(v)}` : JSON.stringify(v));
	};
	const hexOf = (v) => Array.from(v.bytes, (b) => b.toString(16).padStart(2, '0')).join('');
	const extension = (n) => {
		const type = view.getInt8(need(1)), from = at;
		if (type !== -1 || ![4, 8, 12].includes(n)) return out.push(`extension ${type}: ${hex(n)}`);
		need(n); // a timestamp
		const s = n === 4 ? view.getUint32(from) : n === 8 ? Number(view.getBigUint64(from) & 0x3ffffffffn) : Number(view.getBigInt64(from + 4));
		const ns = n === 4 ? 0 : n === 8 ? Number(view.getBigUint64(from) >> 34n) : view.getUint32(from);
		const d = new Date(s * 1000 + ns / 1e6);
		out.push(isFinite(d) ? d.toISOString() : `timestamp ${s} s ${ns} ns`);
	};
	const many = (n, open, close, depth, names) => {
		if (depth > 100) throw new Error('This MessagePack is nested too deeply.');
		out.push(open);
		for (let i = 0; i < n; i++) {
			out.push(i ? ',\n' : '\n', '  '.repeat(Math.min(depth + 1, 40)));
			if (names) {
				value(depth + 1);
				out.push(': ');
			}
			value(depth + 1);
		}
		out.push(n ? '\n' + '  '.repeat(Math.min(depth, 40)) : '', close);
	};
	const value = (depth) => {
		if (++values > 100000) throw new Error('This MessagePack has more than 100,000 values.');
		const b = view.getUint8(need(1));
		if (b < 0x80) out.push(String(b));
		else if (b < 0x90) many(b & 15, '{', '}', depth, true);
		else if (b < 0xa0) many(b & 15, '[', ']', depth);
		else if (b < 0xc0) string(b & 31);
		else if (b >= 0xe0) out.push(String(b - 256));
		else if (b === 0xc1) throw new Error('This is no MessagePack.');
		else if (b === 0xc0 || b === 0xc2 || b === 0xc3) out.push(['null', '', 'false', 'true'][b - 0xc0]);
		else if (b <= 0xc6) out.push('bytes ' + hex(length(1 << (b - 0xc4))));
		else if (b <= 0xc9) extension(length(1 << (b - 0xc7)));
		else if (b <= 0xd3) number(...[[4, 'getFloat32'], [8, 'getFloat64'], [1, 'getUint8'], [2, 'getUint16'], [4, 'getUint32'], [8, 'getBigUint64'], [1, 'getInt8'], [2, 'getInt16'], [4, 'getInt32'], [8, 'getBigInt64']][b - 0xca]);
		else if (b <= 0xd8) extension(1 << (b - 0xd4));
		else if (b <= 0xdb) string(length(1 << (b - 0xd9)));
		else if (b <= 0xdd) many(length(b === 0xdc ? 2 : 4), '[', ']', depth);
		else many(length(b === 0xde ? 2 : 4), '{', '}', depth, true);
	};
	value(0);
	if (at < bytes.length) throw new Error(`This is no MessagePack: ${count(bytes.length - at)} bytes follow the first value.`);
	return out.join('');
}

// date returns a number as a time since 1970, in the unit that its size suggests.
function date(v) {
	const n = v instanceof Bin || !/^\s*-?\d+(\.\d*)?\s*$/.test(v) ? NaN : Number(v), most = Math.abs(n);
	const [unit, name] = most < 1e11 ? [1000, 'seconds'] : most < 1e14 ? [1, 'milliseconds'] : most < 1e17 ? [1e-3, 'microseconds'] : [1e-6, 'nanoseconds'];
	const d = new Date(n * unit);
	if (!isFinite(d)) throw new Error('This is no number of a time.');
	const past = now() - d;
	return `${d.toISOString()}\n${d.toLocaleString('en-GB', { dateStyle: 'full', timeStyle: 'long' })}\n${past < 0 ? 'in ' + duration(-past) : duration(past) + ' ago'}, read as ${name} since 1970`;
}

// reader returns a choice of the form and the text of a value. show(v) sets the value; taken is called when the user
// takes another form, which is the property form.
export function reader(taken) {
	const text = h('pre', { class: 'text', tabindex: 0 });
	const choice = h('select', { 'aria-label': 'Form', onchange: () => {
		self.form = choice.value;
		taken?.();
		self.show(self.v);
	} }, forms.map(([form, label]) => h('option', { value: form }, label)));
	const self = { choice, text, form: '', v: '', show: async (v) => {
		self.v = v;
		const form = (choice.value = self.form ||= guess(v));
		const shown = await format(form, v).catch((e) => (size(v) >= maxBytes ? `${e.message} A value of more than ${count(maxBytes)} bytes is shown in parts.` : e.message));
		if (v === self.v && form === self.form) text.textContent = shown;
	} };
	return self;
}
