// One key: what it is, its deadline and memory, and the views of its value.

import { button, fill, h, tabs, throttle } from './dom.js';
import { ok, pipeline, run, state, stream } from './api.js';
import { Bin, bytes, count, duration, same, show } from './text.js';
import { change } from './dialog.js';
import * as values from './values.js';
import * as zset from './zset.js';
import * as systems from './systems.js';

const length = { string: 'STRLEN', list: 'LLEN', hash: 'HLEN', set: 'SCARD', zset: 'ZCARD', stream: 'XLEN' };
const unit = { string: 'bytes', list: 'elements', hash: 'fields', set: 'members', zset: 'members', stream: 'entries' };
const events = { set: 's', hash: 'h', zset: 'z' };

const views = {
	string: [['value', 'Value', values.string]],
	list: [['value', 'Elements', values.list]],
	set: [['value', 'Members', values.set]],
	hash: [['value', 'Fields', values.hash], ['deadlines', 'Deadlines', zset.fieldDeadlines], ['line', 'Waiting list', systems.waitingList]],
	stream: [['value', 'Entries', values.stream]],
	zset: [['board', 'Leaderboard', zset.board], ['timeline', 'Timeline', zset.timeline], ['deadlines', 'Deadlines', zset.deadlines],
		['live', 'Live events', systems.liveEvents], ['boxes', 'Timeboxes', systems.timeboxes], ['folder', 'Folder', systems.folder], ['line', 'Waiting list', systems.waitingList]],
};

// kept are the views that go on while their key is empty.
const kept = ['live', 'boxes', 'folder', 'line'];

let open = null;

export function closeKey(box) {
	open?.close();
	open = null;
	if (box) fill(box, h('div', { class: 'empty' }, 'Choose a key.'));
}

export async function openKey(box, key, view, nav) {
	if (open && same(open.key, key) && open.db === state.db && open.type) {
		if (view && view !== open.view) open.choose(view);
		return;
	}
	open?.close();
	const self = (open = { key, db: state.db, view, closed: false, close() {
		self.closed = true;
		self.stopLive?.();
		self.stopView?.();
		clearInterval(self.timer);
	} });
	fill(box, h('div', { class: 'empty' }, 'Reading …'));
	let facts;
	try {
		facts = await read(key);
	} catch (e) {
		if (!self.closed) fill(box, h('button', { type: 'button', class: 'back small', onclick: nav.back }, '‹ Keys'), h('p', { class: 'error' }, e.message));
		return;
	}
	if (self.closed) return;
	const back = button('‹ Keys', nav.back, { class: 'back small' });
	if (facts.type === 'none') {
		nav.gone(key);
		fill(box, back, h('div', { class: 'empty' }, h('p', {}, 'There is no key ', h('code', {}, show(key, 200)), '. It is shown here when a client makes it.')));
		self.type = '';
		const again = () => {
			if (self.closed) return;
			self.close();
			open = null;
			openKey(box, key, view, nav);
		};
		// The key may have come before the stream.
		self.stopLive = stream('events', { changes: key }, { message: again, state: async (on) => on && (await run('EXISTS', key).catch(() => 0)) && again() });
		return;
	}
	self.type = facts.type;
	const list = views[facts.type] || [['value', 'Value', values.other]];
	const line = h('div', { class: 'row' });
	const live = h('span', { class: 'livedot' }, 'not live');
	const notice = h('div');
	const body = h('div', { class: 'value', role: 'tabpanel' });
	const listeners = new Set();
	const header = () => {
		const left = facts.ttl >= 0 ? facts.ttl - (Date.now() - facts.read) : -1;
		fill(line, h('span', { class: 'type ' + facts.type }, facts.type), h('span', {}, h('b', { id: 'key-length' }, count(facts.length)), ' ', unit[facts.type] || ''),
			h('span', {}, h('b', {}, bytes(facts.memory))), h('span', {}, facts.encoding), h('span', {}, facts.ttl >= 0 ? ['expires in ', h('b', {}, duration(Math.max(0, left)))] : 'no expiry'), live);
	};
	const refresh = throttle(async () => {
		const next = await read(key).catch(() => null);
		if (self.closed || !next) return;
		if (next.type === 'none' && kept.includes(self.view)) next.type = facts.type; // a system that is empty just now
		if (next.type !== facts.type) {
			open = null;
			self.close();
			return openKey(box, key, self.view, nav);
		}
		facts = next;
		header();
	}, 1000);
	// changed reads again what an edit or another client has changed.
	const changed = (event) => {
		refresh();
		for (const f of listeners) f(event || {});
	};
	const edit = async (options) => {
		if (await change(options)) changed();
	};
	self.keys = [key];
	// also makes changes of further keys count as those of this one.
	const also = (more) => {
		self.keys = [...new Set([key, ...more])];
		self.follow?.();
	};
	const context = { key, also, edit, changed, type: facts.type, facts: () => facts, onChange: (f) => listeners.add(f), go: nav.go };
	self.choose = (id) => {
		const entry = list.find(([name]) => name === id) || list[0];
		self.view = entry[0];
		self.stopView?.();
		listeners.clear();
		fill(body);
		if (self.keys.length > 1) also([]);
		self.stopView = entry[2](body, context) || null;
		body.setAttribute('aria-label', entry[1]);
	};
	const actions = h('div', { class: 'row actions' }, button('TTL …', () => values.expiry({ key, edit }, 'Time to live of the key', '', [])), button('Rename …', async () => {
		let to = key;
		const done = await change({
			title: 'Rename the key', fields: [{ name: 'to', label: 'New name', value: key }, { name: 'replace', label: 'Replace a key that has this name', type: 'checkbox' }],
			conditions: [[['TYPE', key], facts.type]], refused: (r) => r === 0 && 'A key with this name exists.',
			build: (v) => (same((to = v.to), key) ? [] : [v.replace ? 'RENAME' : 'RENAMENX', key, to]),
		});
		if (!done) return;
		nav.gone(key);
		nav.added(to);
		nav.go('keys', { key: to });
	}), button('Delete …', async () => {
		const is = await read(key).catch(() => facts); // the head of the page may be a second old
		if (!(await change({ title: 'Delete this key?', conditions: [[['TYPE', key], is.type], ...(length[is.type] ? [[[length[is.type], key], is.length]] : [])], note: `${count(is.length)} ${unit[is.type] || ''}, ${bytes(is.memory)}.`, build: () => ['UNLINK', key], danger: true, verb: 'Delete' }))) return;
		nav.gone(key);
		nav.go('keys');
	}), button('Copy name', () => navigator.clipboard?.writeText(key instanceof Bin ? show(key, 1e6) : key)), button('Events', () => nav.go('messages', { key })));
	const start = self.view && list.some(([id]) => id === self.view) ? self.view : await guess(key, facts, list);
	if (self.closed) return;
	const bar = list.length > 1 ? tabs('Views of the value', list, start, (id) => nav.go('keys', { key, view: id }, true)) : h('hr', { hidden: true });
	fill(box, h('div', { class: 'keyhead' }, back, h('h2', {}, show(key, 2000)), line, actions), notice, bar, body);
	header();
	self.timer = setInterval(() => facts.ttl >= 0 && (facts.ttl - (Date.now() - facts.read) < 0 ? refresh() : header()), 1000);
	self.choose(start);
	watch(self, facts.type, live, notice, changed);
}

