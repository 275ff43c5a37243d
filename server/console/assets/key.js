// One key: what it is, its deadline and memory, and the views of its value.

import { $, button, fill, h, menu, tabs, throttle } from './dom.js';
import { follow, ok, pipeline, run, state } from './api.js';
import { Bin, bytes, count, duration, same, show } from './text.js';
import { change } from './dialog.js';
import * as values from './values.js';
import { stream } from './groups.js';
import * as transfer from './transfer.js';
import * as zset from './zset.js';
import * as systems from './systems.js';

const length = { string: 'STRLEN', list: 'LLEN', hash: 'HLEN', set: 'SCARD', zset: 'ZCARD', stream: 'XLEN' };
const unit = { string: 'bytes', list: 'elements', hash: 'fields', set: 'members', zset: 'members', stream: 'entries' };

const views = {
	string: [['value', 'Value', values.string]],
	list: [['value', 'Elements', values.list]],
	set: [['value', 'Members', values.set]],
	hash: [['value', 'Fields', values.hash], ['deadlines', 'Deadlines', zset.fieldDeadlines], ['line', 'Waiting list', systems.waitingList]],
	stream: [['value', 'Entries', stream]],
	zset: [['board', 'Leaderboard', zset.board], ['timeline', 'Timeline', zset.timeline], ['deadlines', 'Deadlines', zset.deadlines],
		['live', 'Live events', systems.liveEvents], ['boxes', 'Timeboxes', systems.timeboxes], ['folder', 'Folder', systems.folder], ['line', 'Waiting list', systems.waitingList]],
};

// stored says how zsetd has what OBJECT ENCODING names as Redis would have it.
const stored = { skiplist: 'B-tree', quicklist: 'blocks', hashtable: 'hash table', listpack: 'packed', intset: 'packed integers' };

// kept are the views that go on while their key is empty.
const kept = ['live', 'boxes', 'folder', 'line'];

// few are as many views as have tabs side by side.
const few = 3;

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
		self.live?.close();
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
		self.live = follow(key, () => [['TYPE', key]], ([type]) => {
			if (type === 'none' || type instanceof Error) return;
			self.close();
			open = null;
			openKey(box, key, view, nav);
		}, () => {});
		return;
	}
	self.type = facts.type;
	const list = views[facts.type] || [['value', 'Value', values.other]];
	const line = h('div', { class: 'row' });
	const dot = h('span', { class: 'livedot' }, 'not live');
	const notice = h('div');
	const body = h('div', { class: 'value', role: 'tabpanel' });
	const header = () => {
		const left = facts.ttl >= 0 ? facts.ttl - (Date.now() - facts.read) : -1;
		fill(line, h('span', { class: 'type ' + facts.type }, facts.type), h('span', {}, h('b', { id: 'key-length' }, count(facts.length)), ' ', unit[facts.type] || ''),
			h('span', {}, h('b', {}, bytes(facts.memory))), h('span', { title: 'OBJECT ENCODING: ' + facts.encoding }, stored[facts.encoding] ? [stored[facts.encoding], h('small', {}, ` (${facts.encoding})`)] : facts.encoding), h('span', {}, facts.ttl >= 0 ? ['expires in ', h('b', {}, duration(Math.max(0, left)))] : 'no expiry'), dot);
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
	const edit = async (options) => {
		if (!(await change(options))) return;
		refresh();
		self.live.read();
	};
	const status = (on, reason) => {
		dot.textContent = on ? 'live' : 'not live';
		dot.classList.toggle('on', on);
		if (on || reason) fill(notice, reason ? h('div', { class: 'notice' }, reason, button('Read again', () => self.live.read())) : '');
	};
	// A view follows the replies to its commands, beside those that tell of another deadline, length or type of the key.
	const head = [['TYPE', key], ['PEXPIRETIME', key], ...(length[facts.type] ? [[length[facts.type], key]] : [])];
	const context = { key, edit, type: facts.type, facts: () => facts, go: nav.go, follow: (commands, show) => (self.live = follow(key, (r, reading) => {
		if (head[2] && typeof r[2] === 'number') facts.length = r[2]; // by which a view chooses a command
		return [...head, ...commands(r.slice(head.length), reading)];
	}, (r) => {
		refresh();
		show(r.slice(head.length));
	}, status)) };
	self.choose = (id) => {
		const entry = list.find(([name]) => name === id) || list[0];
		self.view = entry[0];
		bar();
		self.live?.close();
		self.stopView?.();
		fill(body);
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
	}), menu('More', [
		['Duplicate …', async () => {
			let to = key;
			const done = await change({
				title: 'Duplicate the key', fields: [{ name: 'to', label: 'Name of the copy', value: key instanceof Bin ? key : key + ':copy' }, { name: 'replace', label: 'Replace a key that has this name', type: 'checkbox' }],
				conditions: [[['TYPE', key], facts.type]], refused: (r) => r === 0 && 'A key with this name exists.',
				build: (v) => {
					if (same((to = v.to), key)) throw new Error('Give the copy another name.');
					return ['COPY', key, to, ...(v.replace ? ['REPLACE'] : [])];
				},
			});
			if (!done) return;
			nav.added(to);
			nav.go('keys', { key: to });
		}],
		['Copy the name', () => transfer.copy(key)],
		['Copy the value', () => transfer.attempt('Copy the value', async () => transfer.copy(await transfer.text(key, facts)))],
		['Download as JSON', () => transfer.attempt('Download', () => transfer.downloadJSON(key, facts))],
		...(facts.type === 'string' ? [['Download the bytes', () => transfer.attempt('Download', () => transfer.downloadRaw(key, facts))]] : []),
		['Table as CSV', () => transfer.saveTable(key, $('table', body), 'csv')],
		['Table as JSON', () => transfer.saveTable(key, $('table', body), 'json')],
		['Events of the key', () => nav.go('messages', { key })],
	]));
	const asked = self.view && list.some(([id]) => id === self.view), fits = !asked || list.length > few ? await guess(key, facts, list) : '';
	if (self.closed) return;
	// Of many views, the one that fits and the one that is shown have tabs, and a menu has the others.
	const bars = h('div', { class: 'views', hidden: list.length === 1 });
	const take = (id) => nav.go('keys', { key, view: id }, true);
	const bar = () => {
		const named = list.length > few ? list.filter(([id]) => id === fits || id === self.view) : list, old = bars.firstChild;
		if (old && named.every(([id]) => $(`[data-id=${id}]`, old)) && old.children.length === named.length) return old.take(self.view);
		const others = h('select', { 'aria-label': 'Other views', onchange: () => {
			take(others.value);
			$('[aria-selected=true]', bars).focus();
		} }, h('option', { value: '' }, 'Other views …'), list.filter((one) => !named.includes(one)).map(([id, label]) => h('option', { value: id }, label)));
		fill(bars, tabs('Views of the value', named, self.view, take), named.length < list.length && others);
	};
	fill(box, h('div', { class: 'keyhead' }, back, h('h2', {}, show(key, 2000)), line, actions), notice, bars, body);
	header();
	self.timer = setInterval(() => facts.ttl >= 0 && (facts.ttl - (Date.now() - facts.read) < 0 ? refresh() : header()), 1000);
	self.choose(asked ? self.view : fits);
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
