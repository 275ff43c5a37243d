// The keys as a tree. SCAN reads them in the background; the tree keeps at most maxNames names and counts the others.

import { $, VirtualList, button, debounce, fill, h, menu, say, throttle } from './dom.js';
import { pipeline, run, ok, CommandError } from './api.js';
import { Bin, brief, bytes, count, duration, id, show as text } from './text.js';
import { closeKey, openKey } from './key.js';
import { change } from './dialog.js';
import { build } from './transfer.js';
import { act, escapePattern, under } from './bulk.js';
import { openMap } from './memory.js';

const metaAge = 5000, maxNames = 200000, maxFolders = 50000, maxDepth = 12, maxMeta = 5000;

let closeMap = null, mapped = false, choosing = false, everything = false;
let go, list, root, rows = [], depths = [], at = 0, current = null, scan, folders = 0, names = 0;
const opened = new Set(), meta = new Map();
const chosen = { keys: new Set(), folders: new Set() }; // of the mode in which keys have boxes

const folder = (name, path, depth) => ({ name, path, depth, folders: new Map(), keys: new Map(), count: 0, memory: 0, more: 0, sorted: null });

export function mount(section, goTo) {
	go = goTo;
	const narrow = matchMedia('(max-width: 760px)');
	list = new VirtualList($('#tree'), narrow.matches ? 34 : 26, drawRow);
	narrow.addEventListener('change', () => {
		list.height = narrow.matches ? 34 : 26;
		list.set(rows.length);
	});
	$('#tree').addEventListener('scroll', readMeta, { passive: true });
	$('#tree').addEventListener('click', (e) => {
		const item = e.target.closest('.item');
		if (item) (e.target.closest('.box') ? mark : choose)(Number(item.dataset.i));
	});
	$('#tree').addEventListener('keydown', keydown);
	$('#search').addEventListener('submit', (e) => {
		e.preventDefault();
		start();
	});
	$('#type').addEventListener('change', start);
	$('#measure').addEventListener('change', start);
	$('#scan-stop').addEventListener('click', () => (scan?.running ? scan.abort.abort() : start()));
	$('#open-key').addEventListener('submit', (e) => {
		e.preventDefault();
		go('keys', { key: $('#open-name').value });
	});
	$('#new-key').addEventListener('click', create);
	$('#new-key').after(menu('More', [['Select keys …', () => select(true)], ['Memory and deadlines', () => go('keys', { map: 1 })]]));
	$('#tree').before(h('div', { class: 'row selection', id: 'selection', hidden: true }));
	setInterval(follow, 1000);
}

// follow reads the names again when their number has changed, or they are few; not where they are many.
async function follow() {
	if (!document.hidden && document.body.dataset.view === 'keys' && root && $('#tree').offsetParent) {
		list.paint(); // the times to live go on
		readMeta();
	}
	if (document.hidden || document.body.dataset.view !== 'keys' || !scan || scan.running || scan.examined > 20000 || $('#measure').checked) return;
	const mine = scan, n = await run('DBSIZE').catch(() => mine.total);
	if (mine === scan && (n !== mine.total || n <= 500)) start(true);
}

// select begins or ends the mode in which keys and folders have boxes.
function select(on) {
	choosing = on;
	everything = false;
	chosen.keys.clear();
	chosen.folders.clear();
	$('#tree').setAttribute('aria-multiselectable', on);
	selected();
}

// isChosen reports whether a row has a mark, or a folder above it.
function isChosen(row) {
	const name = typeof row === 'string' ? row.slice(1) : row.path;
	return everything || (typeof row === 'string' ? chosen.keys.has(row) : chosen.folders.has(name)) || (row[0] !== 'b' && under([...chosen.folders], name));
}

// mark gives a row a mark, or takes it away.
function mark(i) {
	const row = rows[i];
	at = i;
	if (row.node || everything) return;
	const [set, name] = typeof row === 'string' ? [chosen.keys, row] : [chosen.folders, row.path];
	if (!set.delete(name) && !isChosen(row)) set.add(name);
	selected();
}

// selected shows what is selected, and what can be done with it.
function selected() {
	const bar = $('#selection'), k = chosen.keys.size, f = chosen.folders.size, none = !k && !f && !everything;
	bar.hidden = !choosing;
	const found = pattern() || $('#type').value ? 'All found' : 'All keys';
	fill(bar, h('label', { class: 'check' }, h('input', { type: 'checkbox', checked: everything, onchange: (e) => {
		everything = e.target.checked;
		selected();
	} }), ' ' + found), h('span', { class: 'muted grow', role: 'status' }, everything ? '' : [k && count(k) + (k === 1 ? ' key' : ' keys'), f && count(f) + (f === 1 ? ' folder' : ' folders')].filter(Boolean).join(', ')),
	button('Delete …', () => many('delete'), { disabled: none, class: 'small' }), button('Expire …', () => many('expire'), { disabled: none, class: 'small' }), button('Done', () => select(false), { class: 'small' }));
	list.paint();
}

