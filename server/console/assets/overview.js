// What the server does: its state, plots of a time up to 24 hours, slow commands and notable events.

import { $, button, fill, h } from './dom.js';
import { pairs, stream, stringField } from './api.js';
import { ago } from './backup.js';
import { brief, bytes, clock, count, day, duration, micros, show as text } from './text.js';
import { Plot } from './plot.js';
import { table } from './values.js';

// The ranges of the plots: their name for /stats, their label, and the seconds of a sample.
const ranges = [['15m', '15 min', 1, 900], ['1h', '1 hour', 10, 3600], ['6h', '6 hours', 60, 21600], ['24h', '24 hours', 240, 86400]];
const commands = 5;
let close, timer, range = ranges[0], samples = [], latest, plots = [], top = [], go;

const number = (n) => (n === undefined || n === null ? '–' : brief(n));
const memory = (name) => (s) => s.memory?.[name];

export function mount(section, goTo) {
	go = goTo;
	plots = [
		new Plot('Commands per second', [{ name: 'all', value: (s) => s.ops }], number),
		new Plot('Latency', [{ name: 'p50', value: (s) => s.p50us }, { name: 'p99', value: (s) => s.p99us }], (n) => (n === undefined || n === null ? '–' : micros(n)), { note: 'of commands, without the network' }),
		new Plot('Memory', [{ name: 'used', value: memory('used') }, { name: 'data', value: memory('dataset') }, { name: 'resident', value: memory('rss') }], (n) => (n === undefined ? '–' : bytes(n)), { base: 1024 }),
		new Plot('Network', [{ name: 'in', value: (s) => s.in }, { name: 'out', value: (s) => s.out }], (n) => bytes(Math.round(n)), { base: 1024, note: 'bytes per second' }),
		new Plot('Clients', [{ name: 'connected', value: (s) => s.clients }, { name: 'blocked', value: (s) => s.blocked }], number),
		new Plot('Reads of keys', [{ name: 'hits/s', value: (s) => s.hits }, { name: 'misses/s', value: (s) => s.misses }], number),
		new Plot('Keys', [{ name: 'keys', value: (s) => s.keys }], number),
		new Plot('Expiry', [{ name: 'expired/s', value: (s) => s.expired }, { name: 'evicted/s', value: (s) => s.evicted }], number),
		new Plot('Expiry lag', [{ name: 'lag', value: (s) => s.lagms }], (n) => (n === undefined || n === null ? '–' : duration(n)), { note: 'p99, from a deadline to its event' }),
		new Plot('Checkpoints', [{ name: 'time', value: (s) => s.checkms }], (n) => (n === undefined || n === null ? '–' : duration(n)), { note: 'to write what changed to the file' }),
	];
	fill($('#plots'), plots.map((p) => p.element));
	fill($('#ranges'), ranges.map((r) => button(r[1], () => go('overview', r === ranges[0] ? {} : { range: r[0] }, true), { 'data-range': r[0] })));
}

export function show(params) {
	hide();
	range = ranges.find(([name]) => name === params.get('range')) || ranges[0];
	for (const b of $('#ranges').children) b.setAttribute('aria-pressed', b.dataset.range === range[0]);
	const keep = range[3] / range[2], add = (one) => {
		samples.push(one);
		if (samples.length > keep) samples.shift();
	};
	close = stream('stats', { range: range[0] }, {
		history: (list) => {
			samples = list;
			latest = latest || list[list.length - 1];
			draw();
		},
		sample: (one) => {
			latest = one;
			if (range[2] === 1) add(one);
			draw();
		},
		['sample' + range[0]]: add,
		state: (on, reason) => fill($('#overview-notice'), reason && h('div', { class: 'notice' }, reason)),
	});
	logs();
	timer = setInterval(logs, 5000);
}

export function hide() {
	close?.();
	clearInterval(timer);
}

function draw() {
	if (document.hidden || !latest) return;
	facts();
	const drawn = samples.length ? samples : [latest]; // the first one of a range is not there yet
	// The commands with the most calls of the span have lines of their own. A line stays while its command does.
	const sums = {};
	for (const s of drawn) for (const [name, n] of Object.entries(s.commands || {})) sums[name] = (sums[name] || 0) + n;
	const next = Object.entries(sums).sort((a, b) => b[1] - a[1]).slice(0, commands).map(([n]) => n);
	if (next.some((n) => !top.includes(n)) || next.length !== top.length) {
		top = next;
		plots[0].series = [{ name: 'all', value: (s) => s.ops }, ...top.map((name) => ({ name, value: (s) => s.commands?.[name] || 0 }))];
	}
	// A server that began just now is shown over the time that it has.
	const age = latest.t - drawn[0].t, short = range === ranges[0];
	const shown = short && age < 60000 ? 60000 : short && age < 300000 ? 300000 : range[3] * 1000;
	for (const p of plots) p.set(drawn, shown, latest.t);
	plots[2].note.textContent = growth(drawn[0].memory);
}

