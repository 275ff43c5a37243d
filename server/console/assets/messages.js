// Messages of channels and patterns, the changes of keys, and the commands of clients, as they come. The list keeps the
// last maxMessages.

import { $, VirtualList, button, debounce, fill, h, scrolls, throttle } from './dom.js';
import { every, pipeline, run, state, stream, stringField } from './api.js';
import { Bin, clock, count, id, show as text } from './text.js';
import { change } from './dialog.js';
import { failed, table, tools } from './values.js';

const maxMessages = 2000, maxChannels = 500;
const monitorSeconds = 30, monitorCount = 5000; // at most; the server ends a longer one
const streams = new Map(); // by database
let list, subs = [], messages = [], shown = [], paused = false, missed = 0, arrived = [], shownView = false, monitoring = null, leaveChannels = null;

export function mount() {
	list = new VirtualList($('#live-list'), 26, draw);
	$('#subscribe').addEventListener('submit', (e) => {
		e.preventDefault();
		if ($('#sub-kind').value === 'monitor') return monitor();
		add($('#sub-kind').value, $('#sub-name').value);
		$('#sub-name').value = '';
	});
	$('#sub-kind').addEventListener('change', kindChosen);
	$('#publish').addEventListener('click', () => publish(''));
	$('#sub-channels').addEventListener('click', () => channels($('#channels').hidden));
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
	for (const kind of ['channel', 'pattern']) for (const name of [...params.getAll(kind), ...params.getAll(kind + '64').map((v) => new Bin(v))]) add(kind, name);
	if (params.has('monitor')) {
		$('#sub-kind').value = 'monitor';
		kindChosen();
		monitor();
	}
	if (!$('#channels').hidden) channels(true);
	refresh();
}

export function hide() {
	shownView = false;
	leaveChannels?.();
}

// kindChosen fits the form to what it subscribes to.
function kindChosen() {
	const commands = $('#sub-kind').value === 'monitor';
	$('#sub-name').required = !commands;
	$('#sub-name').hidden = commands;
	$('#subscribe [type=submit]').textContent = commands ? `Watch for ${monitorSeconds} s` : 'Subscribe';
}

// monitor shows the commands of all clients for a time. It ends when one of its bounds is reached.
async function monitor() {
	if (monitoring) return;
	const abort = new AbortController();
	monitoring = { abort, until: Date.now() + monitorSeconds * 1000 };
	chips();
	try {
		const response = await fetch(`monitor?seconds=${monitorSeconds}&count=${monitorCount}`, { method: 'POST', signal: abort.signal });
		if (!response.ok) throw new Error((await response.json()).error);
		const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
		let rest = '';
		for (;;) {
			const { done, value } = await reader.read();
			if (done) break;
			const lines = (rest + value).split('\n');
			rest = lines.pop();
			for (const line of lines) command(stringField(JSON.parse(line)));
		}
	} catch (e) {
		if (e.name !== 'AbortError') fill($('#live-notice'), h('div', { class: 'notice' }, e.message));
	}
	monitoring = null;
	chips();
}

// command shows a line of MONITOR: the time, the database and the client, the words.
function command(line) {
	const m = /^[\d.]+ \[(\d+) (.*?)\] ([^]*)$/.exec(line);
	if (m) arrive(`db ${m[1]} ${m[2]}`, m[3]);
}

async function publish(channel) {
	let receivers = 0;
	const done = await change({ title: 'Publish a message', fields: [{ name: 'channel', label: 'Channel', value: channel }, { name: 'message', label: 'Message', type: 'area' }], verb: 'Publish',
		build: (v) => (v.channel === '' ? [] : ['PUBLISH', v.channel, v.message]), refused: (n) => void (receivers = n) });
	if (done) fill($('#live-notice'), h('p', { class: 'muted', role: 'status' }, `${count(receivers)} subscribers have received it.`));
}

// channels shows those that have subscribers.
function channels(on) {
	const box = $('#channels');
	box.hidden = !on;
	$('#sub-channels').setAttribute('aria-expanded', on);
	leaveChannels?.();
	leaveChannels = on ? every(async () => {
		try {
			const all = (await run('PUBSUB', 'CHANNELS')).filter((c) => !/^__query@/.test(c)).sort((a, b) => (id(a) < id(b) ? -1 : 1)), list = all.slice(0, maxChannels);
			const [numbers, patterns] = await pipeline([['PUBSUB', 'NUMSUB', ...list], ['PUBSUB', 'NUMPAT']]);
			fill(box, h('p', { class: 'muted' }, `${count(all.length)} channels with subscribers` + (all.length > list.length ? `, ${count(list.length)} are shown` : '') + (patterns > 0 ? `; ${count(patterns)} patterns` : '')),
				list.length > 0 && scrolls('Channels', table(['Channel', 'Subscribers', ''], list.map((c, i) => h('tr', {}, h('td', { class: 'value' }, text(c, 200)), h('td', { class: 'n' }, count(Array.isArray(numbers[i]) ? numbers[i][1] : numbers[2 * i + 1])), tools(['Subscribe', () => add('channel', c)], ['Publish …', () => publish(c)]))), 'Channels')));
		} catch (e) {
			if (!box.firstChild) failed(box)(e);
		}
	}, 2000) : null;
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
	const watching = monitoring && h('span', { role: 'listitem' }, h('span', { class: 'livedot on', title: 'connected' }), `commands until ${clock(monitoring.until)}`, button('×', () => monitoring?.abort.abort(), { 'aria-label': 'End MONITOR' }));
	fill($('#subs'), subs.length || watching ? [watching, subs.map((s) => {
		const on = streams.get(s.db)?.on;
		return h('span', { role: 'listitem' }, h('span', { class: 'livedot' + (on ? ' on' : ''), title: on ? 'connected' : 'not connected' }), s.kind, ' ', h('code', {}, text(s.name, 60)), button('×', () => {
			subs = subs.filter((o) => o !== s);
			connect();
		}, { 'aria-label': 'Unsubscribe from ' + text(s.name, 60) }));
	})] : h('p', { class: 'muted', role: 'listitem' }, 'No subscriptions. Messages come from PUBLISH and from notify-keyspace-events.'));
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
	const from = data.key !== undefined ? stringField(data.key) : stringField(data.channel);
	arrive(from, data.event !== undefined ? data.event + ' ' + (data.members || []).map((m) => text(stringField(m), 200)).join(' ') : stringField(data.message));
}

// arrive adds a message to the list.
function arrive(from, what) {
	const t = Date.now();
	arrived.push(t);
	if (arrived.length > 20000) arrived.splice(0, 10000);
	if (paused) {
		missed++;
		return;
	}
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
