// Sorted sets as a leaderboard, on an axis of time, and by the deadlines of their members.

import { button, fill, h, scrolls, throttle } from './dom.js';
import { CommandError, now, ok, pairs, pipeline, run } from './api.js';
import { Bin, clock, count, brief, day, duration, id, moment, score as number, show } from './text.js';
import { cell, expiry, failed, pageOf, table, tools } from './values.js';

// unitOf returns how many milliseconds a score of a time counts: 1000 for seconds, 1 for milliseconds, 0 if both
// scores cannot be times between 1990 and 2100.
export function unitOf(low, high) {
	const within = (unit) => [low, high].every((s) => s * unit > 631e9 && s * unit < 4102e9);
	return within(1000) ? 1000 : within(1) ? 1 : 0;
}

export async function timeUnit(key) {
	const [low, high] = await pipeline([['ZRANGE', key, 0, 0, 'WITHSCORES'], ['ZRANGE', key, -1, -1, 'WITHSCORES']]);
	if (low instanceof CommandError || !low.length) return 0;
	return unitOf(low[0][1], high[0][1]);
}

// endsOf returns the deadlines of members in milliseconds since 1970, -1 for none: those that the server keeps, or that
// the functions for Redis keep in a sorted set beside the key.
export const endsOf = async (key, members) => latest(members, ...await pipeline(readEnds(key, members)));

// readEnds returns the commands that read the deadlines of members, and latest what their replies say.
export function readEnds(key, members) {
	if (!members.length) return [];
	const name = key instanceof Bin ? '' : key, tagged = /^[^{]*\{[^}]+\}/.test(name);
	const beside = 'zsetd:deadlines:' + (tagged ? (/^:*\{.*\}$/.test(name) ? ':' : '') + name : '{' + name + '}');
	return [deadlinesOf(key, members), ['ZMSCORE', beside, ...members]];
}
const latest = (members, ...replies) => members.map((_, i) => Math.max(...replies.map((r) => ok(r, [])?.[i] ?? -1), -1));

// byMember returns a function of names and of the replies to readEnds for them, which returns that from a member to its
// deadline. While a reply is missing, the deadlines are those before.
export function byMember() {
	let ends = new Map();
	return (members, replies) => {
		if (!replies.includes(undefined)) ends = new Map(latest(members, ...replies).map((end, i) => [id(members[i]), end]));
		return ([m]) => ends.get(id(m)) ?? -1;
	};
}

// names returns the members of a reply, sorted: one that moves changes no query that names it.
export const names = (reply) => scored(reply).map(([m]) => m).sort();

export const deadlinesOf = (key, members) => ['ZPEXPIRETIME', key, 'MEMBERS', members.length, ...members];

// scored returns the members and scores of a reply: a live query writes an infinite score as text.
export const scored = (reply) => (Array.isArray(reply) ? reply.map(([m, s]) => [m, Number(String(s).replace('inf', 'Infinity'))]) : []);

export const memberTools = (ctx, member, score) => tools(
	['Score', () => ctx.edit({ title: 'Change the score of ' + show(member, 60), fields: [{ name: 'by', label: 'How', type: 'select', options: [['set', 'new score'], ['add', 'add to it']] }, { name: 's', label: 'Score', value: number(score), hint: 'A number, or a time: @now+1h.' }],
		conditions: [[['ZSCORE', ctx.key, member], score]], build: ({ by, s }) => (by === 'add' ? ['ZINCRBY', ctx.key, s, member] : s === number(score) ? [] : ['ZADDEX', ctx.key, 'XX', 'KEEPTTL', 'MEMBERS', 1, s, member]) }), 'Change the score of ' + show(member, 60)],
	['TTL', () => expiry(ctx, 'Time to live of ' + show(member, 60), 'Z', ['MEMBERS', 1, member]), 'TTL of ' + show(member, 60)],
	['Remove', () => ctx.edit({ title: 'Remove ' + show(member, 60) + '?', danger: true, verb: 'Remove', conditions: [[['ZSCORE', ctx.key, member], score]], build: () => ['ZREM', ctx.key, member] }), 'Remove ' + show(member, 60)]);

