// The prompt: any command, with the argument forms of COMMAND DOCS, and its reply as a tree of RESP3 types.

import { $, button, debounce, fill, h, say } from './dom.js';
import { typed, typedPipeline, state, plain, run, pairs } from './api.js';
import { Bin, commandLine, show, split, count, duration } from './text.js';
import { confirm } from './dialog.js';

const maxReplies = 50, maxHistory = 200, maxChildren = 100;
const docs = new Map(); // name => {summary, syntax, …}, or null while it is read
let names = [], past = [], at = 0, draft = '', go;

// Commands that lose data, stop the server or change how it works ask first. An entry of two words is a subcommand.
const dangerous = new Map(Object.entries({
	FLUSHALL: 'It deletes all keys of all databases.', FLUSHDB: 'It deletes all keys of this database.',
	SHUTDOWN: 'It stops the server.', SWAPDB: 'It exchanges two databases for all clients.',
	'CONFIG SET': 'It changes a parameter of the running server.', 'CONFIG REWRITE': 'It writes the configuration file.', 'CONFIG RESETSTAT': 'It sets the statistics to zero.',
	DEBUG: 'Its subcommands can stop or block the server.', REPLICAOF: 'A server that becomes a replica loses its data.', SLAVEOF: 'A server that becomes a replica loses its data.',
	FAILOVER: 'It changes which server is the primary.', 'ACL SETUSER': 'It changes what a user may do.', 'ACL DELUSER': 'It deletes a user and closes its connections.', 'ACL LOAD': 'It replaces all users.',
	'SCRIPT FLUSH': 'It deletes all scripts.', 'FUNCTION FLUSH': 'It deletes all function libraries.', 'FUNCTION DELETE': 'It deletes a function library.', 'FUNCTION RESTORE': 'It replaces function libraries.',
	'CLIENT KILL': 'It closes connections.', 'CLIENT PAUSE': 'Clients wait until it ends.', KEYS: 'It reads all keys while other clients wait. The view Keys uses SCAN.',
	MIGRATE: 'It moves keys to another server.', 'CLUSTER RESET': 'It makes the server forget its cluster.', 'CLUSTER FLUSHSLOTS': 'The server serves no slots after it.', RESTORE: 'With REPLACE it overwrites a key.',
}));

function danger(args) {
	const word = (i) => String(args[i] ?? '').toUpperCase();
	return dangerous.get(word(0) + ' ' + word(1)) || dangerous.get(word(0));
}

