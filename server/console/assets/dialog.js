// The dialog in which each change is shown as a command before it runs.

import { $, button, fill, h, say } from './dom.js';
import { Bin, commandLine, count, escapes, plainText, show, size, unescape } from './text.js';
import { run, pipeline, transact, CommandError } from './api.js';

const editBytes = 100000;

// change asks for the values of fields, shows the commands that build makes of them, and runs these when the
// user agrees. It resolves to true when they ran. build returns an array of arguments, or several of them; an empty one
// is no change. conditions, or the conditions that it returns for the values, are those of transact: what the user has
// seen. refused returns why a reply means that nothing was done, or nothing.
export function change({ title, note, fields = [], build, conditions = [], refused, danger, verb = 'Run' }) {
	const dialog = $('#dialog');
	return new Promise((resolve) => {
		let ran = false;
		const leave = () => {
			dialog.close();
			resolve(ran); // its event close may come when the next dialog is open
		};
		const inputs = {};
		const line = h('pre', { class: 'command', 'aria-label': 'Command' });
		const problem = h('p', { class: 'error', role: 'alert' });
		const values = () => Object.fromEntries(Object.entries(inputs).map(([name, read]) => [name, read()]));
		const list = () => {
			const built = build(values());
			return Array.isArray(built[0]) || !built.length ? built : [built];
		};
		const seen = () => (typeof conditions === 'function' ? conditions(values()) : conditions);
		const preview = () => {
			try {
				const commands = list();
				line.textContent = commandLines(commands) || 'Nothing is changed.';
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
			e.addEventListener('input', preview);
			let hint = f.hint;
			if (f.type === 'checkbox') e.checked = !!f.value;
			else if (f.value !== undefined) hint = hold(e, f.value) || hint;
			inputs[f.name] = e.bytes || (() => (e.type === 'checkbox' ? e.checked : e.value));
			return h('div', { class: 'field' }, h('label', { for: 'd-' + f.name }, f.label), e, hint && h('small', {}, hint));
		});
		const submit = h('button', { type: 'submit', class: danger ? 'danger' : 'primary' }, verb);
		const form = h('form', { method: 'dialog', onsubmit: async (e) => {
			e.preventDefault();
			submit.disabled = true;
			try {
				const commands = list(), when = seen();
				if (commands.length) {
					const replies = when.length ? await transact(when, commands) : commands.length === 1 ? [await run(...commands[0])] : await pipeline(commands);
					const bad = replies.find((r) => r instanceof CommandError) || replies.map((r) => refused?.(r)).find((r) => r);
					if (bad) throw bad instanceof Error ? bad : new Error(bad);
					ran = true;
				}
				say(ran ? 'Done: ' + line.textContent.slice(0, 200) : 'Nothing is changed.');
				leave();
			} catch (err) {
				problem.textContent = err.message;
			}
			submit.disabled = false;
		} }, h('h2', { id: 'dialog-title' }, title), note && h('p', {}, note), rows, line,
		(typeof conditions === 'function' || conditions.length > 0) && h('small', {}, 'It runs only while the server has what is shown here.'), problem,
		h('div', { class: 'actions' }, button('Cancel', leave), submit));
		fill(dialog, form);
		dialog.classList.toggle('dangerous', !!danger);
		dialog.onclose = () => dialog.open || resolve(ran);
		preview();
		dialog.showModal();
		(form.querySelector('.field :is(input, select, textarea)') || (danger ? form.querySelector('.actions button') : submit)).focus();
	});
}

// commandLines returns commands as lines: of many, and of many arguments, the first ones.
export function commandLines(commands) {
	const most = 200, more = (n, what) => (n > 0 ? ` … and ${count(n)} more ${what}` : '');
	return commands.slice(0, most).map((args) => commandLine(args.slice(0, most), 2000) + more(args.length - most, 'arguments')).join('\n') + (commands.length > most ? '\n' : '') + more(commands.length - most, 'commands');
}

// hold puts a byte string into a text field, and adds the method bytes to the field, which returns that byte string until
// it is edited. What the field would not hold is shown with escapes: hold returns a sentence that says so.
function hold(e, v) {
	if (size(v) > editBytes) {
		e.value = show(v, 2000);
		e.readOnly = true;
		e.bytes = () => v;
		return `Longer than ${count(editBytes)} bytes: the prompt can change it.`;
	}
	e.value = v instanceof Bin ? '' : v;
	const plain = e.value === v && plainText(v);
	if (!plain) e.value = e.tagName === 'INPUT' ? escapes(v).replaceAll('\n', '\\n') : escapes(v);
	const shown = e.value;
	e.bytes = () => (e.value === shown ? v : plain ? e.value : unescape(e.value));
	return plain ? '' : 'With escapes: \\r, \\n, \\t, \\\\, \\x00 for a byte, \\u200b for a character.';
}

// tell shows a text.
export function tell(title, text) {
	const dialog = $('#dialog');
	dialog.classList.remove('dangerous');
	fill(dialog, h('h2', { id: 'dialog-title' }, title), h('p', {}, text), h('div', { class: 'actions' }, button('Close', () => dialog.close())));
	dialog.onclose = null;
	dialog.showModal();
}

// confirm asks before commands run elsewhere. It resolves to true or false.
export function confirm(title, note, commands, verb = 'Run') {
	const dialog = $('#dialog');
	return new Promise((resolve) => {
		let agreed = false;
		const no = button('Cancel', () => dialog.close());
		fill(dialog, h('form', { method: 'dialog' }, h('h2', { id: 'dialog-title' }, title), h('p', {}, note),
			h('pre', { class: 'command' }, commandLines(commands)),
			h('div', { class: 'actions' }, no, button(verb, () => { agreed = true; dialog.close(); }, { class: 'danger' }))));
		dialog.classList.add('dangerous');
		dialog.onclose = () => resolve(agreed);
		dialog.showModal();
		no.focus();
	});
}