export const addButton = (ctx) => button('Add …', () => ctx.edit({ title: 'Add a member', fields: [{ name: 'm', label: 'Member' }, { name: 's', label: 'Score', value: '1', hint: 'A number, a time such as @now+10m, or * for the next ticket.' }, { name: 'ttl', label: 'Seconds until it expires, or nothing' }],
	conditions: ({ m }) => [[['ZSCORE', ctx.key, m], null]], build: ({ m, s, ttl }) => (ttl || s === '*' ? ['ZADDEX', ctx.key, ...(ttl ? ['EX', ttl] : []), 'MEMBERS', 1, s, m] : ['ZADD', ctx.key, s, m]) }));

// move lets rows glide from where they were: rows are matched by data-id. It reads all positions
// before it starts an animation, after which the next position would need another layout.
function move(box, draw) {
	const tops = () => [...box.querySelectorAll('[data-id]')].map((e) => [e, e.getBoundingClientRect().top]);
	const before = new Map(tops().map(([e, top]) => [e.dataset.id, top]));
	draw();
	if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
	for (const [e, is] of tops()) {
		const was = before.get(e.dataset.id);
		if (was !== undefined && Math.abs(was - is) > 1) e.animate([{ transform: `translateY(${was - is}px)` }, { transform: 'none' }], { duration: 180, easing: 'ease-out' });
	}
}

// rowId names a row by its member, cut so that a long member costs no attribute of a megabyte.
const rowId = (m) => id(m).slice(0, 200);

export function board(box, ctx) {
	let from = 0, rev = true, found = null, timed = 0, shown = {}; // the page, and by member its score and since when it has that
	const endOf = byMember();
	const body = scrolls('Members'), where = h('span', { class: 'muted' }), answer = h('span', { role: 'status' });
	const step = () => pageOf(ctx.facts());
	const commands = ([, , part]) => [['ZCARD', ctx.key], found === null ? ['ZCARD', ctx.key] : [rev ? 'ZREVRANK' : 'ZRANK', ctx.key, found, 'WITHSCORE'],
		['ZRANGE', ctx.key, from, from + step() - 1, ...(rev ? ['REV'] : []), 'WITHSCORES'], ...(part?.length ? [deadlinesOf(ctx.key, names(part))] : [])];
	const draw = ([all, place, part, ...ends]) => {
		if (part instanceof CommandError) return failed(body)(part);
		if (!part.length && from > 0) {
			from = Math.max(0, all - step());
			return setTimeout(() => live.ask());
		}
		const list = scored(part), page = `${from} ${rev}`, times = list.map(endOf(names(part), ends));
		timed = list.length ? unitOf(list[0][1], list[list.length - 1][1]) : 0;
		where.textContent = all ? `${count(from + 1)} to ${count(from + list.length)} of ${count(all)}` : 'empty';
		if (found !== null) answer.textContent = ok(place, null) ? `rank ${count(place[0])}, score ${number(scored([place])[0][1])}` : 'no longer a member';
		const was = shown.page === page ? shown.rows : null, t = Date.now();
		shown = { page, rows: new Map(list.map(([m, s]) => [id(m), was?.get(id(m))?.s === s ? was.get(id(m)) : { s, since: was ? t : 0 }])) };
		rows(list, times.some((e) => e > 0) ? times : [], (m) => t - shown.rows.get(id(m)).since < 900);
	};
	const rows = (part, ends, changed) => move(body, () => fill(body, table(['Rank', 'Member', 'Score', ...(ends.length ? ['Expires'] : []), ''], part.map(([m, s], i) => h('tr', { 'data-id': rowId(m), class: found !== null && id(found) === id(m) ? 'found' : changed(m) ? 'flash' : null },
		h('td', { class: 'n muted' }, count(from + i)), h('td', { class: 'value' }, cell(m)), h('td', { class: 'n' }, number(s), timed ? h('small', {}, ' ' + moment(s * timed)) : null),
		ends.length ? h('td', { class: 'n muted' }, ends[i] > 0 ? duration(Math.max(0, ends[i] - now())) : '') : null, memberTools(ctx, m, s))), 'Members by rank')));
	const go = (to) => {
		from = Math.max(0, Math.min(to, ctx.facts().length - 1));
		live.ask();
	};
	const find = h('form', { class: 'row', onsubmit: async (e) => {
		e.preventDefault();
		const text = e.target.elements.member.value;
		const rank = await run(rev ? 'ZREVRANK' : 'ZRANK', ctx.key, text).catch((err) => err);
		found = null;
		if (typeof rank === 'number') {
			found = text;
			return go(Math.max(0, rank - Math.floor(step() / 4)));
		}
		if (rank instanceof Error) return (answer.textContent = rank.message);
		answer.textContent = 'Looking for members that contain it …';
		const like = await search(ctx.key, text).catch(() => []);
		fill(answer, like.length ? ['No such member; similar: ', like.map((m) => [button(show(m, 40), () => {
			e.target.elements.member.value = m;
			e.target.requestSubmit();
		}, { class: 'small' }), ' '])] : 'No such member.');
	} }, h('input', { name: 'member', placeholder: 'Find a member', 'aria-label': 'Find a member', autocomplete: 'off', spellcheck: 'false' }), h('button', { type: 'submit' }, 'Find'));
	const order = h('select', { 'aria-label': 'Order', onchange: (e) => {
		rev = e.target.value === 'rev';
		answer.textContent = '';
		go(0);
	} }, h('option', { value: 'rev' }, 'highest first'), h('option', { value: '' }, 'lowest first'));
	fill(box, h('div', { class: 'pager' }, find, answer, h('span', { class: 'grow' }), order, addButton(ctx)), body,
		h('div', { class: 'pager' }, button('«', () => go(0), { 'aria-label': 'First page' }), button('‹', () => go(from - step()), { 'aria-label': 'Previous page' }), button('›', () => from + step() < ctx.facts().length && go(from + step()), { 'aria-label': 'Next page' }),
			button('»', () => go(Math.floor((ctx.facts().length - 1) / step()) * step()), { 'aria-label': 'Last page' }), h('input', { type: 'number', min: 0, placeholder: 'Go to rank', 'aria-label': 'Go to rank', onchange: (e) => go(Number(e.target.value)) }), where));
	const live = ctx.follow(commands, draw);
}