// A line with a password is neither kept nor shown again.
const secret = (args) => /^(AUTH|HELLO|MIGRATE)$/i.test(args[0]) || (/^(ACL|CONFIG)$/i.test(args[0]) && args.slice(1).some((a) => /^(setuser|.*(pass|auth).*|[><#!].+)$/i.test(a)));

export function mount(section, goTo) {
	go = goTo;
	const line = $('#line');
	try {
		past = JSON.parse(sessionStorage.getItem('prompt') || '[]');
	} catch { /* an unreadable history is an empty one */ }
	at = past.length;
	run('COMMAND', 'LIST').then((list) => {
		names = list.map((n) => n.replace('|', ' ').toUpperCase()).sort();
		update();
	}, (e) => fill($('#hint'), e.message));
	line.addEventListener('input', update);
	line.addEventListener('click', update);
	line.addEventListener('keydown', keydown);
	$('#command').addEventListener('submit', (e) => {
		e.preventDefault();
		submit();
	});
	fill($('#replies'), welcome());
}

export function show_(params) {
	if (params.get('line')) {
		$('#line').value = params.get('line');
		grow();
	}
	$('#line').focus({ preventScroll: true });
	update();
}
export { show_ as show };
export function hide() {}

function welcome() {
	const tries = ['ZADD game 10 ann 20 ben', 'ZRANGE game 0 -1 WITHSCORES', 'BZPOPBYSCORE 0 1 due -inf @now', 'INFO memory'];
	return h('div', { class: 'welcome' }, h('p', {}, 'Type a command. ', h('kbd', {}, 'Tab'), ' completes, ', h('kbd', {}, '↑'), ' recalls, ', h('kbd', {}, 'Shift'), ' ', h('kbd', {}, 'Enter'),
		' begins another line: several lines run on one connection, so MULTI … EXEC works.'),
	h('p', {}, tries.map((t) => button(t, () => {
		$('#line').value = t;
		$('#line').focus();
		update();
	}, { class: 'chip mono' }))));
}

function grow() {
	const line = $('#line');
	line.rows = Math.min(8, line.value.split('\n').length);
}

// now returns the line at the caret, and what precedes it there.
function here() {
	const line = $('#line'), caret = line.selectionStart;
	const from = line.value.lastIndexOf('\n', caret - 1) + 1;
	const to = (line.value + '\n').indexOf('\n', caret);
	return { from, to, text: line.value.slice(from, to), before: line.value.slice(from, caret) };
}

function commandOf(text) {
	const [a, b] = text.toUpperCase().trim().split(/\s+/);
	if (b && names.includes(a + ' ' + b)) return a + ' ' + b;
	return names.includes(a) ? a : null;
}

let choice = -1;
function update() {
	grow();
	const { text, before } = here();
	const typedName = before.toUpperCase().replace(/\s+/g, ' ').trimStart();
	const words = typedName.split(' ').length;
	const matches = typedName && words <= 2 ? names.filter((n) => n.startsWith(typedName) && n !== typedName.trimEnd()).slice(0, 8) : [];
	choice = -1;
	suggest(matches);
	const name = commandOf(text);
	if (!name) return fill($('#hint'), text.trim() && names.length && text.includes(' ') ? 'There is no such command.' : '');
	document_(name);
}

function suggest(list) {
	const box = $('#suggestions');
	box.hidden = !list.length;
	$('#line').removeAttribute('aria-activedescendant');
	fill(box, list.map((n, i) => h('li', { role: 'option', id: 's' + i, 'aria-selected': 'false', onmousedown: (e) => {
		e.preventDefault();
		complete(n);
	} }, n)));
}

function pick(step) {
	const list = $('#suggestions').children;
	choice = (choice + step + list.length) % list.length;
	[...list].forEach((li, i) => li.setAttribute('aria-selected', i === choice));
	$('#line').setAttribute('aria-activedescendant', 's' + choice);
}

function complete(name) {
	const { from, to } = here();
	$('#line').setRangeText(name + ' ', from, to, 'end');
	update();
}

// syntax returns the words of an argument's form, as a list of strings; those of optional arguments in brackets.
function syntax(list) {
	return list.map((a) => {
		const d = Object.fromEntries(a);
		const flags = d.flags || [];
		let inner;
		if (d.type === 'pure-token') inner = d.token;
		else if (d.type === 'oneof') inner = syntax(d.arguments).join(' | ');
		else if (d.type === 'block') inner = syntax(d.arguments).join(' ');
		else inner = d.display_text || d.name;
		if (d.type === 'oneof' && !flags.includes('optional')) inner = '<' + inner + '>';
		let text = (d.token && d.type !== 'pure-token' ? (d.token === '' ? '""' : d.token) + ' ' : '') + inner;
		if (flags.includes('multiple')) text += ` [${flags.includes('multiple_token') ? text : inner} …]`;
		return flags.includes('optional') ? `[${text}]` : text;
	});
}

const readDocs = debounce(async (name) => {
	const key = name.toLowerCase().replace(' ', '|');
	try {
		const reply = await run('COMMAND', 'DOCS', key);
		const d = Object.fromEntries(pairs(reply)[0][1]);
		docs.set(name, { ...d, syntax: syntax(d.arguments || []) });
	} catch {
		docs.set(name, { syntax: [], summary: '' });
	}
	if (commandOf(here().text) === name) document_(name);
}, 60);

function document_(name) {
	const d = docs.get(name);
	if (!d) return readDocs(name);
	const given = here().before.trimStart().split(/\s+/).length - name.split(' ').length - 1;
	fill($('#hint'), h('code', {}, h('b', {}, name), d.syntax.map((s, i) => [' ', h('span', { class: i === given || (i === d.syntax.length - 1 && given > i) ? 'current' : '' }, s)])),
		h('span', { class: 'muted' }, d.summary + (d.complexity ? ' · ' + d.complexity : '') + (d.since ? ' · since ' + d.since : '')));
}

function keydown(e) {
	const line = $('#line'), open = !$('#suggestions').hidden;
	if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) {
		e.preventDefault();
		if (open && choice >= 0) complete($('#suggestions').children[choice].textContent);
		else submit();
	} else if (e.key === 'Tab' && open && !e.shiftKey) {
		e.preventDefault();
		complete($('#suggestions').children[Math.max(choice, 0)].textContent);
	} else if (e.key === 'Escape') {
		suggest([]);
	} else if (e.key === 'ArrowDown' && open) {
		e.preventDefault();
		pick(1);
	} else if (e.key === 'ArrowUp' && open && choice >= 0) {
		e.preventDefault();
		pick(-1);
	} else if ((e.key === 'ArrowUp' || e.key === 'ArrowDown') && !line.value.includes('\n') && past.length) {
		e.preventDefault();
		if (at === past.length) draft = line.value;
		at = Math.max(0, Math.min(past.length, at + (e.key === 'ArrowUp' ? -1 : 1)));
		line.value = at === past.length ? draft : past[at];
		update();
		suggest([]);
	}
}

// Commands that take over a connection have their replies in the view of events.
function elsewhere(commands) {
	const [[name, ...rest]] = commands, kind = { subscribe: 'channel', psubscribe: 'pattern', ssubscribe: 'channel' }[String(name).toLowerCase()];
	if (commands.length > 1) return null;
	return kind && rest.length ? { [kind]: rest } : /^monitor$/i.test(name) && !rest.length ? { monitor: 1 } : null;
}

async function submit() {
	const line = $('#line'), source = line.value.trim();
	if (!source) return;
	let commands;
	try {
		commands = source.split('\n').map(split).filter((args) => args.length);
	} catch (e) {
		return fill($('#hint'), h('span', { class: 'error' }, e.message));
	}
	const reasons = commands.map(danger).filter(Boolean);
	if (reasons.length && !(await confirm('Run this command?', [...new Set(reasons)].join(' '), commands, 'Run it'))) return line.focus();
	if (!commands.some(secret)) {
		if (past[past.length - 1] !== source) past.push(source);
		past = past.slice(-maxHistory);
		try {
			sessionStorage.setItem('prompt', JSON.stringify(past));
		} catch { /* a full storage keeps no history */ }
	}
	at = past.length;
	draft = line.value = '';
	update();
	const events = elsewhere(commands);
	if (events) return go('messages', events);
	execute(commands);
	line.focus();
}

async function execute(commands) {
	const box = $('#replies'), abort = new AbortController();
	const head = h('div', { class: 'sent' }, h('pre', {}, commands.map((args) => (secret(args) ? args[0] + ' …' : commandLine(args, 500))).join('\n')));
	const status = h('span', { class: 'muted' });
	const stop = button('Cancel', () => abort.abort(), { hidden: true });
	const body = h('div', { class: 'reply' });
	const entry = h('article', {}, h('div', { class: 'replyhead' }, head, status, stop), body);
	$('.welcome', box)?.remove();
	box.append(entry);
	while (box.children.length > maxReplies) box.firstChild.remove();
	const begun = performance.now();
	const ticking = setInterval(() => {
		stop.hidden = false;
		status.textContent = 'waiting for ' + duration(performance.now() - begun);
	}, 250);
	try {
		const [only] = commands;
		if (commands.length === 1 && /^select$/i.test(only[0]) && /^\d+$/.test(only[1] || '')) {
			const reply = await typed(only, abort.signal);
			if (reply.type !== 'error') {
				state.db = Number(only[1]);
				go('prompt');
			}
			fill(body, tree(reply));
		} else if (commands.length === 1) fill(body, tree(await typed(only, abort.signal)));
		else fill(body, (await typedPipeline(commands, abort.signal)).map((r) => tree(r)));
		say('Reply: ' + body.textContent.slice(0, 200));
	} catch (e) {
		fill(body, h('div', { class: 'error' }, e.name === 'AbortError' ? 'Cancelled.' : e.message));
	}
	clearInterval(ticking);
	stop.remove();
	status.textContent = duration(performance.now() - begun);
	box.scrollTop = box.scrollHeight;
}

const leaf = { simple: 'status', bulk: 'string', verbatim: 'verbatim', integer: 'integer', double: 'double', bignumber: 'big number', boolean: 'boolean', null: 'null', error: 'error' };

// short reports whether a reply is a short list of short values, such as a member with its score, which takes one line.
const short = (node) => /^(array|set|push)$/.test(node.type) && node.value?.length > 1 && node.value.length < 5 && node.value.every((i) => leaf[i.type] && String(i.value).length < 60);

// tree shows a typed reply. A long list shows its first elements, and more on demand.
export function tree(node, label) {
	const before = label === undefined ? null : h('span', { class: 'index' }, label);
	if (leaf[node.type]) {
		const v = node.type === 'null' ? 'nil' : node.base64 ? new Bin(node.value) : String(node.value);
		const lines = !(v instanceof Bin) && /\n/.test(v) && v.length < 100000;
		return h('div', { class: 'node' }, before, lines
			? h('pre', { class: 'v-' + node.type }, v.split(/\r?\n/).map((l) => (l ? show(l, 10000).replace(/\\\\/g, '\\') : '')).join('\n'))
			: h('span', { class: 'v-' + node.type }, node.type === 'bulk' || node.type === 'verbatim' ? show(v, 2000) : show(v, 5000)), h('span', { class: 'kind' }, leaf[node.type]));
	}
	if (node.value === null) return tree({ type: 'null' }, label);
	const items = node.value, n = items.length;
	const children = h('div', { class: 'children' });
	// Elements of one form have columns: labels, values, and the parts of short lists of one length.
	const width = node.type === 'map' ? 0 : items[0] && short(items[0]) ? items[0].value.length : 0;
	const values = node.type === 'map' ? items.map(([, v]) => v) : items;
	if (n > 1 && values.every((v) => (width ? short(v) && v.value.length === width : leaf[v.type]))) {
		children.classList.add(node.type === 'map' ? 'map' : 'grid', 'grid');
		children.style.gridTemplateColumns = width ? `max-content repeat(${width}, minmax(0, max-content))` : 'fit-content(45%) minmax(0, max-content) max-content';
	}
	let drawn = 0;
	const more = () => {
		children.querySelector(':scope > .more')?.remove();
		for (const end = Math.min(n, drawn + maxChildren); drawn < end; drawn++) {
			if (node.type !== 'map') children.append(tree(items[drawn], drawn + 1));
			else {
				const [k, v] = items[drawn];
				children.append(tree(v, leaf[k.type] ? show(k.base64 ? new Bin(k.value) : String(k.value), 80) : show(JSON.stringify(plain(k)), 80)));
			}
		}
		if (drawn < n) children.append(button(`Show ${count(Math.min(maxChildren, n - drawn))} more of ${count(n)}`, more, { class: 'more link' }));
	};
	const types = Array.from({ length: children.classList.contains('grid') ? width : 0 }, (_, i) => [...new Set(values.map((v) => leaf[v.value[i].type]))].join(' or '));
	const kind = h('span', { class: 'kind' }, node.type + ' of ' + count(n) + (types.length ? ': ' + types.join(', ') : ''));
	if (label !== undefined && short(node)) {
		return h('div', { class: 'node inline' }, before, items.map((i) => tree(i, '')));
	}
	if (!n) return h('div', { class: 'node' }, before, h('span', { class: 'muted' }, 'empty'), kind);
	const details = h('details', { class: 'node', open: true }, h('summary', {}, before, kind), children);
	more();
	return details;
}
