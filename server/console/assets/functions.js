// Function libraries with their source, and a form that runs a function or a script.

import { button, fill, h } from './dom.js';
import { CommandError, ok, pairs, pipeline, typed } from './api.js';
import { commandLine, multiline, show, split } from './text.js';
import { change } from './dialog.js';
import { failed } from './values.js';
import { tree } from './prompt.js';

const example = '#!lua name=mylib\nredis.register_function(\'hello\', function(keys, args) return \'hello \' .. args[1] end)';

export function functions(box) {
	const out = h('div'), note = h('p', { class: 'muted' }), line = h('pre', { class: 'command', 'aria-label': 'Command' }), reply = h('div', { class: 'reply', hidden: true });
	const kind = h('select', { id: 'call-kind' }, ['FCALL', 'FCALL_RO', 'EVAL', 'EVAL_RO', 'EVALSHA'].map((name) => h('option', {}, name)));
	const what = h('textarea', { id: 'call-what', rows: 1, spellcheck: 'false' });
	const keys = h('input', { id: 'call-keys', placeholder: 'key1 key2', autocomplete: 'off', spellcheck: 'false' }), args = h('input', { id: 'call-args', placeholder: 'one "two words"', autocomplete: 'off', spellcheck: 'false' });
	const command = () => {
		const names = split(keys.value);
		return [kind.value, what.value.trim(), names.length, ...names, ...split(args.value)];
	};
	const preview = () => {
		what.rows = Math.min(12, what.value.split('\n').length);
		try {
			line.textContent = what.value.trim() ? commandLine(command(), 2000) : '';
		} catch (e) {
			line.textContent = e.message;
		}
	};
	for (const field of [kind, what, keys, args]) field.addEventListener('input', preview);
	const call = async (e) => {
		e.preventDefault();
		if (!what.value.trim()) return what.focus();
		reply.hidden = false;
		try {
			fill(reply, tree(await typed(command())));
		} catch (err) {
			fill(reply, h('p', { class: 'error' }, err.message));
		}
	};
	const load = async (library) => {
		const done = await change({ title: library ? 'Replace ' + show(library.name, 100) : 'Load a library', fields: [{ name: 'code', label: 'Source', type: 'area', value: library ? library.code : example }], verb: 'Load',
			build: ({ code }) => (library ? code === library.code ? [] : ['FUNCTION', 'LOAD', 'REPLACE', code] : ['FUNCTION', 'LOAD', code]) });
		if (done) read();
	};
	const remove = async (library) => {
		if (await change({ title: 'Delete the library ' + show(library.name, 100), note: 'With its functions.', danger: true, verb: 'Delete', build: () => ['FUNCTION', 'DELETE', library.name] })) read();
	};
	const choose = (f) => {
		kind.value = f.flags.includes('no-writes') ? 'FCALL_RO' : 'FCALL';
		what.value = f.name;
		preview();
		keys.focus();
	};
	const read = async () => {
		try {
			const [list, info] = await pipeline([['FUNCTION', 'LIST', 'WITHCODE'], ['INFO', 'memory']]);
			if (list instanceof CommandError) throw list;
			const libraries = list.map((one) => Object.fromEntries(pairs(one))).map((l) => ({ name: l.library_name, code: l.library_code, functions: l.functions.map((f) => Object.fromEntries(pairs(f))) }));
			fill(out, libraries.length ? libraries.map((l) => h('div', { class: 'card library' }, h('div', { class: 'cardhead' }, h('h2', { class: 'mono' }, show(l.name, 100)), h('span', {}, button('Replace …', () => load(l), { class: 'small' }), ' ', button('Delete …', () => remove(l), { class: 'small' }))),
				h('ul', { class: 'plain' }, l.functions.map((f) => h('li', {}, h('code', {}, show(f.name, 100)), ' ', f.description && h('small', {}, show(f.description, 200) + ' '), f.flags.length > 0 && h('small', {}, f.flags.join(', ') + ' '), button('Run …', () => choose(f), { class: 'small', 'aria-label': 'Run ' + show(f.name, 100) })))),
				h('details', {}, h('summary', {}, 'Source'), h('pre', { class: 'text', tabindex: 0 }, multiline(l.code, 200000))))) : h('p', { class: 'muted' }, 'No function libraries.'));
			const scripts = /number_of_cached_scripts:(\d+)/.exec(ok(info, ''))?.[1];
			note.textContent = scripts ? `${scripts} scripts of EVAL and SCRIPT LOAD are cached.` : '';
		} catch (e) {
			failed(out)(e);
		}
	};
	const field = (label, e) => h('div', { class: 'field' }, h('label', { for: e.id }, label), e);
	fill(box, h('div', { class: 'row wrap' }, button('Load a library …', () => load())), out, note,
		h('form', { class: 'card', id: 'call', onsubmit: call }, h('h2', {}, 'Run a function or a script'), h('div', { class: 'callfields' }, field('Command', kind), field('Function, script or SHA1', what), field('Keys', keys), field('Arguments', args)), line, h('div', { class: 'row' }, h('button', { type: 'submit', class: 'primary' }, 'Run')), reply));
	read();
	return () => {};
}
