// Hot keys: those that take most time and most bytes while the server collects them, by HOTKEYS.

import { button, fill, h } from './dom.js';
import { every, pairs, run } from './api.js';
import { bytes, duration, micros, show } from './text.js';
import { change } from './dialog.js';
import { failed, table } from './values.js';

export function hotKeys(box, go) {
	const out = h('div'), actions = h('div', { class: 'row wrap' });
	const act = (title, args, note) => async () => {
		if (await change({ title, note, build: () => args })) read();
	};
	const start = async () => {
		const fields = [{ name: 'seconds', label: 'Seconds', type: 'number', value: '60' }, { name: 'count', label: 'Keys', type: 'number', value: '16', hint: '1 to 64' }, { name: 'sample', label: 'Of so many commands, one is looked at', type: 'number', value: '1' }];
		if (await change({ title: 'Collect hot keys', note: 'It costs some time of each command that is looked at.', fields, verb: 'Start', build: (v) => ['HOTKEYS', 'START', 'METRICS', 2, 'CPU', 'NET', 'COUNT', v.count, 'DURATION', v.seconds, 'SAMPLE', v.sample] })) read();
	};
	const list = (title, reply, unit, all) => h('div', { class: 'card' }, h('h2', {}, title), reply?.length ? table(['Key', title, 'Share'], pairs(reply).map(([key, n]) => h('tr', {}, h('td', { class: 'value' }, button(show(key, 200), () => go('keys', { key }), { class: 'link mono' })), h('td', { class: 'n' }, unit(n)), h('td', { class: 'n' }, all ? ((100 * n) / all).toFixed(1) + ' %' : ''))), title) : h('p', { class: 'muted' }, 'None yet.'));
	const read = async () => {
		try {
			const reply = await run('HOTKEYS', 'GET'), collected = reply && Object.fromEntries(pairs(Array.isArray(reply[0]) && reply.length === 1 ? reply[0] : reply)), active = collected?.['tracking-active'] === 1;
			fill(actions, active ? button('Stop …', act('Stop collecting', ['HOTKEYS', 'STOP'], 'What was collected stays.')) : button('Start …', start), collected && !active && button('Forget …', act('Forget the hot keys', ['HOTKEYS', 'RESET'])),
				h('span', { class: 'muted' }, active ? `Collecting for ${duration(collected['collection-duration-ms'])}.` : collected ? `Collected for ${duration(collected['collection-duration-ms'])}.` : 'Nothing is collected.'));
			fill(out, collected && h('div', { class: 'columns' }, list('Processor time', collected['by-cpu-time-us'], micros, collected['all-commands-all-slots-us'] || collected['all-commands-selected-slots-us']), list('Bytes', collected['by-net-bytes'], bytes, collected['net-bytes-all-commands-all-slots'] || collected['net-bytes-all-commands-selected-slots'])));
		} catch (e) {
			if (!out.firstChild) failed(out)(e);
		}
	};
	fill(box, actions, out);
	return every(read, 2000);
}
