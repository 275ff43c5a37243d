// Streams: the entries in pages, and above them the consumer groups with their consumers and pending entries.

import { button, fill, h, scrolls } from './dom.js';
import { CommandError, ok, pairs, pipeline, run } from './api.js';
import { count, duration, id, moment, show } from './text.js';
import { cell, failed, pageOf, raw, table, tools } from './values.js';

const pendingPage = 50, readAgain = 5000;

export function stream(box, ctx) {
	const newest = '+';
	let from = newest, last = null;
	const body = scrolls('Entries'), shown = groups(ctx);
	const draw = ([entries, info]) => {
		if (entries instanceof CommandError) return failed(body)(entries);
		const n = pageOf(ctx.facts());
		last = entries.length === n ? entries[n - 1][0] : null;
		older.disabled = !last;
		fill(body, table(['ID', 'Time', 'Fields', ''], entries.map(([entry, fields]) => h('tr', {}, h('td', { class: 'n mono' }, entry), h('td', { class: 'n muted' }, moment(Number(String(entry).split('-')[0]))),
			h('td', { class: 'value' }, pairs(fields).map(([f, v]) => h('div', {}, h('span', { class: 'muted' }, raw(f, 80), ' '), cell(v)))),
			tools(['Delete', () => ctx.edit({ title: 'Delete the entry?', danger: true, verb: 'Delete', refused: (r) => r === 0 && 'It is no longer there.', build: () => ['XDEL', ctx.key, entry] })]))), 'Entries, the newest first'));
		shown.draw(ok(info, []).map((g) => Object.fromEntries(pairs(g))));
	};
	const older = button('Older ›', () => {
		from = '(' + last;
		live.ask();
	});
	fill(box, shown.element, h('div', { class: 'pager' }, h('h3', {}, 'Entries'), button('« Newest', () => { from = newest; live.ask(); }), older, h('input', { placeholder: 'From ID', 'aria-label': 'From ID', onchange: (e) => { from = e.target.value || newest; live.ask(); } }), h('span', { class: 'grow' }),
		button('Add …', () => ctx.edit({ title: 'Add an entry', fields: [{ name: 'f', label: 'Field', value: 'field' }, { name: 'v', label: 'Value' }], build: ({ f, v }) => ['XADD', ctx.key, '*', f, v] }))), body);
	const live = ctx.follow(() => [['XREVRANGE', ctx.key, from, '-', 'COUNT', pageOf(ctx.facts())], ['XINFO', 'GROUPS', ctx.key]], draw);
	return shown.close;
}

