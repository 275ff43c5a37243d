// The keys as a tree. SCAN reads them in the background; the tree keeps at most maxNames names and counts the others.

import { $, VirtualList, debounce, h, say, throttle } from './dom.js';
import { pipeline, run, ok, CommandError } from './api.js';
import { Bin, brief, bytes, count, duration, id, show as text } from './text.js';
import { closeKey, openKey } from './key.js';
import { change } from './dialog.js';

const maxNames = 200000, maxFolders = 50000, maxDepth = 12, maxMeta = 5000;

let go, list, root, rows = [], depths = [], at = 0, current = null, scan, folders = 0, names = 0;
const opened = new Set(), meta = new Map();

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
		if (item) choose(Number(item.dataset.i));
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
	setInterval(follow, 1000);
}

// follow reads the names again when their number has changed, or they are few; not where they are many.
async function follow() {
	if (document.hidden || document.body.dataset.view !== 'keys' || !scan || scan.running || scan.examined > 20000 || $('#measure').checked) return;
	const mine = scan, n = await run('DBSIZE').catch(() => mine.total);
	if (mine === scan && (n !== mine.total || n <= 500)) start(true);
}

export function show(params, moved) {
	if (params.get('measure')) $('#measure').checked = true;
	if (params.get('pattern') !== null) $('#pattern').value = params.get('pattern');
	if (!root || moved || params.get('pattern') !== null || params.get('measure')) start();
	const key = params.has('key64') ? new Bin(params.get('key64')) : params.get('key');
	$('#keys').classList.toggle('chosen', key !== null);
	if (key === null) {
		if (current !== null) closeKey($('#detail'));
		current = null;
		return;
	}
	current = key;
	// The folders of the key open, so that it is in sight.
	if (typeof key === 'string') for (let i = key.indexOf(':'); i >= 0; i = key.indexOf(':', i + 1)) opened.add(key.slice(0, i + 1));
	flatten();
	openKey($('#detail'), key, params.get('view'), { go, gone: remove, added: add, back: () => go('keys') });
}

export function hide() {
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
		for (const row of sorted(node)) {
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

function drawRow(i) {
	const row = rows[i], depth = depths[i];
	const item = (attrs, ...kids) => {
		const e = h('div', { class: 'item' + (i === at ? ' at' : ''), role: 'treeitem', id: 'row' + i, 'data-i': i, 'aria-level': depth + 1, 'aria-selected': i === at, ...attrs }, kids);
		e.style.paddingLeft = 8 + depth * 14 + 'px';
		return e;
	};
	if (typeof row === 'string') {
		const key = keyOf(row), m = meta.get(row) || {};
		const name = key instanceof Bin ? text(key, 80) : text(key.slice(prefixLength(key, depth)), 120);
		return item({ 'aria-current': current !== null && id(current) === row ? 'true' : null },
			h('span', { class: 'twist' }), m.type && h('span', { class: 'type ' + m.type }, m.type), h('span', { class: 'name mono' }, name),
			h('span', { class: 'meta' }, m.ttl > 0 ? duration(m.ttl - (Date.now() - m.read)) + ' ' : '', m.memory ? bytes(m.memory) : ''));
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
		$('#pattern').value = row.node.path.replace(/[*?[\]\\]/g, '\\$&') + '*';
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

// readMeta reads type, TTL and memory of the keys in sight.
const readMeta = debounce(async () => {
	if (!rows.length || document.body.dataset.view !== 'keys') return;
	const [first, end] = list.range();
	const wanted = [];
	for (let i = first; i < end; i++) if (typeof rows[i] === 'string' && !meta.has(rows[i])) wanted.push(rows[i]);
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
			{ name: 'field', label: 'Member, field, element or value' }, { name: 'value', label: 'Score (sorted set) or value (hash, stream)', hint: 'A score may be a time: @now+1h.' }],
		build: ({ key, type, field, value }) => {
			made.key = key;
			if (key === '') throw new Error('Give the key a name.');
			switch (type) {
				case 'zset': return ['ZADD', key, value || '0', field];
				case 'hash': return ['HSET', key, field, value];
				case 'list': return ['RPUSH', key, field];
				case 'set': return ['SADD', key, field];
				case 'stream': return ['XADD', key, '*', field || 'field', value];
				default: return ['SET', key, field];
			}
		},
	});
	if (done) {
		add(made.key);
		go('keys', { key: made.key });
	}
}
