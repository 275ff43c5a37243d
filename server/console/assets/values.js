// Values of strings, lists, sets, hashes and streams, each read in pages by its own cursor.

import { $, button, fill, h, throttle } from './dom.js';
import { CommandError, ok, pairs, pipeline, run } from './api.js';
import { Bin, count, duration, hexdump, moment, multiline, show, size } from './text.js';

const page = 100, pageBytes = 1000000, chunk = 16384;

// pageOf returns how many elements a page has: fewer where they are large.
export const pageOf = (facts) => Math.max(5, Math.min(page, Math.floor(pageBytes / Math.max(1, (facts.memory || 0) / Math.max(1, facts.length)))));

// cell shows a byte string in a table, and opens it as a whole.
export function cell(v) {
	const long = size(v) > 200;
	return [h('span', {}, show(v, 200)), ' ', long && button('all', () => whole(v), { class: 'link small', 'aria-label': 'Show the whole value' })];
}

export function whole(v) {
	const dialog = $('#dialog'), max = 200000;
	let shown = multiline(v, max);
	if (!(v instanceof Bin) && /^\s*[[{]/.test(v) && v.length < max) {
		try {
			shown = JSON.stringify(JSON.parse(v), null, 2);
		} catch { /* what is no JSON is shown as it is */ }
	}
	dialog.classList.remove('dangerous');
	fill(dialog, h('h2', { id: 'dialog-title' }, count(size(v)) + ' bytes'), h('pre', { class: 'text', tabindex: 0 }, shown), h('div', { class: 'actions' }, button('Close', () => dialog.close())));
	dialog.onclose = null;
	dialog.showModal();
}

export const tools = (...list) => h('td', { class: 'tools' }, list.map(([label, f, name]) => button(label, f, { class: 'small', 'aria-label': name })));

export function table(head, rows, caption) {
	return h('table', {}, h('caption', { class: 'visually-hidden' }, caption), h('thead', {}, h('tr', {}, head.map((t) => h('th', { scope: 'col', class: /^(#|Rank|Score|Expires)$/.test(t) ? 'n' : null }, t || h('span', { class: 'visually-hidden' }, 'Actions'))))), h('tbody', {}, rows));
}

export const failed = (box) => (e) => fill(box, h('p', { class: 'error', role: 'alert' }, e.message));

export function string(box, ctx) {
	let offset = 0, mode = '';
	const out = h('pre', { class: 'text', tabindex: 0 }), where = h('span', { class: 'muted' });
	const draw = throttle(async () => {
		const part = await run('GETRANGE', ctx.key, offset, offset + chunk - 1).catch(failed(box));
		if (part === undefined || part === box) return;
		const all = ctx.facts().length;
		if (!mode) modes.value = mode = /^\s*[[{]/.test(show(part, 100)) && all <= chunk ? 'json' : 'text';
		let text = mode === 'hex' ? hexdump(part, chunk) : multiline(part, chunk);
		if (mode === 'json') {
			try {
				text = JSON.stringify(JSON.parse(part), null, 2);
			} catch {
				text = 'This is no JSON, or longer than a page.';
			}
		}
		out.textContent = text;
		where.textContent = all > chunk ? `bytes ${count(offset)} to ${count(Math.min(all, offset + chunk))} of ${count(all)}` : '';
		more.hidden = all <= chunk;
	}, 100);
	const move = (to) => {
		offset = Math.max(0, Math.min(to, Math.floor(Math.max(0, ctx.facts().length - 1) / chunk) * chunk));
		draw();
	};
	const more = h('span', {}, button('‹ Previous', () => move(offset - chunk)), ' ', button('Next ›', () => move(offset + chunk)));
	const modes = h('select', { 'aria-label': 'Form', onchange: (e) => { mode = e.target.value; draw(); } }, ['text', 'json', 'hex'].map((m) => h('option', {}, m)));
	fill(box, h('div', { class: 'pager' }, modes, more, where, h('span', { class: 'grow' }), button('Edit …', async () => {
		if (ctx.facts().length > 100000) return (where.textContent = 'Longer than 100,000 bytes: use SETRANGE in the prompt.');
		const v = await run('GET', ctx.key).catch(() => null);
		if (v instanceof Bin) return (where.textContent = 'These bytes are no text: use SETRANGE in the prompt.');
		ctx.edit({ title: 'Edit the value', fields: [{ name: 'value', label: 'Value', type: 'area', value: v ?? '' }], build: ({ value }) => ['SET', ctx.key, value, 'KEEPTTL'] });
	})), out);
	ctx.onChange(draw);
	draw();
}

// cursorPages shows what a SCAN command of one key returns: pages forward, and back to the first.
function cursorPages(box, ctx, { command, extra = [], fields, head, row, add }) {
	let cursor = '0', next = '0', match = '', busy = false;
	const body = h('div', { class: 'scroll-x' }), where = h('span', { class: 'muted' });
	const draw = throttle(async () => {
		busy = true;
		try {
			let got = [], c = cursor, turns = 0;
			const wanted = pageOf(ctx.facts());
			do {
				const reply = await run(command, ctx.key, c, ...(match ? ['MATCH', match] : []), 'COUNT', wanted, ...extra);
				c = reply[0];
				got = got.concat(fields ? pairs(reply[1]) : reply[1].map((m) => [m]));
			} while (c !== '0' && got.length < (match ? 20 : 1) && ++turns < 50);
			next = c;
			fill(body, got.length ? table(head, await row(got), 'Content of the key') : h('div', { class: 'empty' }, match ? 'Nothing matches so far.' : 'Nothing here.'));
			where.textContent = next === '0' ? (cursor === '0' ? '' : 'last page') : 'there is more';
			forward.disabled = next === '0';
			first.disabled = cursor === '0';
		} catch (e) {
			failed(body)(e);
		}
		busy = false;
	}, 150);
	const forward = button('Next ›', () => {
		cursor = next;
		if (!busy) draw();
	});
	const first = button('« First', () => {
		cursor = '0';
		draw();
	});
	const search = h('input', { type: 'search', placeholder: 'Find: part or pattern', 'aria-label': 'Find', onchange: (e) => {
		const p = e.target.value;
		match = p === '' || /[*?[]/.test(p) ? p : `*${p}*`;
		cursor = '0';
		draw();
	} });
	fill(box, h('div', { class: 'pager' }, search, first, forward, where, h('span', { class: 'grow' }), button('Add …', add)), body);
	ctx.onChange(draw);
	draw();
}

export function hash(box, ctx) {
	const set = (field, value) => ctx.edit({ title: field === undefined ? 'Add a field' : 'Change a field', fields: [...(field === undefined ? [{ name: 'field', label: 'Field' }] : []), { name: 'value', label: 'Value', type: 'area', value: value instanceof Bin ? '' : value }],
		build: (v) => ['HSET', ctx.key, field ?? v.field, v.value] });
	cursorPages(box, ctx, {
		command: 'HSCAN', fields: true, head: ['Field', 'Value', 'Expires', ''], add: () => set(),
		row: async (list) => {
			const left = ok((await pipeline([['HPTTL', ctx.key, 'FIELDS', list.length, ...list.map(([f]) => f)]]))[0], []);
			return list.map(([f, v], i) => h('tr', {}, h('td', { class: 'mono' }, cell(f)), h('td', { class: 'value' }, cell(v)), h('td', { class: 'n' }, left?.[i] >= 0 ? duration(left[i]) : ''),
				tools(['Edit', () => set(f, v)], ['TTL', () => ctx.edit({ title: 'Time to live of the field', fields: [{ name: 's', label: 'Seconds, a time such as @now+1h, or nothing for no expiry' }], build: ({ s }) => (s === '' ? ['HPERSIST', ctx.key, 'FIELDS', 1, f] : s[0] === '@' ? ['HEXPIREAT', ctx.key, s, 'FIELDS', 1, f] : ['HEXPIRE', ctx.key, s, 'FIELDS', 1, f]) })],
					['Delete', () => ctx.edit({ title: 'Delete the field?', danger: true, verb: 'Delete', build: () => ['HDEL', ctx.key, f] })])));
		},
	});
}

export function set(box, ctx) {
	cursorPages(box, ctx, {
		command: 'SSCAN', head: ['Member', ''], add: () => ctx.edit({ title: 'Add a member', fields: [{ name: 'm', label: 'Member' }], build: ({ m }) => ['SADD', ctx.key, m] }),
		row: async (list) => list.map(([m]) => h('tr', {}, h('td', { class: 'value' }, cell(m)), tools(['Remove', () => ctx.edit({ title: 'Remove the member?', danger: true, verb: 'Remove', build: () => ['SREM', ctx.key, m] })]))),
	});
}

export function list(box, ctx) {
	let from = 0;
	const body = h('div', { class: 'scroll-x' }), where = h('span', { class: 'muted' });
	const draw = throttle(async () => {
		try {
			const n = pageOf(ctx.facts());
			const [all, part] = await pipeline([['LLEN', ctx.key], ['LRANGE', ctx.key, from, from + n - 1]]);
			if (part instanceof CommandError) throw part;
			where.textContent = `${count(from)} to ${count(from + part.length - 1)} of ${count(all)}`;
			fill(body, table(['#', 'Element', ''], part.map((v, i) => h('tr', {}, h('td', { class: 'n muted' }, count(from + i)), h('td', { class: 'value' }, cell(v)),
				tools(['Edit', () => ctx.edit({ title: 'Change element ' + (from + i), fields: [{ name: 'v', label: 'Element', type: 'area', value: v instanceof Bin ? '' : v }], build: ({ v: value }) => ['LSET', ctx.key, from + i, value] })],
					['Remove', () => ctx.edit({ title: 'Remove one such element?', danger: true, verb: 'Remove', build: () => ['LREM', ctx.key, 1, v] })]))), 'Elements of the list'));
		} catch (e) {
			failed(body)(e);
		}
	}, 150);
	const move = (to) => {
		from = Math.max(0, Math.min(to, ctx.facts().length - 1));
		draw();
	};
	fill(box, h('div', { class: 'pager' }, button('« First', () => move(0)), button('‹', () => move(from - pageOf(ctx.facts())), { 'aria-label': 'Previous page' }), button('›', () => move(from + pageOf(ctx.facts())), { 'aria-label': 'Next page' }),
		button('Last »', () => move(ctx.facts().length - pageOf(ctx.facts()))), h('input', { type: 'number', min: 0, placeholder: 'Go to index', 'aria-label': 'Go to index', onchange: (e) => move(Number(e.target.value)) }), where, h('span', { class: 'grow' }),
		button('Push …', () => ctx.edit({ title: 'Push an element', fields: [{ name: 'end', label: 'Where', type: 'select', options: [['RPUSH', 'at the end'], ['LPUSH', 'at the beginning']] }, { name: 'v', label: 'Element', type: 'area' }], build: ({ end, v }) => [end, ctx.key, v] }))), body);
	ctx.onChange(draw);
	draw();
}

export function stream(box, ctx) {
	const newest = '+';
	let from = newest, last = null;
	const body = h('div', { class: 'scroll-x' }), groups = h('div');
	const draw = throttle(async () => {
		try {
			const n = pageOf(ctx.facts());
			const [entries, info] = await pipeline([['XREVRANGE', ctx.key, from, '-', 'COUNT', n], ['XINFO', 'GROUPS', ctx.key]]);
			if (entries instanceof CommandError) throw entries;
			last = entries.length === n ? entries[n - 1][0] : null;
			older.disabled = !last;
			fill(body, table(['ID', 'Time', 'Fields', ''], entries.map(([entry, fields]) => h('tr', {}, h('td', { class: 'n mono' }, entry), h('td', { class: 'n muted' }, moment(Number(String(entry).split('-')[0]))),
				h('td', { class: 'value' }, pairs(fields).map(([f, v]) => h('div', {}, h('span', { class: 'muted' }, show(f, 80) + ' '), cell(v)))),
				tools(['Delete', () => ctx.edit({ title: 'Delete the entry?', danger: true, verb: 'Delete', build: () => ['XDEL', ctx.key, entry] })]))), 'Entries, the newest first'));
			const list = ok(info, []).map((g) => Object.fromEntries(pairs(g)));
			fill(groups, list.length ? [h('h3', {}, 'Consumer groups'), table(['Group', 'Consumers', 'Pending', 'Lag', 'Last ID'], list.map((g) => h('tr', {}, [show(g.name), g.consumers, g.pending, g.lag ?? '–', g['last-delivered-id']].map((v) => h('td', {}, String(v))))), 'Consumer groups')] : null);
		} catch (e) {
			failed(body)(e);
		}
	}, 150);
	const older = button('Older ›', () => {
		from = '(' + last;
		draw();
	});
	fill(box, h('div', { class: 'pager' }, button('« Newest', () => { from = newest; draw(); }), older, h('input', { placeholder: 'From ID', 'aria-label': 'From ID', onchange: (e) => { from = e.target.value || newest; draw(); } }), h('span', { class: 'grow' }),
		button('Add …', () => ctx.edit({ title: 'Add an entry', fields: [{ name: 'f', label: 'Field', value: 'field' }, { name: 'v', label: 'Value' }], build: ({ f, v }) => ['XADD', ctx.key, '*', f, v] }))), body, groups);
	ctx.onChange(draw);
	draw();
}

export function other(box) {
	fill(box, h('p', { class: 'muted' }, 'The prompt shows values of this type.'));
}
