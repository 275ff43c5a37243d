// The four systems of the event patterns, as views of a sorted set: live events, timeboxes, a folder, a waiting list.

import { fill, h, throttle } from './dom.js';
import { CommandError, now, ok, pipeline, run } from './api.js';
import { brief, count, duration, score as number, show } from './text.js';
import { addButton, deadlinesOf, drain, timeUnit } from './zset.js';
import { failed, table } from './values.js';

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

// bars draws the deadlines of a view, and moves them four times a second.
function ticking(update) {
	const timer = setInterval(() => document.hidden || update(), 250);
	return () => clearInterval(timer);
}

const line = (no, name, note, extra) => h('li', {}, no !== null && h('span', { class: 'no' }, no), h('span', { class: 'name', title: show(name, 300) }, show(name, 120)), extra, h('small', {}, note));

async function read(commands) {
	const replies = await pipeline(commands);
	const bad = replies.find((r) => r instanceof CommandError);
	if (bad) throw bad;
	return replies;
}

// liveEvents shows the newest events with their age and the time until they expire.
export function liveEvents(box, ctx) {
	let moving = [];
	const out = h('div');
	const draw = throttle(async () => {
		try {
			const unit = (await timeUnit(ctx.key)) || 1000;
			const [all, list] = await read([['ZCARD', ctx.key], ['ZRANGE', ctx.key, 0, rows - 1, 'REV', 'WITHSCORES']]);
			const [ends, ...counts] = await pipeline([deadlinesOf(ctx.key, list.map(([m]) => m)), ...[60, 1800, 86400].map((s) => ['ZCOUNT', ctx.key, number((now() - s * 1000) / unit), '+inf'])]);
			const longest = Math.max(1000, ...(Array.isArray(ends) ? ends : []).map((e) => e - now()));
			moving = [];
			fill(out, h('div', { class: 'facts' }, [['Live events', all], ['Last minute', counts[0]], ['Last 30 minutes', counts[1]], ['Last 24 hours', counts[2]]].map(([name, n]) => h('div', {}, h('small', {}, name), h('b', {}, count(ok(n, 0)))))),
				h('div', { class: 'scroll-x' }, table(['Event', 'Age', 'Left', 'Expires'], list.map(([m, s], i) => {
					const end = Array.isArray(ends) ? ends[i] : -1, bar = drain(end, longest), age = h('td', { class: 'n muted' }), left = h('td', { class: 'n' });
					moving.push(() => {
						age.textContent = duration(Math.max(0, now() - s * unit));
						left.textContent = end > 0 ? duration(bar.tick()) : 'never';
					});
					return h('tr', {}, h('td', { class: 'value' }, show(m, 300)), age, h('td', { class: 'drains' }, bar), left);
				}), 'Events, the newest first')));
			tick();
		} catch (e) {
			failed(out)(e);
		}
	}, 80);
	const tick = () => moving.forEach((f) => f());
	fill(box, h('div', { class: 'pager' }, h('span', { class: 'muted' }, 'Scores are times of events. Deadlines end them.'), h('span', { class: 'grow' }), addButton(ctx)), out);
	ctx.onChange(draw);
	draw();
	return ticking(tick);
}

// timeboxes shows the counts of a set whose members name boxes of time, in the order of their names.
export function timeboxes(box, ctx) {
	const out = h('div');
	const draw = throttle(async () => {
		try {
			const [all, list] = await read([['ZCARD', ctx.key], ['ZRANGE', ctx.key, 0, 499, 'REV', 'WITHSCORES']]);
			const ends = list.length ? await run(...deadlinesOf(ctx.key, list.map(([m]) => m))).catch(() => []) : [];
			const boxes = list.map(([m, s], i) => ({ m, name: show(m, 80), s, end: ends[i] })).sort((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }));
			const high = Math.max(1, ...boxes.map((b) => b.s)), sum = boxes.reduce((n, b) => n + b.s, 0), best = list[0];
			fill(out, h('div', { class: 'facts' }, [['Boxes', count(all)], ['Sum', brief(sum)], ['Mean', boxes.length ? brief(sum / boxes.length) : '–'], ['Highest', best ? `${brief(best[1])} at ${show(best[0], 30)}` : '–']].map(([name, v]) => h('div', {}, h('small', {}, name), h('b', {}, v)))),
				h('div', { class: 'boxes', role: 'img', 'aria-label': `${boxes.length} boxes, the highest has ${best ? best[1] : 0}` }, boxes.map((b) => {
					const bar = h('div', { class: best && b.m === best[0] ? 'best' : null, title: `${b.name}: ${number(b.s)}` });
					bar.style.height = Math.max(1, (100 * b.s) / high) + '%';
					return bar;
				})),
				h('div', { class: 'scroll-x' }, table(['Box', 'Score', 'Expires'], boxes.slice(-100).reverse().map((b) => h('tr', {}, h('td', { class: 'value' }, b.name), h('td', { class: 'n' }, number(b.s)), h('td', { class: 'n muted' }, b.end > 0 ? duration(Math.max(0, b.end - now())) : 'never'))), 'Boxes, the latest first')));
		} catch (e) {
			failed(out)(e);
		}
	}, 100);
	fill(box, h('div', { class: 'pager' }, h('span', { class: 'muted' }, 'Members name boxes of time; scores count.'), h('span', { class: 'grow' }), addButton(ctx)), out);
	ctx.onChange(draw);
	draw();
}