function facts() {
	const s = latest, m = s.memory, sum = (name) => samples.reduce((n, one) => n + one[name], 0) * range[2];
	const reads = sum('hits') + sum('misses'), replica = s.role !== 'master';
	const list = [
		['Up for', duration(s.uptime * 1000), count(s.ops) + ' commands/s'],
		['Keys', count(s.keys), sum('expired') ? count(sum('expired')) + ' expired in ' + covered() : ''],
		['Memory', bytes(m.used), m.max ? 'of ' + bytes(m.max) : 'peak ' + bytes(m.peak), m.max && m.used > m.max * 0.9 ? 'bad' : ''],
		['Clients', count(s.clients), s.blocked ? count(s.blocked) + ' blocked' : ''],
		['Hit rate', reads ? ((100 * sum('hits')) / reads).toFixed(1) + ' %' : '–', reads ? 'in ' + covered() : 'no reads'],
		['Last save', s.saving ? 'now' : s.saved ? ago(Math.floor(s.t / 1000) - s.saved) : 'none', s.saveok ? count(s.changes) + ' changes since' : 'the last one failed', s.saveok ? '' : 'bad'],
		['Replication', replica ? 'replica' : 'primary', replica ? 'link is ' + (s.link || 'down') : s.replicas ? count(s.replicas) + ' replicas' : 'no replicas', replica && s.link !== 'up' ? 'bad' : ''],
	];
	const first = $('#facts').children;
	fill($('#facts'), list.map(([name, value, note, state]) => h('div', { role: 'listitem', class: state || null }, h('small', {}, name), h('b', {}, value), h('small', {}, note || '\u00a0'))),
		first.length === list.length + 1 ? first[list.length] : h('div', { role: 'listitem' }, h('small', {}, 'What takes memory'), button('Measure keys', () => go('keys', { measure: 1 }), { class: 'link' })));
}

const covered = () => duration(Math.max(1000, Math.round((latest.t - samples[0].t) / 1000) * 1000));

// growth says which kinds of memory grew or shrank most since the first sample.
function growth(a) {
	const b = latest.memory;
	const names = { dataset: 'data', clients: 'clients', replicas: 'replicas', scripts: 'scripts', functions: 'functions' };
	const signed = (n) => (n < 0 ? '−' : '+') + bytes(Math.abs(n));
	const changes = Object.entries(names).map(([k, name]) => [b[k] - a[k], name]).filter(([n]) => Math.abs(n) >= 1024).sort((x, y) => Math.abs(y[0]) - Math.abs(x[0])).slice(0, 2);
	return changes.length ? 'in ' + covered() + ': ' + changes.map(([n, name]) => name + ' ' + signed(n)).join(', ') : '';
}

async function logs() {
	if (document.hidden) return;
	try {
		const response = await fetch('log');
		const log = await response.json();
		if (!response.ok) throw new Error(log.error);
		slowLog(log);
		notable(log);
	} catch (e) {
		if (!(e instanceof TypeError)) fill($('#slow'), h('p', { class: 'error' }, e.message)); // otherwise the server is away
	}
}

const line = (v) => text(stringField(v), 60);

function slowLog({ slowlog, errors }) {
	if (errors.slowlog) return fill($('#slow'), h('p', { class: 'muted' }, errors.slowlog));
	fill($('#slow'), slowlog.length ? table(['Time', 'Took', 'Command', 'Client'], slowlog.slice(0, 50).map((e) => h('tr', {}, h('td', { class: 'n muted' }, stamp(e.t)), h('td', { class: 'n' }, micros(e.us)),
		h('td', { class: 'value' }, e.args.slice(0, 20).map(line).join(' ')), h('td', { class: 'muted nowrap' }, e.name || e.addr ? line(e.name || e.addr) : ''))), 'Slow commands') : h('p', { class: 'muted' }, 'None. The parameter slowlog-log-slower-than sets the limit.'));
}

// notable merges the records of the log, the events of the latency monitor and the refusals of the ACL.
function notable({ events, latency, acl }) {
	const list = events.map((e) => ({ t: e.t, bad: /WARN|ERROR/.test(e.level), text: e.text }));
	for (const e of latency) list.push({ t: e.t, text: `${line(e.event)} took ${duration(e.ms)}, at most ${duration(e.max)}` });
	for (const e of acl) {
		const f = Array.isArray(e) ? Object.fromEntries(pairs(e)) : e;
		list.push({ t: Number(f['timestamp-last-updated'] || f['timestamp-created']) || Date.now() - Number(f['age-seconds'] || 0) * 1000, bad: true, text: `refused: ${line(f.reason)} ${line(f.object)}, user ${line(f.username)}, ${f.count} times` });
	}
	list.sort((a, b) => b.t - a.t);
	fill($('#notable'), list.length ? table(['Time', 'Event'], list.slice(0, 50).map((e) => h('tr', {}, h('td', { class: 'n muted' }, stamp(e.t)), h('td', { class: 'value' + (e.bad ? ' error' : '') }, text(e.text, 300)))), 'Notable events') : h('p', { class: 'muted' }, 'None since the start.'));
}

const stamp = (ms) => (Date.now() - ms > 86400000 ? day(ms) + ' ' : '') + clock(ms);