// many deletes the selected keys, or changes when they expire. A folder has the keys that the search has found below it.
async function many(kind) {
	if (!(await act(kind, { keys: everything ? [] : [...chosen.keys].map(keyOf), folders: everything ? [] : [...chosen.folders], all: everything, match: pattern(), type: $('#type').value }))) return;
	select(false);
	start();
}

export function show(params, moved) {
	if (params.get('measure')) $('#measure').checked = true;
	if (params.get('pattern') !== null) $('#pattern').value = params.get('pattern');
	if (!root || moved || params.get('pattern') !== null || params.get('measure')) start();
	closeMap?.();
	closeMap = null;
	const key = params.has('key64') ? new Bin(params.get('key64')) : params.get('key');
	const map = params.has('map') && key === null;
	$('#keys').classList.toggle('chosen', key !== null || map);
	if (key === null) {
		if (current !== null || mapped) closeKey($('#detail'));
		current = null;
		if ((mapped = map)) closeMap = openMap($('#detail'), { go, back: () => go('keys'), search: (path) => go('keys', { pattern: escapePattern(path) + '*' }) });
		return;
	}
	mapped = false;
	current = key;
	// The folders of the key open, so that it is in sight.
	if (typeof key === 'string') for (let i = key.indexOf(':'); i >= 0; i = key.indexOf(':', i + 1)) opened.add(key.slice(0, i + 1));
	flatten();
	openKey($('#detail'), key, params.get('view'), { go, gone: remove, added: add, back: () => go('keys') });
}

export function hide() {
	closeMap?.();
	closeMap = null;
	closeKey();
}

