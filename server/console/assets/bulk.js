// Many keys at once: they are counted first, and then deleted or given a time to live in batches, which the user can stop.

import { $, button, fill, h, say } from './dom.js';
import { CommandError, pipeline } from './api.js';
import { Bin, count, id, show } from './text.js';
import { commandLines } from './dialog.js';

// maxKeys bounds the keys of one run, and batch those of a request.
const maxKeys = 100000, batch = 500;

// under reports whether a key is below one of the folders.
export const under = (folders, key) => !(key instanceof Bin) && folders.some((f) => key.startsWith(f));

export const escapePattern = (s) => s.replace(/[*?[\]\\]/g, '\\$&');

// collect returns the names of the chosen keys: those of a list, and those that a search finds, all of them or those below
// folders. After maxKeys it says that there are more.
async function collect({ keys, folders, all, match, type }, signal, progress) {
	const found = new Map(keys.map((k) => [id(k), k]));
	if (!all && !folders.length) return { list: [...found.values()], more: false };
	const pattern = match || (!all && folders.length === 1 ? escapePattern(folders[0]) + '*' : '');
	let cursor = '0', examined = 0;
	do {
		const [reply] = await pipeline([['SCAN', cursor, ...(pattern ? ['MATCH', pattern] : []), 'COUNT', 1000, ...(type ? ['TYPE', type] : [])]], signal);
		if (reply instanceof CommandError) throw reply;
		for (const k of reply[1]) {
			if (!all && !under(folders, k)) continue;
			if (found.size >= maxKeys && !found.has(id(k))) return { list: [...found.values()], more: true };
			found.set(id(k), k);
		}
		cursor = reply[0];
		progress(found.size, examined += 1000);
	} while (cursor !== '0');
	return { list: [...found.values()], more: false };
}

const actions = {
	delete: {
		title: 'Delete keys', done: 'deleted', verb: (n) => `Delete ${count(n)} ${n === 1 ? 'key' : 'keys'}`, danger: true,
		note: 'By name: a key that another client makes again meanwhile is deleted, too.',
		commands: (part) => [['UNLINK', ...part]],
	},
	expire: {
		title: 'Time to live of keys', done: 'changed', verb: (n) => `Change ${count(n)} ${n === 1 ? 'key' : 'keys'}`, field: 'Seconds, a time such as @now+1h30m, or nothing for no expiry',
		note: 'Keys that have this name when the command runs.',
		commands: (part, t) => {
			if (t !== '' && !/^\d+$|^@now/.test(t)) throw new Error('Give seconds, a time such as @now+1h30m, or nothing.');
			return part.map((k) => (t === '' ? ['PERSIST', k] : [t[0] === '@' ? 'EXPIREAT' : 'EXPIRE', k, t]));
		},
	},
};

// act counts the keys of a selection, asks, and runs an action on them. It resolves to true if a command ran.
export function act(kind, selection) {
	const dialog = $('#dialog'), { title, done, verb, danger, field, note, commands } = actions[kind], abort = new AbortController();
	return new Promise((resolve) => {
		let ran = false;
		const bar = h('progress', { 'aria-label': 'Progress' }), status = h('p', { role: 'status' }), problem = h('p', { class: 'error', role: 'alert' });
		const body = h('div'), foot = h('div', { class: 'actions' });
		const leave = () => {
			abort.abort();
			resolve(ran);
		};
		const close = () => {
			dialog.close();
			leave(); // its event close may come when the next dialog is open
		};
		dialog.classList.toggle('dangerous', !!danger);
		dialog.onclose = () => dialog.open || leave();
		fill(dialog, h('h2', { id: 'dialog-title' }, title), status, bar, body, problem, foot);
		fill(foot, button('Stop', close));
		dialog.showModal();
		status.textContent = 'Counting …';
		const ask = ({ list, more }) => {
			bar.hidden = true;
			if (!list.length) {
				status.textContent = 'There are no such keys.';
				return fill(foot, button('Close', close));
			}
			status.textContent = `${count(list.length)} ${list.length === 1 ? 'key' : 'keys'}` + (more ? ` are chosen. There are more: this is as many as one run takes.` : ' chosen.') + (list.length > batch ? ` They are sent in ${count(Math.ceil(list.length / batch))} batches of ${batch}.` : '');
			const input = field && h('input', { id: 'd-t', autocomplete: 'off', spellcheck: 'false', oninput: () => preview() });
			const line = h('pre', { class: 'command', 'aria-label': 'Commands' });
			const built = (part) => commands(part, input?.value);
			const preview = () => {
				problem.textContent = line.textContent = '';
				try {
					line.textContent = commandLines(built(list.slice(0, batch)).map((c) => c.map((a) => (typeof a === 'string' && a.length > 200 ? show(a, 200) : a)))) + (list.length > batch ? '\n…' : '');
				} catch (e) {
					problem.textContent = e.message;
				}
			};
			const no = button('Cancel', close);
			fill(body, h('form', { method: 'dialog', id: 'bulk', onsubmit: (e) => {
				e.preventDefault();
				try {
					built(list.slice(0, 1));
				} catch (err) {
					return (problem.textContent = err.message);
				}
				work(list, built);
			} }, field && h('div', { class: 'field' }, h('label', { for: 'd-t' }, field), input), line, h('small', {}, note)));
			fill(foot, no, h('button', { type: 'submit', form: 'bulk', class: danger ? 'danger' : 'primary' }, verb(list.length)));
			preview();
			(input || no).focus();
		};
		const work = async (list, built) => {
			let n = 0, changed = 0, stopped = false;
			fill(body);
			bar.hidden = false;
			bar.max = list.length;
			fill(foot, button('Stop', () => { stopped = true; }));
			const tell = (end) => {
				bar.value = n;
				status.textContent = `${end}${count(n)} of ${count(list.length)}: ${count(changed)} ${done}.`;
			};
			try {
				while (n < list.length && !stopped && !abort.signal.aborted) {
					const part = list.slice(n, n + batch);
					ran = true;
					const replies = await pipeline(built(part));
					const bad = replies.find((r) => r instanceof CommandError);
					changed += replies.reduce((sum, r) => sum + (typeof r === 'number' ? r : 0), 0);
					if (bad) throw bad;
					n += part.length;
					tell('');
				}
				tell(n < list.length ? 'Stopped at ' : '');
			} catch (e) {
				tell('Ended at ');
				problem.textContent = e.message;
			}
			say(status.textContent);
			const end = button('Close', close);
			fill(foot, end);
			end.focus();
		};
		collect(selection, abort.signal, (n, examined) => {
			status.textContent = `Counting … ${count(n)} of ${count(examined)} examined`;
		}).then(ask, (e) => {
			if (e.name === 'AbortError') return;
			bar.hidden = true;
			problem.textContent = e.message;
			fill(foot, button('Close', close));
		});
	});
}
