// A map of the keys: what memory the folders take, and when keys expire, both of a sample that SCAN returns.

import { button, fill, h } from './dom.js';
import { CommandError, ok, pipeline, run } from './api.js';
import { Bin, brief, bytes, count, show } from './text.js';

// maxSample bounds the keys that are read, and maxTiles the folders that have a tile.
const maxSample = 20000, maxTiles = 40;

// spans are the bars of the histogram: the time to live of a key is below the number of milliseconds.
const spans = [[6e4, '1m'], [6e5, '10m'], [36e5, '1h'], [216e5, '6h'], [864e5, '1d'], [6048e5, '7d'], [2592e6, '30d'], [Infinity, 'later'], [null, 'never']];

// layout places areas in a rectangle, as squarified treemaps do (Bruls, Huizing and van Wijk, 2000): rows along the shorter
// side, each as long as that makes its tiles more like squares. sizes are in descending order.
export function layout(sizes, x, y, w, h) {
	const out = [], total = sizes.reduce((a, b) => a + b, 0), scale = total ? (w * h) / total : 0;
	for (let i = 0; i < sizes.length; ) {
		const side = Math.max(1e-9, Math.min(w, h));
		let sum = 0, n = 0, worst = Infinity;
		for (; i + n < sizes.length; n++) {
			const next = sum + sizes[i + n] * scale, ratio = Math.max((side * side * sizes[i] * scale) / (next * next), (next * next) / (side * side * Math.max(1e-9, sizes[i + n] * scale)));
			if (ratio > worst) break;
			sum = next;
			worst = ratio;
		}
		const wide = sum / side;
		for (let at = 0, k = 0; k < n; k++) {
			const part = sum ? (sizes[i + k] * scale) / wide : 0;
			out.push(w >= h ? { x, y: y + at, w: wide, h: part } : { x: x + at, y, w: part, h: wide });
			at += part;
		}
		if (w >= h) [x, w] = [x + wide, w - wide];
		else [y, h] = [y + wide, h - wide];
		i += n;
	}
	return out;
}

