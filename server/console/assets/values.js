// Values of strings, lists, sets, hashes and streams, each read in pages by its own cursor.

import { $, button, fill, h, scrolls } from './dom.js';
import { CommandError, now, ok, pairs, run } from './api.js';
import { count, duration, id, moment, same, show, size } from './text.js';
import { maxBytes, reader, whole } from './formats.js';
import { copy } from './transfer.js';
import { tell } from './dialog.js';

const page = 100, pageBytes = 1000000, chunk = 16384;

// pageOf returns how many elements a page has: fewer where they are large.
export const pageOf = (facts) => Math.max(5, Math.min(page, Math.floor(pageBytes / Math.max(1, (facts.memory || 0) / Math.max(1, facts.length)))));

// raw shows a byte string in a table, and keeps it as it is for the export of the table.
export function raw(v, max) {
	const e = h('span', { class: 'bytes' }, show(v, max));
	e.bytes = v;
	return e;
}

// cell shows a byte string in a table, and opens it as a whole.
export function cell(v) {
	const long = size(v) > 200;
	return [raw(v, 200), ' ', long && button('all', () => showAll(v), { class: 'link small', 'aria-label': 'Show the whole value' })];
}

function showAll(v) {
	const dialog = $('#dialog'), read = reader();
	dialog.classList.remove('dangerous');
	fill(dialog, h('h2', { id: 'dialog-title' }, count(size(v)) + ' bytes'), h('div', { class: 'pager' }, read.choice), read.text, h('div', { class: 'actions' }, button('Copy', () => copy(v)), button('Close', () => dialog.close())));
	dialog.onclose = null;
	read.show(v);
	dialog.showModal();
}

export const tools = (...list) => h('td', { class: 'tools' }, list.map(([label, f, name]) => button(label, f, { class: 'small', 'aria-label': name })));

