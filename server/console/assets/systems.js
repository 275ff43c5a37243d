// The four systems of the event patterns, as views of a sorted set: live events, timeboxes, a folder, a waiting list.

import { fill, h, scrolls } from './dom.js';
import { CommandError, now, ok, pipeline } from './api.js';
import { Bin, brief, count, duration, score as number, show } from './text.js';
import { axis } from './plot.js';
import { addButton, drain, endsOf, instant, outermost, readEnds, scored, unitOf } from './zset.js';
import { byMember, failed, laneRow, names, table } from './values.js';

const rows = 200;

// option makes a labelled number of a view, kept by name for the time of the page.
const kept = {};
function option(name, label, value, changed) {
	kept[name] ??= value;
	return h('label', {}, label + ' ', h('input', { type: typeof value === 'number' ? 'number' : 'text', min: 0, value: kept[name], onchange: (e) => {
		kept[name] = typeof value === 'number' ? Number(e.target.value) || 0 : e.target.value;
		changed();
	} }));
}

// optionsBox has the options of a view. On a narrow page it is closed at first.
const optionsBox = (...children) => h('details', { class: 'options', open: matchMedia('(min-width: 761px)').matches }, h('summary', {}, 'Options'), children);

// parts returns the keys of the system of which a key is one, by its name. As written with the commands of Redis, the
// room, the line and the check-ins of a waiting list are three keys, and the counts and the boxes of timeboxes two.
function parts(key) {
	const name = key instanceof Bin ? '' : key;
	let m = /^(.*[:.}_-])?(participants|waiting|checkin)$/.exec(name);
	if (m) return { room: (m[1] || '') + 'participants', line: (m[1] || '') + 'waiting', checkin: (m[1] || '') + 'checkin' };
	m = /^(tb|pv)([:._-].*)$/.exec(name);
	if (m) return { counts: 'pv' + m[2], times: 'tb' + m[2] };
	m = /^(.*[:.}_-])(counts|times)$/.exec(name);
	return m ? { counts: m[1] + 'counts', times: m[1] + 'times' } : {};
}

// prefixes are how the keys with the details of a group begin, before its name. A hash tag of the folder is theirs, too.
const prefixes = (key) => ['details:', 'metrics:'].map((p) => (/^\{[^}]+\}/.exec(key)?.[0] || '') + p);

