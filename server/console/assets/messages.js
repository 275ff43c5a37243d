// Messages of channels and patterns and the changes of keys, as they come. The list keeps the last maxMessages.

import { $, VirtualList, button, debounce, fill, h, throttle } from './dom.js';
import { run, state, stream, stringField } from './api.js';
import { Bin, clock, count, id, show as text } from './text.js';
import { change } from './dialog.js';

const maxMessages = 2000;
const streams = new Map(); // by database
let list, subs = [], messages = [], shown = [], paused = false, missed = 0, arrived = [], shownView = false;

export function mount() {
	list = new VirtualList($('#live-list'), 26, draw);
	$('#subscribe').addEventListener('submit', (e) => {
		e.preventDefault();
		add($('#sub-kind').value, $('#sub-name').value);
		$('#sub-name').value = '';
	});
	$('#sub-keyspace').addEventListener('click', () => {
		add('pattern', '__key*__:*');
		flags();
	});
	$('#live-pause').addEventListener('click', (e) => {
		paused = !paused;
		missed = 0;
		e.target.setAttribute('aria-pressed', paused);
		e.target.textContent = paused ? 'Resume' : 'Pause';
		refresh();
	});
	$('#live-clear').addEventListener('click', () => {
		messages = [];
		refresh();
	});
	$('#live-filter').addEventListener('input', debounce(refresh, 100));
	$('#live-list').addEventListener('click', (e) => {
		const item = e.target.closest('.item');
		if (item) open(shown[Number(item.dataset.i)]);
	});
	setInterval(rate, 1000);
	chips();
	list.set(0);
}

export function show(params) {
	shownView = true;
	const key = params.has('key64') ? new Bin(params.get('key64')) : params.get('key');
	if (key !== null) add('key', key);
	for (const kind of ['channel', 'pattern']) for (const name of params.getAll(kind)) add(kind, name);
	refresh();
}

export function hide() {
	shownView = false;
}

function add(kind, name) {
	if (subs.some((s) => s.kind === kind && id(s.name) === id(name) && s.db === state.db)) return;
	subs.push({ kind, name, db: state.db });
	connect();
	if (kind === 'key') flags();
}

// connect opens one stream for the subscriptions of each database. The stream before it ends when it is open, so that no
// message is lost.
function connect() {
	for (const db of new Set([...streams.keys(), ...subs.map((s) => s.db)])) {
		const params = { db };
		for (const s of subs.filter((one) => one.db === db)) (params[s.kind] ||= []).push(s.name);
		const before = streams.get(db), names = Object.keys(params).length > 1;
		if (!names) {
			before?.close();
			streams.delete(db);
			continue;
		}
		const next = { on: false };
		streams.set(db, next);
		next.close = stream('events', params, {
			state: (on, reason) => {
				next.on = on;
				if (on) before?.close();
				if (reason) fill($('#live-notice'), h('div', { class: 'notice' }, reason));
				chips();
			},
			message: receive,
		}, true);
	}
	chips();
}

function chips() {
	fill($('#subs'), subs.length ? subs.map((s) => {
		const on = streams.get(s.db)?.on;
		return h('span', { role: 'listitem' }, h('span', { class: 'livedot' + (on ? ' on' : ''), title: on ? 'connected' : 'not connected' }), s.kind, ' ', h('code', {}, text(s.name, 60)), button('×', () => {
			subs = subs.filter((o) => o !== s);
			connect();
		}, { 'aria-label': 'Unsubscribe from ' + text(s.name, 60) }));
	}) : h('p', { class: 'muted', role: 'listitem' }, 'No subscriptions. Messages come from PUBLISH and from notify-keyspace-events.'));
}

// flags says when the server does not publish what was asked for.
async function flags() {
	const now = await run('CONFIG', 'GET', 'notify-keyspace-events').then((r) => r[0][1], () => null);
	if (now === null || (/[KE]/.test(now) && now.includes('S') && now.includes('A'))) return fill($('#live-notice'));
	fill($('#live-notice'), h('div', { class: 'notice' }, h('span', {}, h('code', {}, 'notify-keyspace-events'), now ? [' is ', h('code', {}, now), ': not all changes are published.'] : ' is empty: no changes are published.'),
		button('Publish all …', async () => {
			if (await change({ title: 'Publish keyspace events', note: 'K and E: events of keys. S: with the members concerned.', build: () => ['CONFIG', 'SET', 'notify-keyspace-events', 'KESA'] })) fill($('#live-notice'));
		})));
}

function receive(data) {
	const t = Date.now();
	arrived.push(t);
	if (arrived.length > 20000) arrived.splice(0, 10000);
	if (paused) {
		missed++;
		return;
	}
	const from = data.key !== undefined ? stringField(data.key) : stringField(data.channel);
	const what = data.event !== undefined ? data.event + ' ' + (data.members || []).map((m) => text(stringField(m), 200)).join(' ') : stringField(data.message);
	messages.push({ t, from, what });
	if (messages.length > maxMessages * 1.2) messages = messages.slice(-maxMessages);
	refreshSoon();
}

const refreshSoon = throttle(() => refresh(), 60);

function refresh() {
	const filter = $('#live-filter').value.toLowerCase();
	const box = $('#live-list');
	shown = filter ? messages.filter((m) => (text(m.from, 2000) + ' ' + text(m.what, 2000)).toLowerCase().includes(filter)) : messages.slice(-maxMessages);
	const last = !shownView || box.scrollTop + box.clientHeight > box.scrollHeight - 60;
	list.set(shown.length);
	if (last) box.scrollTop = box.scrollHeight;
	list.paint();
	rate();
}

function rate() {
	const since = Date.now() - 5000;
	arrived = arrived.filter((t) => t > since);
	const perSecond = arrived.length / 5;
	$('#live-rate').textContent = `${perSecond < 10 ? perSecond.toFixed(1) : count(Math.round(perSecond))} per second · ${count(shown.length)} shown` + (paused ? ` · paused, ${count(missed)} not kept` : '');
}

function draw(i) {
	const m = shown[i];
	return h('div', { class: 'item', 'data-i': i }, h('time', {}, clock(m.t)), h('span', { class: 'from' }, text(m.from, 100)), h('span', { class: 'what' }, text(m.what, 300)));
}

function open(m) {
	const dialog = $('#dialog');
	dialog.classList.remove('dangerous');
	fill(dialog, h('h2', { id: 'dialog-title' }, text(m.from, 500)), h('p', { class: 'muted' }, clock(m.t)), h('pre', { class: 'text', tabindex: 0 }, text(m.what, 200000)), h('div', { class: 'actions' }, button('Close', () => dialog.close())));
	dialog.onclose = null;
	dialog.showModal();
}
