// The clients of the server: CLIENT LIST as a table, which sorts, filters and ends connections.

import { $, button, debounce, fill, h, scrolls } from './dom.js';
import { every, run, stringField } from './api.js';
import { bytes, count, duration, show } from './text.js';
import { change } from './dialog.js';
import { failed, tools } from './values.js';

const rows = 200;
const flagNames = { b: 'waits', M: 'replica of', S: 'replica', O: 'monitors', P: 'subscribed', x: 'in MULTI', t: 'tracked', U: 'unix socket', r: 'reads only', A: 'closing', c: 'closing', e: 'not evicted' };

// parse returns the clients of a reply of CLIENT LIST, whose values have no spaces.
const parse = (text) => text.split('\n').filter(Boolean).map((line) => Object.fromEntries(line.split(' ').map((field) => {
	const at = field.indexOf('=');
	return [field.slice(0, at), field.slice(at + 1)];
})));

const number = (name) => (c) => Number(c[name]) || 0;
const text = (name) => (c) => c[name] || '';
// The columns: heading, the value that sorts, the cell.
const columns = [
	['ID', number('id'), (c) => h('td', { class: 'n' }, c.id)],
	['Address', text('addr'), (c) => h('td', { class: 'mono nowrap' }, show(c.addr, 60), c.name && h('small', {}, ' ' + show(c.name, 40)))],
	['User', text('user'), (c) => h('td', {}, show(c.user, 40))],
	['db', number('db'), (c) => h('td', { class: 'n' }, c.db)],
	['Age', number('age'), (c) => h('td', { class: 'n' }, duration(c.age * 1000))],
	['Idle', number('idle'), (c) => h('td', { class: 'n' }, duration(c.idle * 1000))],
	['Last command', text('cmd'), (c) => h('td', { class: 'mono' }, c.cmd.replace('|', ' '))],
	['State', text('flags'), (c) => h('td', {}, state(c))],
	['Memory', number('tot-mem'), (c) => h('td', { class: 'n' }, bytes(number('tot-mem')(c)))],
	['In', number('tot-net-in'), (c) => h('td', { class: 'n' }, bytes(number('tot-net-in')(c)))],
	['Out', number('tot-net-out'), (c) => h('td', { class: 'n' }, bytes(number('tot-net-out')(c)))],
];

// state says what the flags mean. Of a client that waits, what for.
function state(c) {
	const names = [...c.flags].map((f) => flagNames[f]).filter(Boolean);
	if (c.keys?.length) names[names.indexOf('waits')] = 'waits for ' + c.keys.map((key) => show(key, 60)).join(', ');
	const subscriptions = ['sub', 'psub', 'ssub'].reduce((n, f) => n + number(f)(c), 0);
	if (subscriptions) names.push('channels: ' + count(subscriptions));
	if (number('watch')(c)) names.push('keys watched: ' + c.watch);
	if (number('omem')(c)) names.push(bytes(number('omem')(c)) + ' not taken yet');
	return names.join(', ');
}

let sorted = 'ID', down = false, wanted = '';

export function clients(box) {
	let list = [];
	const out = h('div'), note = h('span', { class: 'muted' });
	const filter = h('input', { type: 'search', 'aria-label': 'Filter', placeholder: 'Filter: address, name, user, command', value: wanted, autocomplete: 'off', spellcheck: 'false', oninput: debounce((e) => {
		wanted = filter.value;
		draw();
	}, 100) });
	const blocked = h('input', { type: 'checkbox', onchange: () => draw() });
	const draw = () => {
		const [, key] = columns.find(([name]) => name === sorted), words = wanted.toLowerCase();
		const shown = list.filter((c) => (!blocked.checked || c.flags.includes('b')) && (!words || [c.addr, c.name, c.user, c.cmd, c.id].join(' ').toLowerCase().includes(words)));
		shown.sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : a.id - b.id) * (down ? -1 : 1));
		note.textContent = `${count(list.length)} clients` + (shown.length > rows ? `, the first ${rows} of ${count(shown.length)} are shown` : shown.length < list.length ? `, ${count(shown.length)} are shown` : '');
		const focused = document.activeElement?.dataset.focus;
		const head = columns.map(([name, value]) => h('th', { class: typeof value({ flags: '' }) === 'number' ? 'n' : null, 'aria-sort': name === sorted ? (down ? 'descending' : 'ascending') : null }, button(name + (name === sorted ? (down ? ' ↓' : ' ↑') : ''), () => {
			down = sorted === name ? !down : typeof value({ flags: '' }) === 'number' && name !== 'ID';
			sorted = name;
			draw();
		}, { class: 'sort', 'data-focus': 'sort ' + name })));
		fill(out, scrolls('Clients', h('table', { class: 'clients', 'aria-label': 'Clients' }, h('thead', {}, h('tr', {}, head, h('th', {}, h('span', { class: 'visually-hidden' }, 'Actions')))),
			h('tbody', {}, shown.slice(0, rows).map((c) => {
				const row = tools(['Kill …', () => kill(c), 'Kill client ' + c.id]);
				row.firstChild.dataset.focus = c.id;
				return h('tr', { 'data-id': c.id }, columns.map(([, , cell]) => cell(c)), row);
			})))));
		if (focused) $(`[data-focus="${focused}"]`, out)?.focus({ preventScroll: true });
	};
	const read = async () => {
		try {
			const [text, keys] = await Promise.all([run('CLIENT', 'LIST'), fetch('blocked').then((r) => (r.ok ? r.json() : {}))]);
			list = parse(text);
			for (const c of list) c.keys = keys[c.id]?.map(stringField);
			draw();
		} catch (e) {
			if (!list.length) failed(out)(e);
		}
	};
	const kill = async (c) => {
		if (await change({ title: 'End the connection of client ' + c.id, note: `${show(c.addr, 100)} ${show(c.name, 100)}, user ${show(c.user, 100)}`, danger: true, verb: 'Kill', build: () => ['CLIENT', 'KILL', 'ID', c.id], refused: (n) => n === 0 && 'The client has gone.' })) read();
	};
	fill(box, h('div', { class: 'row wrap' }, filter, h('label', { class: 'check' }, blocked, ' that wait'), note), out);
	return every(read, 2000);
}