function pattern() {
	const p = $('#pattern').value;
	return p === '' || /[*?[\\]/.test(p) ? p : '*' + p + '*';
}

// start reads the names. Quietly, the tree stays as it is until all are read.
async function start(quiet) {
	quiet = quiet === true;
	scan?.abort.abort();
	const abort = new AbortController(), match = pattern(), type = $('#type').value, measure = $('#measure').checked;
	const known = new Set(quiet ? namesOf(root) : []), mine = (scan = { running: true, abort, examined: 0, total: 0 }), later = [];
	const clear = () => {
		root = folder('', '', -1);
		folders = names = 0;
		meta.clear();
	};
	if (!quiet) {
		if (choosing) select(true); // a folder is what a search has found below it
		clear();
		at = 0;
		$('#scan-stop').textContent = 'Stop';
	}
	const refresh = throttle(flatten, 400);
	let cursor = '0', found = 0, size = 200, problem = '';
	const status = (done) => {
		$('#scan-progress').hidden = done;
		$('#scan-progress').value = done ? 1 : mine.total ? Math.min(0.99, mine.examined / mine.total) : 0;
		$('#scan-text').textContent = problem || count(found) + (found === 1 ? ' key' : ' keys') + (measure ? ', ' + bytes(root.memory) : '') + (done ? '' : ' …');
	};
	if (!quiet) flatten();
	try {
		mine.total = await run('DBSIZE').catch(() => 0); // the scan goes on for a user who may not ask
		do {
			const begun = performance.now();
			const [reply] = await pipeline([['SCAN', cursor, ...(match ? ['MATCH', match] : []), 'COUNT', size, ...(type ? ['TYPE', type] : [])]], abort.signal);
			if (reply instanceof CommandError) throw reply;
			const keys = reply[1];
			const sizes = measure ? await pipeline(keys.map((k) => ['MEMORY', 'USAGE', k]), abort.signal) : [];
			cursor = reply[0];
			mine.examined += size;
			found += keys.length;
			if (quiet) later.push(...keys);
			else keys.forEach((k, i) => put(k, ok(sizes[i], 0) || 0));
			const took = performance.now() - begun;
			size = Math.round(Math.max(100, Math.min(measure ? 1000 : 4000, size * (took < 40 ? 2 : took > 120 ? 0.5 : 1))));
			if (mine !== scan) return;
			if (quiet) continue;
			status(false);
			refresh();
		} while (cursor !== '0' && !abort.signal.aborted);
	} catch (e) {
		if (e.name !== 'AbortError') problem = e.message;
	}
	if (mine !== scan) return;
	if (quiet && (later.length !== known.size || later.some((k) => !known.has(id(k))))) {
		clear();
		for (const k of later) put(k, 0);
	}
	scan.running = false;
	$('#scan-stop').textContent = 'Reload';
	if (abort.signal.aborted) problem = count(found) + ' keys, stopped';
	status(true);
	flatten();
	if (!quiet) say($('#scan-text').textContent);
}

// namesOf returns the names that the tree has below a folder.
const namesOf = (node) => [...node.keys.keys(), ...[...node.folders.values()].flatMap(namesOf)];

// put adds a key to the tree, and its memory to each folder on the way.
function put(key, memory) {
	let node = root;
	const on = (n) => {
		n.count++;
		n.memory += memory;
		n.sorted = null;
	};
	on(node);
	if (!(key instanceof Bin)) {
		for (let from = 0; node.depth < maxDepth; ) {
			const i = key.indexOf(':', from);
			if (i < 0 || i === key.length - 1) break;
			const name = key.slice(from, i);
			let next = node.folders.get(name);
			if (!next) {
				if (folders >= maxFolders) break;
				folders++;
				next = folder(name, key.slice(0, i + 1), node.depth + 1);
				node.folders.set(name, next);
			}
			node = next;
			on(node);
			from = i + 1;
		}
	}
	const known = id(key);
	if (node.keys.has(known)) return;
	if (names >= maxNames) {
		node.more++;
		return;
	}
	names++;
	node.keys.set(known, memory);
}

const keyOf = (known) => (known[0] === 'b' ? new Bin(known.slice(1)) : known.slice(1));

// sorted returns the rows of a folder: those of its folders, objects, and of its keys, strings.
function sorted(node) {
	if (node.sorted) return node.sorted;
	const f = [...node.folders.values()], k = [...node.keys.keys()];
	if ($('#measure').checked) {
		const memory = (row) => row.memory ?? node.keys.get(row);
		return (node.sorted = [...f, ...k].sort((a, b) => memory(b) - memory(a)));
	}
	const natural = new Intl.Collator('en', { numeric: true }).compare;
	f.sort((a, b) => natural(a.name, b.name));
	if (k.length < 5000) k.sort(natural);
	else if (!scan?.running) k.sort();
	return (node.sorted = [...f, ...k]);
}

function flatten() {
	rows = [];
	depths = [];
	const push = (row, depth) => {
		rows.push(row);
		depths.push(depth);
	};
	const visit = (node) => {
		for (const one of sorted(node)) {
			const row = (one.count === 1 && only(one)) || one; // a folder of one key is the row of that key
			push(row, node.depth + 1);
			if (row.folders && opened.has(row.path)) visit(row);
		}
		if (node.more) push({ node, more: node.more }, node.depth + 1);
	};
	if (root.folders.size === 1 && !root.keys.size) opened.add([...root.folders.values()][0].path);
	visit(root);
	at = Math.min(at, Math.max(0, rows.length - 1));
	list.set(rows.length);
	readMeta();
}

// only returns the key of a folder that has no other.
function only(node) {
	while (!node.keys.size && node.folders.size) [node] = node.folders.values();
	return node.keys.keys().next().value;
}

function drawRow(i) {
	const row = rows[i], depth = depths[i], box = choosing && !row.node ? isChosen(row) : null;
	const item = (attrs, ...kids) => {
		const e = h('div', { class: 'item' + (i === at ? ' at' : ''), role: 'treeitem', id: 'row' + i, 'data-i': i, 'aria-level': depth + 1, 'aria-selected': i === at, 'aria-checked': box === null ? null : String(box), ...attrs }, box !== null && h('span', { class: 'box' + (box ? ' on' : '') }), kids);
		e.style.paddingLeft = 8 + depth * 14 + 'px';
		return e;
	};
	if (typeof row === 'string') {
		const key = keyOf(row), m = meta.get(row) || {};
		const name = key instanceof Bin ? text(key, 80) : text(key.slice(prefixLength(key, depth)), 120);
		return item({ 'aria-current': current !== null && id(current) === row ? 'true' : null },
			h('span', { class: 'twist' }), m.type && h('span', { class: 'type ' + m.type }, m.type), h('span', { class: 'name mono' }, name),
			h('span', { class: 'meta' }, m.ttl > 0 ? h('span', { class: 'ttl', title: 'Time to live' }, duration(Math.max(0, m.ttl - (Date.now() - m.read)))) : '', m.memory ? bytes(m.memory) : ''));
	}
	if (row.node) return item({}, h('span', { class: 'twist' }), h('span', { class: 'name muted' }, `and ${count(row.more)} more: search ${row.node.path}…`));
	const open = opened.has(row.path);
	return item({ 'aria-expanded': open }, h('span', { class: 'twist' }, open ? '▾' : '▸'), h('span', { class: 'name mono' }, text(row.name, 80) + ':'),
		h('span', { class: 'meta' }, row.memory ? bytes(row.memory) + ' · ' : '', brief(row.count)));
}

function prefixLength(key, depth) {
	let from = 0;
	for (let d = 0; d < depth; d++) from = key.indexOf(':', from) + 1;
	return from;
}

function choose(i) {
	const row = rows[i];
	at = i;
	$('#tree').setAttribute('aria-activedescendant', 'row' + i);
	if (typeof row === 'string') {
		go('keys', { key: keyOf(row) });
	} else if (row.node) {
		$('#pattern').value = escapePattern(row.node.path) + '*';
		$('#pattern').focus();
	} else {
		if (!opened.delete(row.path)) opened.add(row.path);
		flatten();
	}
}

function keydown(e) {
	const row = rows[at], page = Math.max(1, Math.floor($('#tree').clientHeight / list.height) - 1);
	const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length }[e.key];
	if (step) at = Math.max(0, Math.min(rows.length - 1, at + step));
	else if (e.key === ' ' && choosing) mark(at);
	else if (e.key === 'Enter' || e.key === ' ') choose(at);
	else if (row?.folders && ((e.key === 'ArrowRight' && !opened.has(row.path)) || (e.key === 'ArrowLeft' && opened.has(row.path)))) choose(at);
	else if (e.key === 'ArrowLeft') {
		const depth = depths[at];
		while (at > 0 && depths[at] >= depth) at--;
	} else return;
	e.preventDefault();
	$('#tree').setAttribute('aria-activedescendant', 'row' + at);
	list.reveal(at);
}