// groups returns the element of the groups of a stream. draw(list) shows them as XINFO GROUPS has them. The group that the
// user opens has its consumers and pending entries below: no live query may ask for these, because their idle times
// change by themselves, so they are read when the group changes and every five seconds.
function groups(ctx) {
	const list = h('div'), inside = h('div'), element = h('section', { class: 'groups', 'aria-label': 'Consumer groups' }, list, inside);
	let open = null, start = '-', seen = '', closed = false, all = [];
	const edit = async (options) => {
		await ctx.edit(options);
		read();
	};
	// What a group has pending is a condition of what would lose it.
	const destroy = async (g) => {
		const summary = await run('XPENDING', ctx.key, g.name).catch((e) => e);
		edit({ title: `Delete the group ${show(g.name, 60)}?`, note: `${count(g.consumers)} consumers and ${count(g.pending)} pending entries of the group are lost. The entries of the stream stay.`, danger: true, verb: 'Delete',
			conditions: [[['XPENDING', ctx.key, g.name], summary]], refused: (r) => r === 0 && 'There is no such group any more.', build: () => ['XGROUP', 'DESTROY', ctx.key, g.name] });
	};
	const create = () => edit({ title: 'New group', fields: [{ name: 'name', label: 'Name' }, { name: 'id', label: 'Last ID that it has read', value: '$', hint: '$: only entries to come. 0: all entries.' }],
		build: ({ name, id: last }) => ['XGROUP', 'CREATE', ctx.key, name, last] });
	const move = (g) => edit({ title: 'Where the group ' + show(g.name, 60) + ' reads on', note: 'Pending entries stay pending.', fields: [{ name: 'id', label: 'Last ID that it has read', value: g['last-delivered-id'], hint: '$: only entries to come. 0: all entries.' }],
		build: ({ id: last }) => (last === g['last-delivered-id'] ? [] : ['XGROUP', 'SETID', ctx.key, g.name, last]) });
	const draw = (next) => {
		all = next;
		fill(list, h('div', { class: 'pager' }, h('h3', {}, 'Consumer groups'), h('span', { class: 'muted' }, all.length ? '' : 'none'), h('span', { class: 'grow' }), button('New group …', create)),
			all.length ? scrolls('Groups', table(['Group', 'Consumers', 'Pending', 'Lag', 'Last ID', ''], all.map((g) => h('tr', { class: open !== null && id(open) === id(g.name) ? 'found' : null },
				h('td', { class: 'value' }, button(show(g.name, 100), () => choose(g.name), { class: 'link', 'aria-expanded': open !== null && id(open) === id(g.name) })), [g.consumers, g.pending, g.lag ?? '–'].map((v) => h('td', { class: 'n' }, count(v))), h('td', { class: 'n mono' }, g['last-delivered-id']),
				tools(['Set ID', () => move(g), 'Set ID of ' + show(g.name, 60)], ['Delete', () => destroy(g), 'Delete the group ' + show(g.name, 60)]))), 'Consumer groups')) : null);
		const now = JSON.stringify(all);
		if (open !== null && !all.some((g) => id(g.name) === id(open))) choose(open);
		else if (now !== seen) read();
		seen = now;
	};
	const choose = (name) => {
		open = open !== null && id(open) === id(name) ? null : name;
		start = '-';
		fill(inside);
		draw(all);
		read();
	};
	async function read() {
		if (open === null || closed) return;
		const name = open, from = start;
		const [who, entries] = await pipeline([['XINFO', 'CONSUMERS', ctx.key, name], ['XPENDING', ctx.key, name, from, '+', pendingPage]]).catch((e) => [e, e]);
		if (closed || open !== name || start !== from) return;
		const bad = [who, entries].find((r) => r instanceof CommandError);
		if (bad) return failed(inside)(bad);
		const consumers = who.map((c) => Object.fromEntries(pairs(c)));
		fill(inside, h('h3', {}, 'Consumers of ' + show(name, 60)), consumers.length ? scrolls('Consumers', table(['Consumer', 'Pending', 'Idle', 'Inactive', ''], consumers.map((c) => h('tr', {}, h('td', { class: 'value' }, raw(c.name, 100)), h('td', { class: 'n' }, count(c.pending)),
			h('td', { class: 'n' }, duration(c.idle)), h('td', { class: 'n' }, c.inactive >= 0 ? duration(c.inactive) : '–'), tools(['Delete', () => remove(name, c), 'Delete the consumer ' + show(c.name, 60)]))), 'Consumers')) : h('p', { class: 'muted' }, 'None has read yet.'),
		h('h3', {}, 'Pending entries'), entries.length ? scrolls('Pending entries', table(['ID', 'Consumer', 'Idle', 'Deliveries', ''], entries.map(([entry, owner, idle, deliveries]) => h('tr', {}, h('td', { class: 'n mono' }, entry), h('td', { class: 'value' }, raw(owner, 100)),
			h('td', { class: 'n' }, duration(idle)), h('td', { class: 'n' }, count(deliveries)), tools(['Ack', () => edit({ title: 'Acknowledge the entry ' + entry, note: `It is pending for ${show(owner, 60)}.`, verb: 'Acknowledge', refused: (r) => r === 0 && 'It is no longer pending.', build: () => ['XACK', ctx.key, name, entry] }), 'Ack ' + entry],
				['Claim', () => claim(name, entry, owner, idle), 'Claim ' + entry]))), 'Pending entries')) : h('p', { class: 'muted' }, 'None.'),
		h('div', { class: 'pager' }, from !== '-' && button('« First', () => turn('-')), entries.length === pendingPage && button('Next ›', () => turn('(' + entries[entries.length - 1][0]))));
	}
	const turn = (to) => {
		start = to;
		read();
	};
	const remove = async (group, c) => {
		const summary = await run('XPENDING', ctx.key, group).catch((e) => e);
		edit({ title: `Delete the consumer ${show(c.name, 60)}?`, note: `${count(c.pending)} entries that are pending for it are lost to the group: no consumer can claim them.`, danger: true, verb: 'Delete',
			conditions: [[['XPENDING', ctx.key, group], summary]], build: () => ['XGROUP', 'DELCONSUMER', ctx.key, group, c.name] });
	};
	// A claim demands the idle time that is shown: after another client's claim the entry has a shorter one.
	const claim = (group, entry, owner, idle) => edit({ title: 'Claim the entry ' + entry, note: `It is pending for ${show(owner, 60)}, idle for ${duration(idle)}.`, verb: 'Claim', fields: [{ name: 'consumer', label: 'Consumer that is to have it' }, { name: 'idle', label: 'Idle for at least, in ms', value: String(idle) }],
		refused: (r) => Array.isArray(r) && !r.length && 'Another client has claimed or acknowledged it meanwhile.', build: ({ consumer, idle: least }) => {
			if (consumer === '') throw new Error('Name the consumer.');
			return ['XCLAIM', ctx.key, group, consumer, least, entry, 'JUSTID'];
		} });
	const timer = setInterval(() => document.hidden || read(), readAgain);
	return { element, draw, close: () => {
		closed = true;
		clearInterval(timer);
	} };
}
