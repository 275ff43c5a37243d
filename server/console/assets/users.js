// The users of the ACL: their rules, changes of them, and what they may do.

import { button, fill, h, scrolls } from './dom.js';
import { CommandError, ok, pipeline, run } from './api.js';
import { show, split } from './text.js';
import { change } from './dialog.js';
import { failed, table, tools } from './values.js';

// parse returns a line of ACL LIST: "user ann on #… ~key &channel +@read (~other +get)".
function parse(line) {
	const [, name, ...rules] = String(line).match(/\([^)]*\)|\S+/g);
	const hashes = rules.filter((r) => r.startsWith('#'));
	return { name, on: rules.includes('on'), passwords: rules.includes('nopass') ? 'any' : hashes.length ? String(hashes.length) : 'none', rules: rules.filter((r) => !/^(on|off|nopass|#.*|(skip-)?sanitize-payload)$/.test(r)) };
}

const hint = 'on, off, >password, nopass, ~key*, %R~key*, &channel*, +command, +@read, -@all, reset. Each adds to those that there are.';

export function users(box) {
	const out = h('div'), keeps = h('p', { class: 'muted' }), answer = h('p', { role: 'status' });
	const who = h('select', { id: 'dry-user' }), line = h('input', { id: 'dry-line', placeholder: 'GET user:1', autocomplete: 'off', spellcheck: 'false' });
	const edit = async (user) => {
		const done = await change({
			title: user ? 'Rules of ' + show(user.name, 100) : 'New user', note: user ? user.rules.join(' ') : '',
			fields: [...user ? [] : [{ name: 'name', label: 'Name' }], { name: 'rules', label: user ? 'Rules to add' : 'Rules', value: user ? '' : 'on ', hint }],
			build: (v) => {
				const name = user?.name ?? v.name.trim(), rules = split(v.rules);
				return !name || user && !rules.length ? [] : ['ACL', 'SETUSER', name, ...rules];
			},
		});
		if (done) read();
	};
	const remove = async (user) => {
		if (await change({ title: 'Delete user ' + show(user.name, 100), note: 'Its connections are closed.', danger: true, verb: 'Delete', build: () => ['ACL', 'DELUSER', user.name], refused: (n) => n === 0 && 'There is no such user.' })) read();
	};
	const keep = (command, file) => button('Write them to the file …', () => change({ title: 'Keep the users', note: file, build: () => command }));
	const read = async () => {
		try {
			const [list, files] = await pipeline([['ACL', 'LIST'], ['CONFIG', 'GET', 'aclfile']]);
			if (list instanceof CommandError) throw list;
			const all = list.map(parse), aclfile = ok(files, [])[0]?.[1], before = who.value;
			fill(out, scrolls('Users', table(['User', 'State', 'Passwords', 'Commands, keys and channels', ''], all.map((u) => h('tr', { 'data-user': u.name }, h('td', { class: 'mono' }, show(u.name, 100)), h('td', {}, u.on ? 'on' : 'off'), h('td', { class: u.passwords === 'any' ? 'error' : null }, u.passwords),
				h('td', { class: 'value' }, u.rules.map((r) => show(r, 500)).join(' ')), tools(['Rules …', () => edit(u)], ...u.name === 'default' ? [] : [['Delete …', () => remove(u)]]))), 'Users')));
			fill(who, all.map((u) => h('option', { value: u.name }, show(u.name, 60))));
			if (all.some((u) => u.name === before)) who.value = before;
			fill(keeps, aclfile ? ['They are lost at the next start unless they are in ', h('code', {}, aclfile), '. ', keep(['ACL', 'SAVE'], aclfile)]
				: ['They are lost at the next start unless the configuration file has them, or a file that ', h('code', {}, 'aclfile'), ' names. ', keep(['CONFIG', 'REWRITE'], 'All parameters are written, too.')]);
		} catch (e) {
			failed(out)(e);
		}
	};
	const ask = async (e) => {
		e.preventDefault();
		try {
			const args = split(line.value);
			if (!args.length) return;
			const reply = await run('ACL', 'DRYRUN', who.value, ...args);
			answer.className = reply === 'OK' ? '' : 'error';
			answer.textContent = reply === 'OK' ? `Yes: ${show(who.value, 60)} may run it.` : 'No: ' + show(reply, 500);
		} catch (err) {
			answer.className = 'error';
			answer.textContent = err.message;
		}
	};
	fill(box, h('div', { class: 'row wrap' }, button('New user …', () => edit())), out, keeps, h('form', { class: 'card', onsubmit: ask }, h('h2', {}, 'May a user run a command?'), h('p', { class: 'muted' }, 'ACL DRYRUN asks; nothing runs.'),
		h('div', { class: 'row wrap' }, h('label', { for: 'dry-user', class: 'visually-hidden' }, 'User'), who, h('label', { for: 'dry-line', class: 'visually-hidden' }, 'Command'), line, h('button', { type: 'submit' }, 'Ask')), answer));
	read();
	return () => {};
}