// search returns up to 12 members that contain a text, from at most 100 steps of ZSCAN.
async function search(key, text) {
	const out = [];
	let cursor = '0', steps = 0;
	do {
		const [next, list] = await run('ZSCAN', key, cursor, 'MATCH', '*' + text.replace(/[*?[\]\\]/g, '\\$&') + '*', 'COUNT', 1000);
		for (const [m] of pairs(list)) out.push(m);
		cursor = next;
	} while (cursor !== '0' && out.length < 12 && ++steps < 100);
	return out.filter((m) => !(m instanceof Bin)).slice(0, 12);
}

const steps = [1, 5, 10, 50, 100, 500, 1e3, 2e3, 5e3, 15e3, 30e3, 6e4, 3e5, 9e5, 18e5, 36e5, 108e5, 216e5, 432e5, 864e5, 1728e5, 6048e5, 2592e6, 7776e6, 31536e6, 157680e6, 315360e6];

export function timeline(box, ctx) {
	const W = () => Math.max(280, svg.clientWidth || 800), H = 200, base = 172;
	let unit = 1000, from = 0, to = 1, all = [0, 1], ready = false, drag = null, sliding = 0;
	const svg = h('svg', { class: 'timeline', preserveAspectRatio: 'none', role: 'img', tabindex: 0, 'aria-label': 'Members on the axis of time' });
	const due = h('div', { class: 'lane' }), next = h('div', { class: 'lane' }), hint = h('span', { class: 'muted' });
	const units = h('select', { 'aria-label': 'Scores are', onchange: (e) => {
		unit = Number(e.target.value);
		fit().then(draw);
	} }, h('option', { value: 1000 }, 'seconds since 1970'), h('option', { value: 1 }, 'milliseconds since 1970'), h('option', { value: 0 }, 'numbers'));
	const x = (s) => ((s - from) / (to - from)) * W();
	const at = () => now() / (unit || 1);

	async function fit() {
		const [low, high] = await pipeline([['ZRANGE', ctx.key, 0, 0, 'WITHSCORES'], ['ZRANGE', ctx.key, -1, -1, 'WITHSCORES']]);
		if (low instanceof CommandError) throw low;
		if (!low.length) return;
		all = [low[0][1], high[0][1]].map((s) => Math.max(-1e300, Math.min(1e300, s)));
		if (!ready) {
			unit = unitOf(...all) || (Math.abs(all[0]) < 1e8 ? 0 : 1000);
			units.value = unit;
		}
		ready = true;
		const second = unit ? 1000 / unit : 1;
		if (unit) all = [Math.min(all[0], at() - 5 * second), Math.max(all[1], at() + 5 * second)];
		const pad = (all[1] - all[0]) * 0.04 || 1;
		[from, to] = [all[0] - pad, all[1] + pad];
	}

	const draw = throttle(async () => {
		if (!ready) return;
		try {
			const bins = Math.max(20, Math.min(160, Math.round(W() / 8))), wide = (to - from) / bins, t = at(), edge = (i) => number(from + i * wide);
			const head = [['ZCOUNT', ctx.key, number(from), number(to)], ['ZCARD', ctx.key]];
			if (unit) head.push(['ZCOUNT', ctx.key, '-inf', number(t)], ['ZRANGE', ctx.key, number(t), '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 8, 'WITHSCORES'], ['ZRANGE', ctx.key, '(' + number(t), '+inf', 'BYSCORE', 'LIMIT', 0, 8, 'WITHSCORES'], ['ZRANGE', ctx.key, 0, 7, 'WITHSCORES']);
			const [inside, card, past, , coming, oldest] = await pipeline(head);
			if (inside instanceof CommandError) throw inside;
			const few = inside <= 300 && pageOf(ctx.facts()) > 50;
			let marks;
			if (few) {
				const list = await run('ZRANGE', ctx.key, number(from), number(to), 'BYSCORE', 'LIMIT', 0, 300, 'WITHSCORES');
				const lanes = [], named = list.length <= 40, tall = named ? 14 : 12;
				marks = list.map(([m, s]) => {
					const name = named ? show(m, 18).slice(0, 20) : '', wide = 12 + name.length * 7;
					let lane = lanes.findIndex((end) => end < x(s) - 6);
					if (lane < 0) lane = lanes.length < 11 ? lanes.length : Math.floor(Math.abs(Math.sin(s)) * 11);
					lanes[lane] = x(s) + wide;
					const y = base - 10 - lane * tall;
					return [h('circle', { class: 'dot' + (unit && s <= t ? ' due' : ''), cx: x(s), cy: y, r: 4.5, 'data-id': rowId(m) }, h('title', {}, show(m, 200) + '\n' + label(s))),
						name && h('text', { class: 'label', x: x(s) + 8, y: y + 4 }, name)];
				});
			} else {
				const counts = await pipeline(Array.from({ length: bins }, (_, i) => ['ZCOUNT', ctx.key, edge(i), '(' + edge(i + 1)]));
				const high = Math.max(1, ...counts);
				marks = counts.map((n, i) => n && h('rect', { class: unit && from + (i + 0.5) * wide <= t ? 'due' : 'bar1', x: (i * W()) / bins + 0.5, width: W() / bins - 1, y: base - (n / high) * (base - 34), height: (n / high) * (base - 34) }, h('title', {}, `${count(n)} from ${label(from + i * wide)}`)));
			}
			svg.setAttribute('viewBox', `0 0 ${W()} ${H}`);
			const line = unit && t > from && t < to;
			fill(svg, unit && t > from ? h('rect', { class: 'dueback', x: 0, y: 0, width: Math.min(W(), x(t)), height: base }) : null, ticks(), marks,
				line ? [h('line', { class: 'now', x1: x(t), x2: x(t), y1: 0, y2: base }), h('text', { class: 'nowtext', x: x(t) + 5, y: 14 }, 'now')] : null);
			svg.setAttribute('aria-label', `${count(inside)} members from ${label(from)} to ${label(to)}` + (unit ? `; ${count(past)} are due` : ''));
			hint.textContent = `${count(inside)} of ${count(card)} in sight` + (few ? '' : ', counted in ' + bins + ' parts');
			due.hidden = next.hidden = !unit;
			if (unit) {
				fill(due, h('header', {}, h('span', {}, 'Due, or past'), h('b', {}, count(past))), h('ul', {}, (past ? oldest : []).filter(([, s]) => s <= t).map(([m, s]) => h('li', {}, h('span', { class: 'name' }, show(m, 100)), h('small', {}, duration((t - s) * unit) + ' ago')))));
				fill(next, h('header', {}, h('span', {}, 'Next'), h('b', {}, count(card - past))), h('ul', {}, coming.map(([m, s]) => h('li', {}, h('span', { class: 'name' }, show(m, 100)), h('small', {}, 'in ' + duration((s - t) * unit))))));
			}
		} catch (e) {
			failed(due)(e);
		}
	}, 90);

	const label = (s) => (unit ? moment(s * unit) : number(s));
	function ticks() {
		const out = [h('line', { class: 'grid', x1: 0, x2: W(), y1: base, y2: base })], wide = to - from, most = Math.max(2, Math.floor(W() / 110));
		let step;
		if (unit) step = (steps.find((s) => (wide * unit) / s <= most) || steps[steps.length - 1]) / unit;
		else {
			const p = 10 ** Math.floor(Math.log10(wide / most || 1));
			step = [1, 2, 5, 10].map((m) => m * p).find((s) => wide / s <= most) || 10 * p;
		}
		const shift = unit && step * unit >= 36e5 ? (new Date().getTimezoneOffset() * 6e4) / unit : 0;
		for (let s = Math.ceil((from - shift) / step) * step + shift, i = 0; s <= to && i < 40; s += step, i++) {
			const ms = s * unit, text = !unit ? brief(s) : step * unit >= 864e5 ? day(ms) : step * unit >= 6e4 ? (new Date(ms).getHours() === 0 && new Date(ms).getMinutes() === 0 ? day(ms).slice(5) + ' ' : '') + clock(ms, false) : step * unit >= 1000 ? clock(ms) : clock(ms) + '.' + String(Math.round(ms % 1000)).padStart(3, '0');
			out.push(h('line', { class: 'grid', x1: x(s), x2: x(s), y1: base, y2: base + 5 }), h('text', { x: x(s), y: base + 19, 'text-anchor': x(s) < 40 ? 'start' : x(s) > W() - 40 ? 'end' : 'middle' }, text));
		}
		return out;
	}
	// slide keeps a view that is around now there.
	const slide = () => sliding && ([from, to] = [at() - sliding, at() + sliding]);
	const zoom = (factor, around = 0.5) => {
		sliding *= factor;
		const middle = from + (to - from) * around, wide = Math.max((to - from) * factor, unit ? 10 / unit : 1e-6);
		from = middle - wide * around;
		to = from + wide;
		draw();
	};
	const pan = (part) => {
		sliding = 0;
		const by = (to - from) * part;
		from += by;
		to += by;
		draw();
	};
	svg.addEventListener('wheel', (e) => {
		e.preventDefault();
		const box = svg.getBoundingClientRect();
		if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan(e.deltaX / W());
		else zoom(e.deltaY > 0 ? 1.25 : 0.8, (e.clientX - box.left) / box.width);
	}, { passive: false });
	svg.addEventListener('pointerdown', (e) => {
		drag = e.clientX;
		svg.setPointerCapture(e.pointerId);
	});
	svg.addEventListener('pointermove', (e) => {
		if (drag === null) return;
		pan((drag - e.clientX) / W());
		drag = e.clientX;
	});
	for (const end of ['pointerup', 'pointercancel']) svg.addEventListener(end, () => (drag = null));
	svg.addEventListener('keydown', (e) => {
		const f = { '+': () => zoom(0.7), '=': () => zoom(0.7), '-': () => zoom(1.4), ArrowLeft: () => pan(-0.1), ArrowRight: () => pan(0.1), 0: whole }[e.key];
		if (!f) return;
		e.preventDefault();
		f();
	});
	function whole() {
		sliding = 0;
		fit().then(draw, failed(due));
	}
	const around = (ms) => button(ms.label, () => {
		sliding = ms.ms / (unit || 1) / 2;
		slide();
		draw();
	}, { class: 'small' });
	fill(box, h('div', { class: 'pager' }, units, button('+', () => zoom(0.6), { 'aria-label': 'Zoom in' }), button('−', () => zoom(1.6), { 'aria-label': 'Zoom out' }), button('All', whole), h('span', { class: 'muted' }, 'around now:'), [{ ms: 6e4, label: '1 min' }, { ms: 36e5, label: '1 h' }, { ms: 864e5, label: '1 d' }].map(around), hint, h('span', { class: 'grow' }), addButton(ctx)),
		svg, h('div', { class: 'columns lanes' }, due, next));
	let follow = false;
	ctx.follow(null, async () => {
		// A view of the whole set stays one when a member outside of it arrives.
		const [low, high] = all;
		follow = from <= low && to >= high;
		if (follow) await fit().catch(() => {});
		draw();
	});
	whole();
	// The line of the present moves, and members come due.
	const timer = setInterval(() => {
		if (!unit || document.hidden) return;
		slide();
		draw();
	}, 1000);
	const resized = new ResizeObserver(() => draw());
	resized.observe(svg);
	return () => {
		clearInterval(timer);
		resized.disconnect();
	};
}

// drain is a bar that empties until a deadline; longest is the time of a full one.
export function drain(end, longest) {
	const bar = h('i', { class: end > 0 ? '' : 'never' });
	const e = h('span', { class: 'drain', role: 'presentation' }, bar);
	e.tick = () => {
		const left = end > 0 ? Math.max(0, end - now()) : longest;
		bar.style.transform = `scaleX(${Math.min(1, left / longest)})`;
		bar.classList.toggle('soon', end > 0 && left < Math.min(longest * 0.2, 60000));
		return left;
	};
	e.tick();
	return e;
}

// draining shows a page of members or fields with bars, by the deadline where all fit a page of 1000.
function draining(box, ctx, read) {
	let from = 0, bars = [];
	const body = scrolls('Members'), where = h('span', { class: 'muted' });
	let longest = 1;
	const draw = throttle(async () => {
		try {
			const { list, all, next, step } = await read(from);
			const left = list.map(([, end]) => end - now()).filter((n) => n > 0);
			longest = Math.max(1000, ...left, left.length ? Math.min(longest, Math.max(...left) * 2) : 0);
			if (list.length === all) list.sort((a, b) => (a[1] > 0 ? a[1] : Infinity) - (b[1] > 0 ? b[1] : Infinity));
			bars = [];
			move(body, () => fill(body, list.length ? table(['Member', 'Left', 'Expires', ...(ctx.type === 'zset' ? [''] : [])], list.map(([m, end, score]) => {
				const bar = drain(end, longest), text = h('td', { class: 'n' });
				bars.push([bar, text, end]);
				return h('tr', { 'data-id': rowId(m) }, h('td', { class: 'value' }, cell(m)), h('td', { class: 'drains' }, bar), text, ctx.type === 'zset' ? memberTools(ctx, m, score) : null);
			}), 'Deadlines') : h('div', { class: 'empty' }, 'Empty.')));
			tick();
			const expiring = list.filter(([, end]) => end > 0).length;
			where.textContent = `${count(expiring)} of ${count(list.length)} ${list.length === all ? '' : 'on this page '}expire` + (list.length === all ? ', the soonest first' : ` · ${count(from)} to ${count(from + list.length)} of ${count(all)}`);
			pager.hidden = list.length >= all && !from;
			forward.onclick = () => next !== null && ((from = next), draw());
			back.onclick = () => ((from = Math.max(0, from - step)), draw());
		} catch (e) {
			failed(body)(e);
		}
	}, 90);
	const tick = () => {
		for (const [bar, text, end] of bars) {
			const left = bar.tick();
			text.textContent = end > 0 ? duration(left) : 'never';
		}
	};
	const forward = h('button', { type: 'button' }, 'Next ›'), back = h('button', { type: 'button' }, '‹ Previous');
	const pager = h('span', {}, back, ' ', forward);
	fill(box, h('div', { class: 'pager' }, pager, where, h('span', { class: 'grow' }), ctx.type === 'zset' ? addButton(ctx) : null), body);
	ctx.follow(null, draw);
	const timer = setInterval(() => document.hidden || tick(), 250);
	return () => clearInterval(timer);
}

export const deadlines = (box, ctx) => draining(box, ctx, async (from) => {
	const step = ctx.facts().length <= 1000 && pageOf(ctx.facts()) >= 50 ? 1000 : pageOf(ctx.facts());
	const [all, list] = await pipeline([['ZCARD', ctx.key], ['ZRANGE', ctx.key, from, from + step - 1, 'WITHSCORES']]);
	if (list instanceof CommandError) throw list;
	const ends = list.length ? await run(...deadlinesOf(ctx.key, list.map(([m]) => m))) : [];
	return { list: list.map(([m, s], i) => [m, ends[i], s]).filter(([, end]) => end !== -2), all, step, next: from + step < all ? from + step : null };
});

export const fieldDeadlines = (box, ctx) => {
	const cursors = new Map([[0, '0']]);
	return draining(box, ctx, async (from) => {
		const step = pageOf(ctx.facts());
		const [all, reply] = await pipeline([['HLEN', ctx.key], ['HSCAN', ctx.key, cursors.get(from) || '0', 'COUNT', step, 'NOVALUES']]);
		if (reply instanceof CommandError) throw reply;
		const fields = reply[1];
		cursors.set(from + step, reply[0]);
		const ends = fields.length ? await run('HPEXPIRETIME', ctx.key, 'FIELDS', fields.length, ...fields) : [];
		return { list: fields.map((f, i) => [f, ends[i]]), all, step, next: reply[0] === '0' ? null : from + step };
	});
};
