// The state of the server, and its slow commands.

import { $, button, fill, h } from './dom.js';
import { info, run } from './api.js';
import { bytes, clock, count, day, duration, micros, show as text } from './text.js';
import { table } from './values.js';

let timer, go;

export function mount(section, goTo) {
	go = goTo;
}

export function show() {
	slow();
	timer = setInterval(slow, 5000);
}

export function hide() {
	clearInterval(timer);
}

async function slow() {
	if (document.hidden) return;
	info('everything').then(facts, (e) => fill($('#facts'), h('div', { role: 'listitem' }, e.message)));
	run('SLOWLOG', 'GET', 50).then(slowLog, (e) => fill($('#slow'), h('p', { class: 'error' }, e.message)));
}

function facts(i) {
	const n = (k) => Number(i[k] || 0);
	const max = n('maxmemory'), role = i.role === 'master' ? 'primary' : 'replica';
	const since = i.rdb_last_save_time && n('rdb_last_save_time') ? Date.now() - n('rdb_last_save_time') * 1000 : null;
	const link = role === 'replica' ? (i.master_link_status === 'up' ? 'in sync' : 'link is down') : n('connected_slaves') ? count(n('connected_slaves')) + ' replicas' : 'no replicas';
	const keys = Object.entries(i).filter(([k]) => /^db\d+$/.test(k)).reduce((sum, [, v]) => sum + Number(/keys=(\d+)/.exec(v)?.[1] || 0), 0);
	const list = [
		['Up for', duration(n('uptime_in_seconds') * 1000), i.redis_mode && 'mode ' + i.redis_mode],
		['Keys', count(keys), n('expired_keys') ? count(n('expired_keys')) + ' expired' : ''],
		['Memory', bytes(n('used_memory')), max ? 'of ' + bytes(max) : 'peak ' + bytes(n('used_memory_peak')), max && n('used_memory') > max * 0.9 ? 'bad' : ''],
		['Clients', count(n('connected_clients')), n('blocked_clients') ? count(n('blocked_clients')) + ' blocked' : ''],
		['Hit rate', n('keyspace_hits') + n('keyspace_misses') ? ((100 * n('keyspace_hits')) / (n('keyspace_hits') + n('keyspace_misses'))).toFixed(1) + ' %' : '–', 'since the start'],
		['Last save', since === null ? 'none' : duration(Math.max(0, since)) + ' ago', i.rdb_last_bgsave_status === 'ok' ? count(n('rdb_changes_since_last_save')) + ' changes since' : 'the last one failed', i.rdb_last_bgsave_status && i.rdb_last_bgsave_status !== 'ok' ? 'bad' : ''],
		['Replication', role, link, role === 'replica' && i.master_link_status !== 'up' ? 'bad' : ''],
	];
	fill($('#facts'), list.map(([name, value, note, state]) => h('div', { role: 'listitem', class: state || null }, h('small', {}, name), h('b', {}, value), h('small', {}, note || ' '))),
		h('div', { role: 'listitem' }, h('small', {}, 'What takes memory'), button('Measure keys', () => go('keys', { measure: 1 }), { class: 'link' })));
}

function slowLog(list) {
	fill($('#slow'), list.length ? table(['Time', 'Took', 'Command', 'Client'], list.map(([, t, us, args, client, name]) => h('tr', {}, h('td', { class: 'n muted' }, stamp(t * 1000)), h('td', { class: 'n' }, micros(us)),
		h('td', { class: 'value' }, args.slice(0, 20).map((a) => text(a, 60)).join(' ')), h('td', { class: 'muted' }, text(name || client, 60)))), 'Slow commands') : h('p', { class: 'muted' }, 'None. The parameter slowlog-log-slower-than sets the limit.'));
}

const stamp = (ms) => (Date.now() - ms > 86400000 ? day(ms) + ' ' : '') + clock(ms);