// readMeta reads type, TTL and memory of the keys in sight, and again those that are older than some seconds.
const readMeta = debounce(async () => {
	if (!rows.length || document.body.dataset.view !== 'keys') return;
	const [first, end] = list.range(), t = Date.now();
	const wanted = [];
	for (let i = first; i < end; i++) if (typeof rows[i] === 'string' && !(meta.get(rows[i])?.read > t - metaAge)) wanted.push(rows[i]);
	if (!wanted.length) return;
	try {
		const replies = await pipeline(wanted.flatMap((k) => [['TYPE', keyOf(k)], ['PTTL', keyOf(k)], ['MEMORY', 'USAGE', keyOf(k)]]));
		if (meta.size > maxMeta) meta.clear();
		wanted.forEach((k, i) => meta.set(k, { type: ok(replies[3 * i], ''), ttl: ok(replies[3 * i + 1], -1), memory: ok(replies[3 * i + 2], 0), read: Date.now() }));
		list.paint();
	} catch { /* the tree works without them; what fails here fails where a key is opened, too */ }
}, 120);

function remove(key) {
	const known = id(key);
	meta.delete(known);
	const visit = (node) => {
		if (node.keys.delete(known)) {
			node.count--;
			node.sorted = null;
			names--;
			return true;
		}
		for (const [name, child] of node.folders) {
			if (known.startsWith('s' + child.path) && visit(child)) {
				node.count--;
				node.sorted = null;
				if (!child.count) node.folders.delete(name);
				return true;
			}
		}
		return false;
	};
	if (root && visit(root)) flatten();
}

function add(key) {
	if (!root) return;
	remove(key);
	put(key, 0);
	flatten();
}

async function create() {
	const made = { key: null };
	const done = await change({
		title: 'New key', verb: 'Create', conditions: ({ key }) => [[['EXISTS', key], 0]],
		fields: [{ name: 'key', label: 'Name' }, { name: 'type', label: 'Type', type: 'select', options: ['zset', 'string', 'hash', 'list', 'set', 'stream'].map((t) => [t, t]) },
			{ name: 'form', label: 'Written as', type: 'select', options: [['lines', 'lines'], ['json', 'JSON'], ['download', 'JSON that this page has saved, with its type']] },
			{ name: 'value', label: 'Value', type: 'area', hint: 'A line has: zset: score and member. hash, stream: field and value. list, set: an element. Words with spaces are in "quotes"; a score may be a time: @now+1h. JSON: an array, an object of names and values, or pairs.' },
			{ name: 'ttl', label: 'Seconds until it expires, a time such as @now+1h, or nothing' }],
		build: ({ key, type, form, value, ttl }) => build((made.key = key), type, form, value, ttl),
	});
	if (done) {
		add(made.key);
		go('keys', { key: made.key });
	}
}