async function read(key) {
	const type = await run('TYPE', key);
	const [ttl, memory, encoding, size] = await pipeline([['PTTL', key], ['MEMORY', 'USAGE', key], ['OBJECT', 'ENCODING', key], ...(length[type] ? [[length[type], key]] : [])]);
	return { type, ttl: ok(ttl, -1), memory: ok(memory, null), encoding: ok(encoding, ''), length: length[type] ? ok(size, 0) : '', read: Date.now() };
}

// guess returns the view that fits the value.
async function guess(key, facts, list) {
	const id = await systems.recognise(key, facts.type).catch(() => null);
	return list.some(([name]) => name === id) ? id : list[0][0];
}

// watch follows the changes of the key: by the messages to clients that cache it, and where the server publishes the
// events of members, by these too. A user may have the permission for one of them only.
async function watch(self, type, dot, notice, changed) {
	let flags = '';
	try {
		flags = (await run('CONFIG', 'GET', 'notify-keyspace-events'))[0][1];
	} catch { /* a user without CONFIG follows changes */ }
	if (self.closed) return;
	const members = ['zset', 'hash', 'set'].includes(type) && flags.includes('S') && (flags.includes('A') || flags.includes(events[type]));
	const ways = members ? [['changes', 'key'], ['changes'], ['key']] : [['changes']];
	self.follow = () => {
		self.stopLive?.();
		self.stopLive = stream('events', { db: state.db, ...Object.fromEntries(ways[0].map((name) => [name, self.keys])) }, {
			state: (on, reason) => {
				dot.textContent = on ? 'live' : 'not live';
				dot.classList.toggle('on', on);
				if (on) changed(); // changes before the stream
				if (reason && ways.length > 1) {
					ways.shift();
					self.follow();
				} else if (on || reason) fill(notice, reason ? h('div', { class: 'notice' }, reason, button('Read again', () => changed())) : '');
			},
			message: (data) => changed({ event: data.event, members: (data.members || []).map((m) => (typeof m === 'object' ? new Bin(m.base64) : m)) }),
		});
	};
	self.follow();
}
