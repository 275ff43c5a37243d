// The dialog in which each change is shown as a command before it runs.

import { $, button, fill, h, say } from './dom.js';
import { commandLine } from './text.js';
import { run, pipeline, CommandError } from './api.js';

// change asks for the values of fields, shows the commands that build makes of them, and runs these when the
// user agrees. It resolves to true when they ran. build returns an array of arguments, or several of them.
export function change({ title, note, fields = [], build, danger, verb = 'Run' }) {
	const dialog = $('#dialog');
	return new Promise((resolve) => {
		let ran = false;
		const inputs = {};
		const line = h('pre', { class: 'command', 'aria-label': 'Command' });
		const problem = h('p', { class: 'error', role: 'alert' });
		const list = () => {
			const values = Object.fromEntries(Object.entries(inputs).map(([name, e]) => [name, e.type === 'checkbox' ? e.checked : e.value]));
			const built = build(values);
			return Array.isArray(built[0]) ? built : [built];
		};
		const preview = () => {
			try {
				line.textContent = list().map((args) => commandLine(args, 2000)).join('\n');
				problem.textContent = '';
			} catch (e) {
				line.textContent = '';
				problem.textContent = e.message;
			}
		};
		const rows = fields.map((f) => {
			const e = f.type === 'select' ? h('select', { id: 'd-' + f.name }, f.options.map(([v, t]) => h('option', { value: v }, t)))
				: f.type === 'area' ? h('textarea', { id: 'd-' + f.name, rows: 5, spellcheck: 'false' })
					: h('input', { id: 'd-' + f.name, type: f.type || 'text', autocomplete: 'off', spellcheck: 'false' });
			if (f.type === 'checkbox') e.checked = !!f.value;
			else if (f.value !== undefined) e.value = f.value;
			e.addEventListener('input', preview);
			inputs[f.name] = e;
			return h('div', { class: 'field' }, h('label', { for: 'd-' + f.name }, f.label), e, f.hint && h('small', {}, f.hint));
		});
		const submit = h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, verb);
		const form = h('form', { method: 'dialog', onsubmit: async (e) => {
			e.preventDefault();
			submit.disabled = true;
			try {
				const replies = list().length === 1 ? [await run(...list()[0])] : await pipeline(list());
				const bad = replies.find((r) => r instanceof CommandError);
				if (bad) throw bad;
				ran = true;
				say('Done: ' + line.textContent.slice(0, 200));
				dialog.close();
			} catch (err) {
				problem.textContent = err.message;
			}
			submit.disabled = false;
		} }, h('h2', { id: 'dialog-title' }, title), note && h('p', {}, note), rows, line, problem,
		h('div', { class: 'actions' }, button('Cancel', () => dialog.close()), submit));
		fill(dialog, form);
		dialog.classList.toggle('dangerous', !!danger);
		dialog.onclose = () => resolve(ran);
		preview();
		dialog.showModal();
		(Object.values(inputs)[0] || (danger ? form.querySelector('.actions button') : submit)).focus();
	});
}

// confirm asks before commands run elsewhere. It resolves to true or false.
export function confirm(title, note, commands, verb = 'Run') {
	const dialog = $('#dialog');
	return new Promise((resolve) => {
		let agreed = false;
		const no = button('Cancel', () => dialog.close());
		fill(dialog, h('form', { method: 'dialog' }, h('h2', { id: 'dialog-title' }, title), h('p', {}, note),
			h('pre', { class: 'command' }, commands.map((args) => commandLine(args, 2000)).join('\n')),
			h('div', { class: 'actions' }, no, button(verb, () => { agreed = true; dialog.close(); }, { class: 'danger' }))));
		dialog.classList.add('dangerous');
		dialog.onclose = () => resolve(agreed);
		dialog.showModal();
		no.focus();
	});
}