export function table(head, rows, caption) {
	return h('table', {}, h('caption', { class: 'visually-hidden' }, caption), h('thead', {}, h('tr', {}, head.map((t) => h('th', { scope: 'col', class: /^(#|Rank|Score|Expires|Consumers|Pending|Lag|Last ID|Idle|Inactive|Deliveries|Time|Took|Subscribers|Processor time|Bytes|Share)$/.test(t) ? 'n' : null }, t || h('span', { class: 'visually-hidden' }, 'Actions'))))), h('tbody', {}, rows));
}

// laneRow is a row of a lane, whose columns are those of the other rows: a number, a name, a text, a bar, a note.
export const laneRow = (name, note, { no, text, bar } = {}) => h('li', {}, no !== undefined && h('span', { class: 'no' }, no), h('span', { class: 'name', title: show(name, 300) }, show(name, 120)),
	text && h('small', { class: 'what' }, text), bar, h('small', { class: 'note' }, note));

// expiry edits the deadline of a key, a field or a member: the commands have a prefix, and words after the key or the time.
export async function expiry({ key, edit }, title, prefix, words) {
	const read = [prefix + 'PEXPIRETIME', key, ...words], was = await run(...read).catch((e) => e), end = [was].flat()[0];
	if (was instanceof Error || end === null || end === -2) return tell(title, was instanceof Error ? was.message : 'It is no longer there.');
	const shown = end < 0 ? '' : String(Math.max(1, Math.round((end - now()) / 1000)));
	edit({
		title, note: end < 0 ? 'It does not expire.' : 'It expires at ' + moment(Number(end)) + '.', conditions: [[read, was]],
		fields: [{ name: 't', label: 'Seconds, a time such as @now+1h30m, or nothing for no expiry', value: shown }],
		build: ({ t }) => (t === shown ? [] : t === '' ? [prefix + 'PERSIST', key, ...words] : [prefix + (t[0] === '@' ? 'EXPIREAT' : 'EXPIRE'), key, t, ...words]),
	});
}

// latest returns the deadlines of members that the replies of commands have, in milliseconds since 1970; -1 for none.
export const latest = (members, ...replies) => members.map((_, i) => Math.max(...replies.map((r) => ok(r, [])?.[i] ?? -1), -1));

// byMember returns a function of names and of the replies with their deadlines, which returns that from a member, or a
// field, to its deadline. While a reply is missing, the deadlines are those before.
export function byMember() {
	let ends = new Map();
	return (members, replies) => {
		if (!replies.includes(undefined)) ends = new Map(latest(members, ...replies).map((end, i) => [id(members[i]), end]));
		return ([m]) => ends.get(id(m)) ?? -1;
	};
}

// names returns the members of a reply, sorted: one that moves changes no query that names it.
export const names = (reply) => (Array.isArray(reply) ? reply.map(([m]) => m).sort() : []);

export const failed = (box) => (e) => fill(box, h('p', { class: 'error', role: 'alert' }, e.message));

export function string(box, ctx) {
	let offset = 0, shown = [0, ''];
	const where = h('span', { class: 'muted' }), read = reader(() => {
		offset = 0;
		live.ask();
	});
	// A form that needs the whole value has it as its page.
	const step = () => (whole(read.form) ? maxBytes : chunk);
	const draw = ([all, part]) => {
		if (part instanceof CommandError) return failed(read.text)(part);
		shown = [all, part];
		const before = step();
		read.show(part);
		if (step() !== before && all > before) setTimeout(() => live.ask()); // the form that fits needs more
		const end = Math.min(all, offset + step());
		where.textContent = all > end - offset ? `bytes ${count(offset)} to ${count(end)} of ${count(all)}` : '';
		more.hidden = all <= step();
	};
	const move = (to) => {
		offset = Math.max(0, Math.min(to, Math.floor(Math.max(0, shown[0] - 1) / step()) * step()));
		live.ask();
	};
	const more = h('span', {}, button('‹ Previous', () => move(offset - step())), ' ', button('Next ›', () => move(offset + step())));
	fill(box, h('div', { class: 'pager' }, read.choice, more, where, h('span', { class: 'grow' }), button('Edit …', async () => {
		if (ctx.facts().length > 100000) return tell('Edit the value', 'Longer than 100,000 bytes: the prompt can change it, as with SETRANGE.');
		const v = await run('GET', ctx.key).catch((e) => e);
		if (v === null || v instanceof Error) return tell('Edit the value', v ? v.message : 'It is no longer there.');
		ctx.edit({ title: 'Edit the value', fields: [{ name: 'value', label: 'Value', type: 'area', value: v }], conditions: [[['GET', ctx.key], v]], build: ({ value }) => (same(value, v) ? [] : ['SET', ctx.key, value, 'KEEPTTL']) });
	})), read.text);
	const live = ctx.follow(() => [['STRLEN', ctx.key], ['GETRANGE', ctx.key, offset, offset + step() - 1]], draw);
}

// elements shows the elements of a key: all of a key that has no more than a page, which are the reply to one command,
// and otherwise what a SCAN command returns: pages forward, and back to the first.
function elements(box, ctx, { all, scan, fields, head, row, add }) {
	let cursor = '0', next = '0', match = '';
	const body = scrolls('Elements'), where = h('span', { class: 'muted' }), endOf = byMember();
	// Whatever replies are there, parse returns the commands that lead to a page, its elements, and the cursor after it.
	const parse = (r) => {
		const list = [], got = [], n = pageOf(ctx.facts()), whole = cursor === '0' && !match && ctx.facts().length <= n;
		let after = cursor;
		do {
			list.push(whole && after === '0' ? [all, ctx.key] : [scan, ctx.key, after, ...(match ? ['MATCH', match] : []), 'COUNT', n]);
			const reply = r[list.length - 1];
			if (!Array.isArray(reply)) return { list, error: reply };
			const scanned = Array.isArray(reply[1]) && !Array.isArray(reply[0]); // a cursor and elements
			got.push(...(fields ? pairs(scanned ? reply[1] : reply) : (scanned ? reply[1] : reply).map((m) => [m])));
			after = scanned ? reply[0] : '0';
		} while (after !== '0' && got.length < (match ? 20 : 1) && list.length < 50);
		return { list, got, after };
	};
	const draw = (r) => {
		const { list, got, after, error } = parse(r);
		if (error) return failed(body)(error);
		if (!got) return;
		next = after;
		const end = endOf(names(got), r.slice(list.length));
		fill(body, got.length ? table(head, got.map((one) => row(one, end(one))), 'Content of the key') : h('div', { class: 'empty' }, match ? 'Nothing matches so far.' : 'Nothing here.'));
		where.textContent = next === '0' ? (cursor === '0' ? '' : 'last page') : 'there is more';
		forward.disabled = next === '0';
		first.disabled = cursor === '0';
	};
	const move = (to) => {
		cursor = to;
		live.ask();
	};
	const forward = button('Next ›', () => move(next)), first = button('« First', () => move('0'));
	const search = h('input', { type: 'search', placeholder: 'Find: part or pattern', 'aria-label': 'Find', onchange: (e) => {
		const p = e.target.value;
		match = p === '' || /[*?[]/.test(p) ? p : `*${p}*`;
		move('0');
	} });
	fill(box, h('div', { class: 'pager' }, search, first, forward, where, h('span', { class: 'grow' }), button('Add …', add)), body);
	const live = ctx.follow((r) => {
		const { list, got } = parse(r);
		return fields && got?.length ? [...list, ['HPEXPIRETIME', ctx.key, 'FIELDS', got.length, ...names(got)]] : list;
	}, draw);
}

export function hash(box, ctx) {
	const add = () => ctx.edit({ title: 'Add a field', fields: [{ name: 'field', label: 'Field' }, { name: 'value', label: 'Value', type: 'area' }],
		conditions: ({ field }) => [[['HGET', ctx.key, field], null]], build: (v) => ['HSET', ctx.key, v.field, v.value] });
	const set = (field, was) => ctx.edit({ title: 'Change the field ' + show(field, 60), fields: [{ name: 'value', label: 'Value', type: 'area', value: was }],
		conditions: [[['HGET', ctx.key, field], was]], build: ({ value }) => (same(value, was) ? [] : ['HSETEX', ctx.key, 'KEEPTTL', 'FIELDS', 1, field, value]) });
	elements(box, ctx, {
		all: 'HGETALL', scan: 'HSCAN', fields: true, head: ['Field', 'Value', 'Expires', ''], add,
		row: ([f, v], end) => h('tr', {}, h('td', { class: 'mono' }, cell(f)), h('td', { class: 'value' }, cell(v)), h('td', { class: 'n' }, end > 0 ? duration(Math.max(0, end - now())) : ''),
			tools(['Edit', () => set(f, v)], ['TTL', () => expiry(ctx, 'Time to live of the field ' + show(f, 60), 'H', ['FIELDS', 1, f])],
				['Delete', () => ctx.edit({ title: 'Delete the field?', danger: true, verb: 'Delete', conditions: [[['HGET', ctx.key, f], v]], build: () => ['HDEL', ctx.key, f] })])),
	});
}

export function set(box, ctx) {
	elements(box, ctx, {
		all: 'SMEMBERS', scan: 'SSCAN', head: ['Member', ''], add: () => ctx.edit({ title: 'Add a member', fields: [{ name: 'm', label: 'Member' }], refused: (r) => r === 0 && 'It is a member already.', build: ({ m }) => ['SADD', ctx.key, m] }),
		row: ([m]) => h('tr', {}, h('td', { class: 'value' }, cell(m)), tools(['Remove', () => ctx.edit({ title: 'Remove the member?', danger: true, verb: 'Remove', conditions: [[['SISMEMBER', ctx.key, m], 1]], build: () => ['SREM', ctx.key, m] })])),
	});
}

export function list(box, ctx) {
	let from = 0;
	const body = scrolls('Elements'), where = h('span', { class: 'muted' });
	const draw = ([all, part]) => {
		if (part instanceof CommandError) return failed(body)(part);
		where.textContent = `${count(from)} to ${count(from + part.length - 1)} of ${count(all)}`;
		const first = from, shown = [[['LRANGE', ctx.key, first, first + part.length - 1], part]]; // an element has no other name than its place
		fill(body, table(['#', 'Element', ''], part.map((v, i) => h('tr', {}, h('td', { class: 'n muted' }, count(first + i)), h('td', { class: 'value' }, cell(v)),
			tools(['Edit', () => ctx.edit({ title: 'Change element ' + (first + i), fields: [{ name: 'v', label: 'Element', type: 'area', value: v }], conditions: shown, build: ({ v: value }) => (same(value, v) ? [] : ['LSET', ctx.key, first + i, value]) })],
				['Remove', () => {
					const mark = 'removed:' + Array.from(crypto.getRandomValues(new Uint32Array(4))).join('-'); // which LREM finds, and not an equal element
					ctx.edit({ title: 'Remove element ' + (first + i) + '?', danger: true, verb: 'Remove', conditions: shown, build: () => [['LSET', ctx.key, first + i, mark], ['LREM', ctx.key, 1, mark]] });
				}]))), 'Elements of the list'));
	};
	const move = (to) => {
		from = Math.max(0, Math.min(to, ctx.facts().length - 1));
		live.ask();
	};
	fill(box, h('div', { class: 'pager' }, button('« First', () => move(0)), button('‹', () => move(from - pageOf(ctx.facts())), { 'aria-label': 'Previous page' }), button('›', () => move(from + pageOf(ctx.facts())), { 'aria-label': 'Next page' }),
		button('Last »', () => move(ctx.facts().length - pageOf(ctx.facts()))), h('input', { type: 'number', min: 0, placeholder: 'Go to index', 'aria-label': 'Go to index', onchange: (e) => move(Number(e.target.value)) }), where, h('span', { class: 'grow' }),
		button('Push …', () => ctx.edit({ title: 'Push an element', fields: [{ name: 'end', label: 'Where', type: 'select', options: [['RPUSH', 'at the end'], ['LPUSH', 'at the beginning']] }, { name: 'v', label: 'Element', type: 'area' }], build: ({ end, v }) => [end, ctx.key, v] }))), body);
	const live = ctx.follow(() => [['LLEN', ctx.key], ['LRANGE', ctx.key, from, from + pageOf(ctx.facts()) - 1]], draw);
}

export function other(box, ctx) {
	ctx.follow(() => [], () => {});
	fill(box, h('p', { class: 'muted' }, 'The prompt shows values of this type.'));
}
