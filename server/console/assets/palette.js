// The palette: one field that goes to a view, to a key, or to the prompt with a command; and the list of keyboard keys.

import { $, button, debounce, fill, h } from './dom.js';
import { run } from './api.js';
import { id, show } from './text.js';
import { parts } from './server.js';

const maxKeys = 12, maxScans = 10;
let go, items = [], at = 0, keys = [], asked = 0;

export function mount(goTo) {
	go = goTo;
	const dialog = $('#palette'), text = $('#palette-text');
	text.addEventListener('input', () => {
		keys = [];
		at = 0;
		draw();
		find();
	});
	text.addEventListener('keydown', (e) => {
		const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
		if (step && items.length) {
			e.preventDefault();
			at = (at + step + items.length) % items.length;
			mark();
		} else if (e.key === 'Enter' && items.length) {
			e.preventDefault();
			take(items[at]);
		}
	});
	dialog.addEventListener('click', (e) => e.target === dialog && dialog.close());
}

export function open() {
	$('#palette-text').value = '';
	keys = [];
	at = 0;
	draw();
	$('#palette').showModal();
}

// places are the views, and the parts of the view of the server.
const places = () => [...document.querySelectorAll('nav a')].map((a) => [a.textContent, 'View', () => go(a.dataset.view)])
	.concat(Object.entries(parts).map(([part, [label]]) => [label, 'Server', () => go('server', { part })]), [['Keyboard', 'Help', help]]);

function draw() {
	const text = $('#palette-text').value.trim(), words = text.toLowerCase();
	items = places().filter(([label, group]) => (group + ' ' + label).toLowerCase().includes(words));
	items.push(...keys.map((key) => [show(key, 100), 'Key', () => go('keys', { key })]));
	if (text) {
		if (!keys.some((key) => id(key) === id(text))) items.push([show(text, 100), 'Open key', () => go('keys', { key: text })]);
		items.push([show(text, 100), 'Prompt', () => go('prompt', { line: text })]);
	}
	fill($('#palette-list'), items.map((item, i) => h('li', { role: 'option', id: 'p' + i, onclick: () => take(item) }, h('small', {}, item[1]), h('span', {}, item[0]))));
	mark();
}

function mark() {
	at = Math.min(at, items.length - 1);
	[...$('#palette-list').children].forEach((li, i) => li.setAttribute('aria-selected', i === at));
	$('#palette-text').setAttribute('aria-activedescendant', 'p' + at);
	$('#palette-list').children[at]?.scrollIntoView({ block: 'nearest' });
}

function take([, , f]) {
	$('#palette').close();
	f();
}

// find looks for keys with the text in their names, in a part of the keyspace that is read soon.
const find = debounce(async () => {
	const text = $('#palette-text').value.trim(), now = ++asked, found = new Map();
	if (!text) return;
	try {
		let cursor = '0';
		for (let i = 0; i < maxScans && found.size < maxKeys; i++) {
			const [next, names] = await run('SCAN', cursor, 'MATCH', '*' + text.replace(/[\\*?[\]]/g, '\\$&') + '*', 'COUNT', 1000);
			if (now !== asked) return;
			for (const key of names) found.set(id(key), key);
			cursor = next;
			if (cursor === '0') break;
		}
	} catch { /* a user without SCAN opens keys by their names */ }
	keys = [...found.values()].sort((a, b) => (id(a) < id(b) ? -1 : 1)).slice(0, maxKeys);
	draw();
}, 120);

// help lists the keys of the keyboard.
export function help() {
	const dialog = $('#dialog');
	const rows = [['Ctrl K', 'go to a view, a key or the prompt'], ['1 … 5', 'the views'], ['/', 'search keys, elsewhere the prompt'], ['?', 'this list'], ['Tab', 'at the prompt: completes a command'], ['↑ ↓', 'at the prompt: earlier lines; in lists and tabs: the next one'], ['Shift Enter', 'at the prompt: another line'], ['Esc', 'closes a dialog']];
	dialog.classList.remove('dangerous');
	fill(dialog, h('h2', { id: 'dialog-title' }, 'Keyboard'), h('dl', { class: 'shortcuts' }, rows.map(([key, what]) => [h('dt', {}, h('kbd', {}, key)), h('dd', {}, what)])), h('div', { class: 'actions' }, button('Close', () => dialog.close())));
	dialog.onclose = null;
	dialog.showModal();
}