// openMap reads a sample and shows it. It returns a function that stops.
export function openMap(box, { go, search, back }) {
	const abort = new AbortController(), sample = [];
	let path = '', total = 0, examined = 0, whole = false;
	const status = h('p', { class: 'muted', role: 'status' }), tiles = h('div', { class: 'treemap' }), crumbs = h('div', { class: 'pager' }), ends = h('div');
	fill(box, button('‹ Keys', back, { class: 'back small' }), h('h2', {}, 'Memory by folder'), status, crumbs, tiles, h('h2', {}, 'Time until keys expire'), ends);

	// groups returns the folders and keys below the path, with the memory and the number of their keys in the sample.
	const groups = () => {
		const found = new Map();
		for (const { key, memory } of sample) {
			const name = key instanceof Bin ? show(key, 60) : key;
			if (!name.startsWith(path)) continue;
			const i = name.indexOf(':', path.length), folder = i >= 0 && i < name.length - 1, label = folder ? name.slice(0, i + 1) : name;
			const one = found.get(label) || { label, key, folder, memory: 0, n: 0 };
			one.memory += memory;
			one.n++;
			found.set(label, one);
		}
		const list = [...found.values()].sort((a, b) => b.memory - a.memory);
		// What has no tile of its own is one tile, and the keys beside folders are one, too.
		const shown = list.slice(0, maxTiles), rest = list.slice(maxTiles);
		if (rest.length) shown.push({ label: '', memory: rest.reduce((sum, o) => sum + o.memory, 0), n: rest.reduce((sum, o) => sum + o.n, 0), others: rest.length });
		return shown.sort((a, b) => b.memory - a.memory);
	};
	const draw = () => {
		const scale = whole || !sample.length ? 1 : Math.max(1, total / sample.length), about = whole ? '' : 'about ';
		status.textContent = `${whole ? 'All' : 'A sample of'} ${count(sample.length)}${whole ? '' : ` of ${count(total)}`} keys: ${about}${bytes(Math.round(sample.reduce((n, o) => n + o.memory, 0) * scale))}.`;
		fill(crumbs, ['', ...path.match(/[^:]*:/g) || []].map((part, i, all) => button(part || 'All keys', () => {
			path = all.slice(1, i + 1).join('');
			draw();
		}, { class: 'link', disabled: i === all.length - 1 })), path && button('Search ' + show(path, 60) + '*', () => search(path), { class: 'small' }));
		const list = groups(), sum = list.reduce((n, o) => n + o.memory, 0);
		const boxes = layout(list.map((o) => o.memory), 0, 0, 100, 56);
		fill(tiles, list.length ? list.map((o, i) => {
			const name = o.others ? `${count(o.others)} others` : show(o.label.slice(path.length) || o.label, 60), text = `${about}${bytes(Math.round(o.memory * scale))}`;
			const tile = h(o.others ? 'div' : 'button', { type: o.others ? null : 'button', class: 'tile c' + (i % 5 + 1), title: `${name}\n${text}, ${count(Math.round(o.n * scale))} ${o.n === 1 ? 'key' : 'keys'}, ${((100 * o.memory) / sum).toFixed(1)} %`, onclick: !o.others && (() => {
				if (!o.folder) return go('keys', { key: o.key });
				path = o.label;
				draw();
			}) }, h('b', {}, name), h('span', {}, text));
			const { x, y, w, h: tall } = boxes[i];
			tile.classList.toggle('tiny', (w * tiles.clientWidth) / 100 < 34 || (tall * tiles.clientHeight) / 56 < 20);
			Object.assign(tile.style, { left: x + '%', top: (y / 56) * 100 + '%', width: w + '%', height: (tall / 56) * 100 + '%' });
			return tile;
		}) : h('p', { class: 'empty' }, 'There are no keys.'));
		const below = sample.filter(({ key }) => !path || (!(key instanceof Bin) && key.startsWith(path)));
		const bars = spans.map(([ms, label], i) => ({ label, n: below.filter(({ ttl }) => (ms === null ? ttl < 0 : ttl >= 0 && ttl < ms && (i === 0 || ttl >= spans[i - 1][0]))).length }));
		fill(ends, histogram(bars.map(({ label, n }) => ({ label, n: Math.round(n * scale) })), about));
	};
	(async () => {
		try {
			total = await run('DBSIZE').catch(() => 0);
			let cursor = '0';
			do {
				const [reply] = await pipeline([['SCAN', cursor, 'COUNT', 500]], abort.signal);
				if (reply instanceof CommandError) throw reply;
				const facts = await pipeline(reply[1].flatMap((k) => [['MEMORY', 'USAGE', k], ['PTTL', k]]), abort.signal);
				const bad = facts.find((r) => r instanceof CommandError);
				if (bad) throw bad;
				reply[1].forEach((key, i) => ok(facts[2 * i], null) !== null && sample.push({ key, memory: facts[2 * i], ttl: facts[2 * i + 1] }));
				cursor = reply[0];
				examined += reply[1].length;
				whole = cursor === '0';
				total = Math.max(total, sample.length);
				draw();
			} while (!whole && examined < maxSample && !abort.signal.aborted);
			if (!sample.length) draw();
		} catch (e) {
			if (e.name !== 'AbortError') fill(status, h('span', { class: 'error' }, e.message));
		}
	})();
	return () => abort.abort();
}

// histogram draws bars with their numbers above and their labels below.
function histogram(bars, about) {
	const high = Math.max(1, ...bars.map((b) => b.n));
	return h('div', { class: 'histogram', role: 'img', 'aria-label': bars.map(({ label, n }, i) => `${i < 7 ? 'below ' : ''}${label}: ${about}${count(n)}`).join(', ') }, bars.map(({ label, n }, i) => {
		const bar = h('i', { class: i === bars.length - 1 ? 'never' : null });
		bar.style.height = (n ? Math.max(1, (100 * n) / high) : 0) + '%';
		return h('div', { title: `${count(n)} keys` }, h('b', {}, brief(n)), h('div', {}, bar), h('span', {}, (i < 7 ? '<' : '') + label));
	}));
}