// recognise returns the view of a sorted set or a hash: by its name and the keys beside it, its scores, its members and
// their deadlines.
export async function recognise(key, type) {
	const p = parts(key), name = key instanceof Bin ? '' : key;
	const beside = (await pipeline(Object.values(p).map((k) => ['EXISTS', k]))).filter((n) => n === 1).length > 1;
	if (p.room && beside) return 'line';
	if (type !== 'zset') return null;
	const [low, high] = await read([['ZRANGE', key, 0, 4, 'WITHSCORES'], ['ZRANGE', key, -5, -1, 'WITHSCORES']]);
	const members = [...low, ...high].map(([m]) => (m instanceof Bin ? '' : m)), scores = [...low, ...high].map(([, s]) => s);
	if (!scores.length) return null;
	const all = (f) => members.every(f), ends = await endsOf(key, members), unit = unitOf(scores[0], scores[scores.length - 1]);
	if (p.counts && beside) return 'boxes';
	if (unit) {
		const found = await pipeline(members.flatMap((m) => prefixes(name).map((d) => ['EXISTS', d + m])));
		if (found.includes(1) || /(^|[:.}_-])(due|folder)$/.test(name)) return 'folder';
		const past = scores[scores.length - 1] * unit < now() + 1000;
		return past && (all((m) => /^[{[]/.test(m)) || ends.some((e) => e > 0) || /(^|[:._-])(news|events?|live|published|feed)([:._-]|$)/.test(name)) ? 'live' : 'timeline';
	}
	if (all((m) => /^(\d{4}-\d\d-\d\d.*|\d\d?:\d\d(:\d\d)?|\d{5,})$/.test(m))) return 'boxes';
	// Tickets are whole and different, and each client has a deadline.
	if (ends.every((e) => e > 0)) return new Set(low.map(([, s]) => s)).size === low.length && scores.every((s) => s > 0 && Number.isInteger(s)) ? 'line' : 'deadlines';
	return null;
}

// bars draws the deadlines of a view, and moves them four times a second.
function ticking(update) {
	const timer = setInterval(() => document.hidden || update(), 250);
	return () => clearInterval(timer);
}

async function read(commands) {
	const replies = await pipeline(commands);
	const bad = replies.find((r) => r instanceof CommandError);
	if (bad) throw bad;
	return replies;
}

// unitOfAll returns the unit of the scores, of which the lowest and the highest are known.
const unitOfAll = ([low, high]) => (low?.length && high?.length && unitOf(scored(low)[0][1], scored(high)[0][1])) || 1000;

// liveEvents shows the newest events with their age and the time until they expire.
export function liveEvents(box, ctx) {
	let moving = [];
	const out = h('div');
	const endOf = byMember();
	const commands = ([, low, list]) => [['ZCARD', ctx.key], ['ZRANGE', ctx.key, 0, 0, 'WITHSCORES'], ['ZRANGE', ctx.key, 0, rows - 1, 'REV', 'WITHSCORES'],
		...(list ? [60, 1800, 86400].map((s) => ['ZCOUNT', ctx.key, `${unitOfAll([low, list]) === 1 ? '@nowms' : '@now'}-${s}s`, '+inf']) : []), ...readEnds(ctx.key, names(list))];
	const draw = ([all, low, newest, ...more]) => {
		if (newest instanceof CommandError) return failed(out)(newest);
		const list = scored(newest), unit = unitOfAll([low, newest]), counts = more.slice(0, 3), ends = list.map(endOf(names(newest), more.slice(3)));
		const longest = Math.max(1000, ...ends.map((e) => e - now()));
		moving = [];
		fill(out, h('div', { class: 'facts' }, [['Live events', all], ['Last minute', counts[0]], ['Last 30 minutes', counts[1]], ['Last 24 hours', counts[2]]].map(([name, n]) => h('div', {}, h('small', {}, name), h('b', {}, count(ok(n, 0) ?? 0))))),
			scrolls('Events', table(['Event', 'Age', 'Left', 'Expires'], list.map(([m, s], i) => {
				const end = ends[i], bar = drain(end, longest), age = h('td', { class: 'n muted' }), left = h('td', { class: 'n' });
				moving.push(() => {
					age.textContent = duration(Math.max(0, now() - s * unit));
					left.textContent = end > 0 ? duration(bar.tick()) : 'never';
				});
				return h('tr', {}, h('td', { class: 'value' }, show(m, 300)), age, h('td', { class: 'drains' }, bar), left);
			}), 'Events, the newest first')));
		tick();
	};
	const tick = () => moving.forEach((f) => f());
	fill(box, h('div', { class: 'pager' }, h('span', { class: 'muted' }, 'Scores are times of events. Deadlines end them.'), h('span', { class: 'grow' }), addButton(ctx)), out);
	ctx.follow(commands, draw);
	return ticking(tick);
}

// timeboxes shows the counts of a set whose members name boxes of time, in the order of their names.
export function timeboxes(box, ctx) {
	const out = h('div'), p = parts(ctx.key), counts = p.counts || ctx.key;
	const endOf = byMember();
	const commands = ([, list]) => [['ZCARD', counts], ['ZRANGE', counts, 0, 499, 'REV', 'WITHSCORES'], p.times ? ['ZRANGE', p.times, -500, -1] : ['ZCARD', counts], ...readEnds(counts, names(list))];
	const draw = ([all, highest, boxesKept, ...more]) => {
		if (highest instanceof CommandError) return failed(out)(highest);
		const list = scored(highest), ends = list.map(endOf(names(highest), more));
		if (p.times) for (const m of boxesKept) if (!list.some(([one]) => one === m)) list.push([m, 0]);
		const boxes = list.map(([m, s], i) => ({ m, name: show(m, 80), s, end: ends[i] })).sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
		const high = Math.max(1, ...boxes.map((b) => b.s)), sum = boxes.reduce((n, b) => n + b.s, 0), best = list[0];
		fill(out, h('div', { class: 'facts' }, [['Boxes', count(all)], ['Sum', brief(sum)], ['Mean', boxes.length ? brief(sum / boxes.length) : '–'], ['Highest', best ? `${brief(best[1])} at ${show(best[0], 30)}` : '–']].map(([name, v]) => h('div', {}, h('small', {}, name), h('b', {}, v)))),
			h('div', { class: 'boxes', role: 'img', 'aria-label': `${boxes.length} boxes, the highest has ${best ? best[1] : 0}` }, boxes.map((b) => {
				const bar = h('div', { class: best && b.m === best[0] ? 'best' : null, title: `${b.name}: ${number(b.s)}` });
				bar.style.height = Math.max(1, (100 * b.s) / high) + '%';
				return bar;
			})), axis(boxes, brief(high)),
			scrolls('Boxes', table(['Box', 'Score', 'Expires'], boxes.slice(-100).reverse().map((b) => h('tr', {}, h('td', { class: 'value' }, b.name), h('td', { class: 'n' }, number(b.s)), h('td', { class: 'n muted' }, b.end > 0 ? duration(Math.max(0, b.end - now())) : 'never'))), 'Boxes, the latest first')));
	};
	fill(box, h('div', { class: 'pager' }, h('span', { class: 'muted' }, 'Members name boxes of time; scores count.', p.times ? [' Counts: ', h('code', {}, p.counts), ', boxes: ', h('code', {}, p.times)] : ''), h('span', { class: 'grow' }), addButton(ctx)), out);
	ctx.follow(commands, draw);
}

// folder shows the groups that are due, those that wait for more events, and those that a worker has claimed: their
// score, the end of the lease, is later than that of any group that waits. As written, the score is the time of the last
// event, the details are sets, and there are no leases.
export function folder(box, ctx) {
	const out = h('div', { class: 'lanes' }), name = show(ctx.key, 1e6), details = 'details ' + name, written = 'written ' + name;
	let known = written in kept, last = null;
	// In milliseconds from the present: before which a group is due, and before which one waits.
	const bounds = () => [kept[written] ? -kept.delay * 1000 : 0, kept[written] ? 0 : kept.delay * 1000];
	const members = (r) => [3, 5, 7].flatMap((i) => scored(r[i])).map(([m]) => m).filter((m) => typeof m === 'string');
	const probes = (list) => list.slice(0, 10).flatMap((m) => prefixes(name).map((d) => [d, d + m]));
	const commands = (r, reading) => {
		const list = outermost(ctx.key), unit = unitOfAll(r);
		if (r.length < 2 || r.slice(0, 2).includes(undefined)) return list;
		const [due, wait] = bounds().map((ms) => instant(unit, ms, reading));
		for (const [low, high] of [['-inf', due], ['(' + due, wait], ['(' + wait, '+inf']]) list.push(['ZCOUNT', ctx.key, low, high], ['ZRANGE', ctx.key, low, high, 'BYSCORE', 'LIMIT', 0, 50, 'WITHSCORES']);
		const all = members(r);
		if (!known) return [...list, ...probes(all).map(([, key]) => ['TYPE', key])];
		if (!kept[details]) return list;
		// The details of most groups are of one kind; the others are read by the other command.
		const [kind, other] = kept[written] ? ['SCARD', 'ZCARD'] : ['ZCARD', 'SCARD'], sizes = (name, of) => of.map((m) => [name, kept[details] + m]);
		return [...list, ...sizes(kind, all), ...sizes(other, all.filter((_, i) => r[8 + i] instanceof CommandError))];
	};
	const draw = (r) => {
		const bad = r.slice(0, 8).find((one) => one instanceof CommandError);
		if (bad) return failed(out)(bad);
		const all = members(r);
		if (!known) {
			const keys = probes(all), i = r.slice(8).findIndex((one) => one === 'zset' || one === 'set');
			if (i >= 0 && keys[i]) {
				known = true;
				kept[details] = keys[i][0];
				kept[written] = r[8 + i] === 'set';
				options();
				setTimeout(() => live.ask());
			}
		}
		const others = r.slice(8 + all.length).values();
		if (r.slice(0, 8).every((one) => one !== undefined) && r.length > 7) last = { r, unit: unitOfAll(r), counts: new Map(known ? all.map((m, i) => [m, r[8 + i] instanceof CommandError ? ok(others.next().value, 0) : r[8 + i]]) : []) };
		paint();
	};
	const paint = () => {
		if (!last) return;
		const { r, unit, counts } = last, [due] = bounds(), t = now();
		const lanes = [['Due', (s) => duration(Math.max(0, t + due - s * unit)) + ' late'], ['Pending', (s) => 'in ' + duration(Math.max(0, s * unit - t - due))], ['Leased', (s) => 'lease ends in ' + duration(Math.max(0, s * unit - t))]];
		fill(out, lanes.map(([title, note], i) => h('section', { class: 'lane', 'aria-label': title }, h('header', {}, h('span', {}, title), h('b', {}, count(r[2 + 2 * i]))),
			h('ul', {}, scored(r[3 + 2 * i]).map(([m, s]) => laneRow(m, note(s), { text: counts.get(m) ? count(counts.get(m)) + ' events' : '' }))))));
	};
	const changed = () => live.ask();
	const bar = optionsBox();
	const options = () => fill(bar, bar.firstChild, option('delay', 'Delay of a group in seconds', 5, changed), option(details, 'Prefix of details', 'details:', changed),
		h('label', {}, 'Scores are ', h('select', { onchange: (e) => {
			kept[written] = !!e.target.value;
			known = true;
			changed();
		} }, h('option', { value: '' }, 'times when groups are due, or ends of leases'), h('option', { value: 1, selected: kept[written] }, 'times of last events'))));
	options();
	fill(box, bar, out);
	const live = ctx.follow(commands, draw);
	const timer = setInterval(() => {
		if (document.hidden) return;
		paint();
		live.read(); // time moves groups between the lanes
	}, 1000);
	return () => clearInterval(timer);
}

// waitingList shows the members with the lowest tickets in the room, the others in line; deadlines are those of check-ins.
// As written, the room is a hash, the line a sorted set of tickets, and the check-ins are the scores of another.
export function waitingList(box, ctx) {
	let moving = [];
	const out = h('div', { class: 'lanes' }), p = parts(ctx.key), name = show(ctx.key, 1e6), hash = 'room ' + name, checks = 'checkin ' + name, queue = p.line || ctx.key;
	const endOf = byMember(), places = () => Math.max(1, Math.min(1000, kept.places));
	// A hash is the room; without one, the first in line are in it.
	const split = (r) => {
		const room = kept[hash], list = scored(r[1]), first = ok(r[4], null) || [];
		return room ? [(Array.isArray(first[1]) ? first[1] : first).slice(0, rows).map((m) => [m]), list.slice(0, rows)] : [list.slice(0, places()), list.slice(places())];
	};
	const commands = (r) => {
		const room = kept[hash], members = names(split(r).flat());
		return [['ZCARD', queue], ['ZRANGE', queue, 0, (room ? 0 : places()) + rows - 1, 'WITHSCORES'], ...(room ? [['HLEN', room], ['ZCARD', kept[checks] || queue], ...(r[2] === undefined ? [] : r[2] > 1000 ? [['HSCAN', room, 0, 'COUNT', rows, 'NOVALUES']] : [['HKEYS', room]])] : []),
			...(!room ? readEnds(queue, members) : kept[checks] && members.length ? [['ZMSCORE', kept[checks], ...members]] : [])];
	};
	const draw = (r) => {
		const room = kept[hash], bad = r.find((one) => one instanceof CommandError);
		if (bad) return failed(out)(bad);
		const [inside, list] = split(r), [all] = r, taken = room ? r[2] : inside.length;
		const members = [...inside, ...list], times = members.map(endOf(names(members), r.slice(room ? 5 : 2))), [ends, seen] = room ? [[], times] : [times, []];
		const longest = Math.max(1000, ...ends.map((e) => e - now()));
		moving = [];
		const entry = ([m, s], i) => {
			const bar = drain(ends[i], longest), note = h('span');
			moving.push(() => {
				const left = bar.tick();
				note.textContent = ends[i] > 0 ? duration(left) : seen[i] > 0 ? 'seen ' + duration(Math.max(0, now() - seen[i] * (unitOf(seen[i], seen[i]) || 1000))) + ' ago' : '';
			});
			return laneRow(m, note, { no: count(i < inside.length ? i + 1 : i - inside.length + 1), text: s !== undefined && 'ticket ' + number(s), bar: ends[i] > 0 && bar });
		};
		fill(out, h('section', { class: 'lane', 'aria-label': 'Room' }, h('header', {}, h('span', {}, 'Room'), h('b', {}, `${count(taken)} of ${count(places())}`)),
			h('div', { class: 'seats', role: 'presentation' }, Array.from({ length: Math.min(places(), 120) }, (_, i) => h('i', { class: i < taken ? (ends[i] > 0 && ends[i] - now() < longest * 0.25 ? 'late' : 'on') : null }))), h('ol', {}, inside.slice(0, rows).map(entry))),
		h('section', { class: 'lane', 'aria-label': 'Line' }, h('header', {}, h('span', {}, 'In line'), h('b', {}, count(room ? all : Math.max(0, all - places())))), h('ol', {}, list.map((one, i) => entry(one, inside.length + i)))));
		tick();
	};
	const tick = () => moving.forEach((f) => f());
	const changed = () => live.ask();
	fill(box, optionsBox(option('places', 'Places in the room', 30, changed), option(hash, 'Hash of the room', p.room || '', changed), option(checks, 'Check-ins', p.checkin || '', changed),
		h('span', { class: 'muted' }, 'Scores are tickets. Without a hash, the first in line are in the room.'), addButton({ ...ctx, key: queue })), out);
	const live = ctx.follow(commands, draw);
	return ticking(tick);
}
