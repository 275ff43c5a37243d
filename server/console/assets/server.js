// The server as its operator sees it: clients, users, parameters, functions and scripts, hot keys, backups.

import { $, tabs } from './dom.js';
import { clients } from './clients.js';
import { users } from './users.js';
import { parameters } from './parameters.js';
import { functions } from './functions.js';
import { hotKeys } from './hotkeys.js';
import { backup } from './backup.js';

// Each part fills an element, and returns a function that ends what it does there.
export const parts = { clients: ['Clients', clients], users: ['Users', users], parameters: ['Parameters', parameters], functions: ['Functions', functions], hotkeys: ['Hot keys', hotKeys], backup: ['Backup', backup] };

let go, leave, shown;

export function mount(section, goTo) {
	go = goTo;
}

export function show(params, moved) {
	const name = parts[params.get('part')] ? params.get('part') : 'clients';
	if (name === shown && leave && !moved) return;
	hide();
	shown = name;
	const list = Object.entries(parts).map(([id, [label]]) => [id, label]);
	if ($('#server-tabs button[aria-selected=true]')?.dataset.id !== name) $('#server-tabs').replaceChildren(tabs('Parts of the server', list, name, (id) => go('server', { part: id })));
	$('#server-tabs [aria-selected=true]').scrollIntoView({ block: 'nearest', inline: 'nearest' });
	$('#server-part').replaceChildren();
	leave = parts[name][1]($('#server-part'), go);
}

export function hide() {
	leave?.();
	leave = null;
}
