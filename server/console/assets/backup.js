// The data file: when it was saved last, save now, and a copy to keep.

import { button, fill, h } from './dom.js';
import { every, now, run } from './api.js';
import { count, duration, moment, show } from './text.js';
import { change } from './dialog.js';
import { failed } from './values.js';

const fact = (name, value, note, bad) => h('div', { role: 'listitem', class: bad ? 'bad' : null }, h('small', {}, name), h('b', {}, value), h('small', {}, note || '\u00a0'));
export const ago = (seconds) => (seconds > 0 ? duration(seconds * 1000) + ' ago' : 'just now');
const since = (seconds) => (seconds > 0 ? ago(Math.floor(now() / 1000) - seconds) : 'none');

export function backup(box) {
	const facts = h('div', { class: 'facts', role: 'list', 'aria-label': 'Data file and backups' }), problem = h('div');
	const read = async () => {
		try {
			const f = Object.fromEntries((await run('INFO', 'persistence')).split('\r\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]));
			const saved = Number(f.rdb_last_save_time), failing = f.rdb_last_bgsave_status !== 'ok' || f.aof_last_write_status && f.aof_last_write_status !== 'ok';
			const list = [
				fact('Last save', f.rdb_bgsave_in_progress === '1' ? 'now' : since(saved), failing ? 'the last one failed' : saved > 0 ? moment(saved * 1000) : '', failing),
				fact('Not saved yet', count(Number(f.rdb_changes_since_last_save) || 0), 'changes'),
			];
			if (f.backup_last_time !== undefined) {
				const at = Number(f.backup_last_time), bad = f.backup_last_status && f.backup_last_status !== 'ok';
				list.push(fact('Last backup', since(at), bad ? 'the last one failed: ' + show(f.backup_last_status, 200) : at > 0 ? moment(at * 1000) : 'see backup-every', bad),
					fact('Backups kept', f.backups_kept || '0', show(f.backup_last_file || '', 200)));
			}
			fill(facts, list);
			fill(problem);
		} catch (e) {
			failed(problem)(e);
		}
	};
	const save = async () => {
		if (await change({ title: 'Save now', note: 'The changes since the last save are written to the data file while clients go on.', build: () => ['BGSAVE'] })) read();
	};
	fill(box, facts, problem, h('div', { class: 'columns' },
		h('div', { class: 'card' }, h('h2', {}, 'Save'), h('p', { class: 'muted' }, 'To the data file of the server.'), button('Save now …', save)),
		h('form', { class: 'card', method: 'post', action: 'backup', target: '_blank', rel: 'noopener' }, h('h2', {}, 'Download'), h('p', { class: 'muted' }, 'A copy of all databases as of now, which ', h('code', {}, 'zsetd restore'), ' puts back. The server saves first. Its user needs the commands BGSAVE and PSYNC.'), h('button', { type: 'submit' }, 'Download a backup'))));
	return every(read, 2000);
}
