// The parameters: their values, what the documents say, and which differ from the default.

import { button, debounce, fill, h } from './dom.js';
import { run } from './api.js';
import { count, show } from './text.js';
import { change } from './dialog.js';
import { failed } from './values.js';

const changed = (p) => p.value !== p.default;

let wanted = '', only = false;

export function parameters(box) {
	let list = [];
	const out = h('div', { class: 'parameters' }), note = h('span', { class: 'muted' });
	const filter = h('input', { type: 'search', 'aria-label': 'Filter', placeholder: 'Filter: a name, or a word of the text', value: wanted, autocomplete: 'off', spellcheck: 'false', oninput: debounce(() => {
		wanted = filter.value;
		draw();
	}, 100) });
	const differ = h('input', { type: 'checkbox', checked: only, onchange: () => {
		only = differ.checked;
		draw();
	} });
	const set = async (p) => {
		const field = p.values ? { type: 'select', options: p.values.map((v) => [v, v]) } : {};
		if (await change({ title: p.name, note: p.doc + (p.accepts ? ' Accepts ' + p.accepts + '.' : ''), fields: [{ name: 'v', label: 'Value', value: p.value, hint: 'The default is ' + (p.default || 'empty') + '. It is lost at the next start unless CONFIG REWRITE writes it.', ...field }], build: ({ v }) => (v === p.value ? [] : ['CONFIG', 'SET', p.name, v]) })) read();
	};
	const draw = () => {
		const words = wanted.toLowerCase(), differing = list.filter(changed).length;
		// Those without an effect are shown when they are looked for, or set.
		const shown = list.filter((p) => (only ? changed(p) : words || !p.noeffect || changed(p)) && (!words || (p.name + ' ' + p.doc).toLowerCase().includes(words)));
		note.textContent = `${count(shown.length)} of ${count(list.length)}, ${count(differing)} differ from the default`;
		fill(out, shown.map((p) => h('div', { class: 'parameter' + (changed(p) ? ' changed' : ''), 'data-name': p.name }, h('div', {}, h('code', {}, p.name), p.doc && h('small', {}, p.doc)),
			h('div', { class: 'mono' }, p.value === '' ? h('span', { class: 'muted' }, 'empty') : show(p.value, 300), changed(p) && h('small', {}, 'default: ' + (p.default || 'empty'))),
			p.fixed ? h('small', {}, 'at the start') : button('Set …', () => set(p), { class: 'small', 'aria-label': 'Set ' + p.name }))));
	};
	const read = async () => {
		try {
			const response = await fetch('parameters'), facts = await response.json();
			if (!response.ok) throw new Error(facts.error);
			const values = new Map(await run('CONFIG', 'GET', '*'));
			const hidden = facts.filter((p) => !values.has(p.name)).map((p) => p.name); // * leaves them out
			if (hidden.length) for (const [name, value] of await run('CONFIG', 'GET', ...hidden)) values.set(name, value);
			const known = new Set(facts.map((p) => p.name));
			list = [...facts.filter((p) => values.has(p.name)).map((p) => ({ ...p, value: values.get(p.name) })), ...[...values].filter(([name]) => !known.has(name)).map(([name, value]) => ({ name, value, default: value, doc: '' }))];
			list.sort((a, b) => (a.name < b.name ? -1 : 1));
			draw();
		} catch (e) {
			failed(out)(e);
		}
	};
	fill(box, h('div', { class: 'row wrap' }, filter, h('label', { class: 'check' }, differ, ' that differ from the default'), note), out);
	read();
	return () => {};
}