// folder shows the groups that are due, those that wait for more events, and those that a worker has claimed: their
// score, the end of the lease, is later than that of any group that waits.
export function folder(box, ctx) {
	const out = h('div', { class: 'lanes' });
	const draw = throttle(async () => {
		try {
			const unit = (await timeUnit(ctx.key)) || 1000, t = now() / unit, wait = t + (kept.delay * 1000) / unit;
			const lanes = [['Due', '-inf', number(t), (s) => duration((t - s) * unit) + ' late'], ['Pending', '(' + number(t), number(wait), (s) => 'in ' + duration((s - t) * unit)], ['Leased', '(' + number(wait), '+inf', (s) => 'lease ends in ' + duration((s - t) * unit)]];
			const replies = await read(lanes.flatMap(([, low, high]) => [['ZCOUNT', ctx.key, low, high], ['ZRANGE', ctx.key, low, high, 'BYSCORE', 'LIMIT', 0, 50, 'WITHSCORES']]));
			const members = [1, 3, 5].flatMap((i) => replies[i].map(([m]) => m)).filter((m) => typeof m === 'string');
			const types = kept.details ? await pipeline(members.flatMap((m) => [['ZCARD', kept.details + m], ['SCARD', kept.details + m]])) : [];
			const details = new Map(members.map((m, i) => [m, ok(types[2 * i], 0) || ok(types[2 * i + 1], 0)]));
			fill(out, lanes.map(([name, , , note], i) => h('section', { class: 'lane', 'aria-label': name }, h('header', {}, h('span', {}, name), h('b', {}, count(replies[2 * i]))),
				h('ul', {}, replies[2 * i + 1].map(([m, s]) => line(null, m, note(s), details.get(m) ? h('small', {}, count(details.get(m)) + ' events') : null))))));
		} catch (e) {
			failed(out)(e);
		}
	}, 100);
	fill(box, h('div', { class: 'options' }, option('delay', 'Delay of a group in seconds', 5, draw), option('details', 'Prefix of details', 'details:', draw), h('span', { class: 'muted' }, 'Scores are times at which groups are due; a claim sets the end of its lease.')), out);
	ctx.onChange(draw);
	draw();
	const timer = setInterval(() => document.hidden || draw(), 1000); // time moves groups between the lanes
	return () => clearInterval(timer);
}

// waitingList shows the members with the lowest tickets in the room, the others in line; deadlines are those of check-ins.
export function waitingList(box, ctx) {
	let moving = [];
	const out = h('div', { class: 'lanes' });
	const draw = throttle(async () => {
		try {
			const places = Math.max(1, Math.min(1000, kept.places));
			const [all, room, queue] = await read([['ZCARD', ctx.key], ['ZRANGE', ctx.key, 0, places - 1, 'WITHSCORES'], ['ZRANGE', ctx.key, places, places + rows - 1, 'WITHSCORES']]);
			const members = [...room, ...queue].map(([m]) => m);
			const ends = members.length ? await run(...deadlinesOf(ctx.key, members)).catch(() => []) : [];
			const longest = Math.max(1000, ...ends.map((e) => e - now()));
			moving = [];
			const entry = ([m, s], i) => {
				const bar = drain(ends[i], longest), note = h('small', {});
				moving.push(() => {
					const left = bar.tick();
					note.textContent = ends[i] > 0 ? duration(left) : '';
				});
				const e = line(count(i < places ? i + 1 : i - places + 1), m, '', [h('small', {}, 'ticket ' + number(s)), ends[i] > 0 ? bar : null, note]);
				return e;
			};
			fill(out, h('section', { class: 'lane', 'aria-label': 'Room' }, h('header', {}, h('span', {}, 'Room'), h('b', {}, `${count(room.length)} of ${count(places)}`)),
				h('div', { class: 'seats', role: 'presentation' }, Array.from({ length: Math.min(places, 120) }, (_, i) => h('i', { class: i < room.length ? (ends[i] > 0 && ends[i] - now() < longest * 0.25 ? 'late' : 'on') : null }))), h('ol', {}, room.slice(0, rows).map(entry))),
			h('section', { class: 'lane', 'aria-label': 'Line' }, h('header', {}, h('span', {}, 'In line'), h('b', {}, count(Math.max(0, all - places)))), h('ol', {}, queue.map((one, i) => entry(one, room.length + i)))));
			tick();
		} catch (e) {
			failed(out)(e);
		}
	}, 80);
	const tick = () => moving.forEach((f) => f());
	fill(box, h('div', { class: 'options' }, option('places', 'Places in the room', 30, draw), h('span', { class: 'muted' }, 'Scores are tickets. A member without a check-in expires, and all behind it move up.'), h('span', { class: 'grow' }), addButton(ctx)), out);
	ctx.onChange(draw);
	draw();
	return ticking(tick);
}
