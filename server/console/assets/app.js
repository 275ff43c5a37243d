// The shell: which view is shown, which database, and the address of both.

import { $, h } from './dom.js';
import { state, run, readClock } from './api.js';
import { Bin, clock, duration } from './text.js';
import * as overview from './overview.js';
import * as keys from './keys.js';
import * as messages from './messages.js';
import * as server from './server.js';
import * as prompt from './prompt.js';
import * as palette from './palette.js';

const views = { overview, keys, messages, server, prompt };
const mounted = new Set();
let shown;

// place returns the view and the parameters of the page's address.
function place() {
	const name = location.pathname.split('/').pop() || 'overview';
	const params = new URLSearchParams(location.search);
	return [views[name] ? name : 'overview', params];
}

export function open() {
	const [name, params] = place();
	const db = Number(params.get('db') || 0);
	const moved = db !== state.db;
	state.db = db;
	$('#db').value = db;
	for (const section of document.querySelectorAll('.view')) section.hidden = section.id !== name;
	document.body.dataset.view = name;
	for (const a of document.querySelectorAll('nav a')) {
		if (a.dataset.view === name) a.setAttribute('aria-current', 'page');
		else a.removeAttribute('aria-current');
	}
	document.title = $('nav a[aria-current]').textContent + ' · ' + $('.brand b').textContent;
	if (shown && shown !== name) views[shown].hide();
	if (!mounted.has(name)) {
		mounted.add(name);
		views[name].mount($('#' + name), go);
	}
	shown = name;
	views[name].show(params, moved);
}

// go shows a view: its name and parameters. One of them may be a Bin, or an array.
export function go(name, params = {}, replace) {
	const query = new URLSearchParams();
	if (state.db) query.set('db', state.db);
	for (const [k, v] of Object.entries(params).flatMap(([k, v]) => [v].flat().map((one) => [k, one]))) {
		if (v instanceof Bin) query.append(k + '64', v.base64);
		else if (v !== null && v !== undefined) query.append(k, v);
	}
	const address = (name === 'overview' ? './' : name) + (String(query) && '?' + query);
	history[replace ? 'replaceState' : 'pushState'](null, '', address);
	open();
}

document.addEventListener('click', (e) => {
	const a = e.target.closest('nav a, .brand');
	if (!a || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
	e.preventDefault();
	go(a.dataset.view || 'overview');
	$('#main').focus({ preventScroll: true });
});
// The next user of this tab does not see the lines of the prompt.
$('.account form')?.addEventListener('submit', () => sessionStorage.clear());
addEventListener('popstate', open);
addEventListener('keydown', (e) => {
	if ((e.ctrlKey || e.metaKey) && !e.altKey && !e.shiftKey && e.key.toLowerCase() === 'k' && !$('dialog[open]')) {
		e.preventDefault();
		return palette.open();
	}
	if (e.target.closest('input, textarea, select, dialog') || e.ctrlKey || e.metaKey || e.altKey) return;
	const to = Object.keys(views)[e.key - 1];
	if (to) go(to);
	if (e.key === '?') palette.help();
	if (e.key === '/') {
		e.preventDefault();
		go(shown === 'keys' ? 'keys' : 'prompt');
		$(shown === 'keys' ? '#pattern' : '#line').focus();
	}
});

$('#palette-open').addEventListener('click', palette.open);
palette.mount(go);

// While the server is away the page keeps what it shows.
document.addEventListener('away', ({ detail: { since, why } }) => {
	document.body.classList.add('away');
	$('#away').hidden = false;
	$('#away').textContent = `The server is away (${why}). This is how it was at ${clock(since)}, ${duration(Math.floor((Date.now() - since) / 1000) * 1000)} ago; the page goes on by itself.`;
});
document.addEventListener('back', () => {
	document.body.classList.remove('away');
	$('#away').hidden = true;
	readClock().catch(() => {});
});

function databases(n) {
	$('#db').replaceChildren(...Array.from({ length: Math.min(n, 1024) }, (_, i) => h('option', { value: i }, 'db ' + i)));
	$('#db').value = state.db;
}
databases(16);
$('#db').addEventListener('change', (e) => {
	state.db = Number(e.target.value);
	go(shown, {});
	views[shown].show(new URLSearchParams(location.search), true);
});
open();
run('CONFIG', 'GET', 'databases').then((r) => databases(Number(r[0][1])), () => {});
readClock().catch(() => {});
setInterval(() => document.hidden || readClock().catch(() => {}), 60000);
