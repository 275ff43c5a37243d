// Sorted sets as a leaderboard, on an axis of time, and by the deadlines of their members.

import { button, debounce, fill, h, scrolls } from './dom.js';
import { CommandError, now, ok, pairs, pipeline, run } from './api.js';
import { Bin, clock, count, brief, day, duration, id, moment, score as number, show } from './text.js';
import { byMember, cell, expiry, failed, laneRow, latest, names, pageOf, table, tools } from './values.js';

// unitOf returns how many milliseconds a score of a time counts: 1000 for seconds, 1 for milliseconds, 0 if both
// scores cannot be times between 1990 and 2100.
export function unitOf(low, high) {
	const within = (unit) => [low, high].every((s) => s * unit > 631e9 && s * unit < 4102e9);
	return within(1000) ? 1000 : within(1) ? 1 : 0;
}

// outermost returns the commands that read the members with the lowest and the highest score.
export const outermost = (key) => [0, -1].map((i) => ['ZRANGE', key, i, i, 'WITHSCORES']);

// instant returns the score of a time, in milliseconds from the present: one that moves with it, or, where commands run
// again, perhaps on a server that has none, one that does not.
export const instant = (unit, ms, still) => (still ? number((now() + ms) / unit) : `@now${unit === 1 ? 'ms' : ''}${ms < 0 ? '-' : '+'}${Math.abs(Math.round(ms))}ms`);

// endsOf returns the deadlines of members in milliseconds since 1970, -1 for none: those that the server keeps, or that
// the functions for Redis keep in a sorted set beside the key.
export const endsOf = async (key, members) => latest(members, ...await pipeline(readEnds(key, members)));

// readEnds returns the commands that read the deadlines of members.
export function readEnds(key, members) {
	if (!members.length) return [];
	const name = key instanceof Bin ? '' : key, tagged = /^[^{]*\{[^}]+\}/.test(name);
	const beside = 'zsetd:deadlines:' + (tagged ? (/^:*\{.*\}$/.test(name) ? ':' : '') + name : '{' + name + '}');
	return [deadlinesOf(key, members), ['ZMSCORE', beside, ...members]];
}

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
	let unit = 1000, from = 0, to = 1, all = [], drag = null, sliding = 0, seen = null; // seen has the replies for the window, and when it began where
	const svg = h('svg', { class: 'timeline', preserveAspectRatio: 'none', role: 'img', tabindex: 0, 'aria-label': 'Members on the axis of time' });
	const due = h('div', { class: 'lane' }), next = h('div', { class: 'lane' }), hint = h('span', { class: 'muted' });
	const units = h('select', { 'aria-label': 'Scores are', onchange: (e) => {
		unit = Number(e.target.value);
		whole();
	} }, h('option', { value: 1000 }, 'seconds since 1970'), h('option', { value: 1 }, 'milliseconds since 1970'), h('option', { value: 0 }, 'numbers'));
	const x = (s) => ((s - from) / (to - from)) * W();
	const at = () => now() / (unit || 1);

	// fit makes the window that of all members. It stays one when a member outside of it arrives.
	const fit = () => {
		const second = unit ? 1000 / unit : 1, low = unit ? Math.min(all[0], at() - 5 * second) : all[0], high = unit ? Math.max(all[1], at() + 5 * second) : all[1];
		const pad = (high - low) * 0.04 || 1;
		[from, to] = [low - pad, high + pad];
	};

	const bins = () => Math.max(20, Math.min(80, Math.round(W() / 12))); // a stream has at most 100 queries
	const isFew = (inside) => inside <= 300 && pageOf(ctx.facts()) > 50;
	const commands = ([low, high, inside], reading) => {
		const list = outermost(ctx.key);
		if (!all.length) return list;
		const n = bins(), edge = (i) => (sliding ? instant(unit, (i / n - 0.5) * 2 * sliding * unit, reading) : number(from + (i * (to - from)) / n));
		list.push(['ZCOUNT', ctx.key, edge(0), edge(n)]);
		const present = instant(unit, 0, reading);
		if (unit) list.push(['ZCOUNT', ctx.key, '-inf', present], ['ZRANGE', ctx.key, '(' + present, '+inf', 'BYSCORE', 'LIMIT', 0, 8, 'WITHSCORES'], ['ZRANGE', ctx.key, present, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 8, 'WITHSCORES']);
		if (typeof inside !== 'number') return list;
		if (isFew(inside)) return [...list, ['ZRANGE', ctx.key, edge(0), edge(n), 'BYSCORE', 'LIMIT', 0, 300, 'WITHSCORES']];
		return [...list, ...Array.from({ length: n }, (_, i) => ['ZCOUNT', ctx.key, edge(i), '(' + edge(i + 1)])];
	};
	const draw = ([low, high, inside, ...more]) => {
		const bad = [low, high, inside, ...more].find((one) => one instanceof CommandError);
		if (bad) return failed(due)(bad);
		const ends = [low, high].map((one) => Math.max(-1e300, Math.min(1e300, scored(one)[0]?.[1])));
		if (low.length && high.length && String(ends) !== String(all)) {
			const follows = from <= all[0] && to >= all[1];
			if (!all.length) units.value = unit = unitOf(...ends) || (Math.abs(ends[0]) < 1e8 ? 0 : 1000);
			const first = !all.length;
			all = ends;
			if (first || follows) fit();
			return ask();
		}
		slide();
		const [past, coming, passed] = unit ? more.splice(0, 3) : [];
		if (inside !== undefined && !more.includes(undefined)) seen = { inside, past, coming: scored(coming), passed: scored(passed), few: Array.isArray(more[0]), marks: Array.isArray(more[0]) ? scored(more[0]) : more, from, to, t: sliding && at() };
		paint();
	};
	const paint = () => {
		if (!seen) return;
		const { inside, past, coming, passed, few } = seen, t = at(), n = seen.marks.length;
		let marks;
		if (few) {
			const list = seen.marks;
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
			const high = Math.max(1, ...seen.marks), begin = seen.from + (seen.t && t - seen.t), wide = (seen.to - seen.from) / n;
			marks = seen.marks.map((one, i) => {
				const s = begin + i * wide, tall = (one / high) * (base - 34);
				return one && h('rect', { class: unit && s + wide / 2 <= t ? 'due' : 'bar1', x: x(s) + 0.5, width: Math.max(1, x(s + wide) - x(s) - 1), y: base - tall, height: tall }, h('title', {}, `${count(one)} from ${label(s)}`));
			});
		}
		svg.setAttribute('viewBox', `0 0 ${W()} ${H}`);
		const line = unit && t > from && t < to, card = ctx.facts().length;
		fill(svg, unit && t > from ? h('rect', { class: 'dueback', x: 0, y: 0, width: Math.min(W(), x(t)), height: base }) : null, ticks(), marks,
			line ? [h('line', { class: 'now', x1: x(t), x2: x(t), y1: 0, y2: base }), h('text', { class: 'nowtext', x: x(t) + (x(t) > W() - 40 ? -5 : 5), y: 14, 'text-anchor': x(t) > W() - 40 ? 'end' : 'start' }, 'now')] : null);
		svg.setAttribute('aria-label', `${count(inside)} members from ${label(from)} to ${label(to)}` + (unit ? `; ${count(past)} are due` : ''));
		hint.textContent = `${count(inside)} of ${count(card)} in sight` + (few ? '' : ', counted in ' + n + ' parts');
		due.hidden = next.hidden = !unit;
		if (unit) {
			fill(due, h('header', {}, h('span', {}, 'Due, or past'), h('b', {}, count(past))), h('ul', {}, passed.filter(([, s]) => s <= t).map(([m, s]) => laneRow(m, duration((t - s) * unit) + ' ago'))));
			fill(next, h('header', {}, h('span', {}, 'Next'), h('b', {}, count(card - past))), h('ul', {}, coming.map(([m, s]) => laneRow(m, 'in ' + duration(Math.max(0, s - t) * unit)))));
		}
	};
	// The marks move with the window at once. Other commands are asked for when it stands still.
	const ask = debounce(() => live.ask(), 80);
	const moved = () => {
		paint();
		ask();
	};

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
		moved();
	};
	const pan = (part) => {
		sliding = 0;
		const by = (to - from) * part;
		from += by;
		to += by;
		moved();
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
		if (all.length) fit();
		moved();
	}
	const around = (ms) => button(ms.label, () => {
		sliding = ms.ms / (unit || 1) / 2;
		slide();
		moved();
	}, { class: 'small' });
	fill(box, h('div', { class: 'pager' }, units, button('+', () => zoom(0.6), { 'aria-label': 'Zoom in' }), button('−', () => zoom(1.6), { 'aria-label': 'Zoom out' }), button('All', whole), h('span', { class: 'muted' }, 'around now:'), [{ ms: 6e4, label: '1 min' }, { ms: 36e5, label: '1 h' }, { ms: 864e5, label: '1 d' }].map(around), hint, h('span', { class: 'grow' }), addButton(ctx)),
		svg, h('div', { class: 'columns lanes' }, due, next));
	const live = ctx.follow(commands, draw);
	// The line of the present moves, and members come due.
	const timer = setInterval(() => {
		if (!unit || document.hidden) return;
		slide();
		paint();
		live.read();
	}, 1000);
	const resized = new ResizeObserver(moved);
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

// draining shows a page of members or fields with bars, by the deadline where all fit a page of 1000. commands(replies,
// from, step, whole) returns those that read a page, and page(replies, from) what it has; next is where the page after it begins.
function draining(box, ctx, commands, page) {
	let from = 0, bars = [];
	const body = scrolls('Members'), where = h('span', { class: 'muted' });
	const whole = () => ctx.facts().length <= 1000 && pageOf(ctx.facts()) >= 50, step = () => (whole() ? 1000 : pageOf(ctx.facts()));
	let longest = 1;
	const draw = (r) => {
		if (r[0] instanceof CommandError) return failed(body)(r[0]);
		const all = ctx.facts().length, { list, next } = page(r, from, step());
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
		forward.onclick = () => next !== null && go(next);
		back.onclick = () => go(Math.max(0, from - step()));
	};
	const go = (to) => {
		from = to;
		live.ask();
	};
	const tick = () => {
		for (const [bar, text, end] of bars) {
			const left = bar.tick();
			text.textContent = end > 0 ? duration(left) : 'never';
		}
	};
	const forward = h('button', { type: 'button' }, 'Next ›'), back = h('button', { type: 'button' }, '‹ Previous');
	const pager = h('span', {}, back, ' ', forward);
	fill(box, h('div', { class: 'pager' }, pager, where, h('span', { class: 'grow' }), ctx.type === 'zset' ? addButton(ctx) : null), body);
	const live = ctx.follow((r) => commands(r, from, step(), whole()), draw);
	const timer = setInterval(() => document.hidden || tick(), 250);
	return () => clearInterval(timer);
}

export const deadlines = (box, ctx) => {
	const endOf = byMember();
	return draining(box, ctx, ([list], from, step) => [['ZRANGE', ctx.key, from, from + step - 1, 'WITHSCORES'], ...(list?.length ? [deadlinesOf(ctx.key, names(list))] : [])], ([list, ...ends], from, step) => {
		const end = endOf(names(list), ends);
		return { list: scored(list).map(([m, s]) => [m, end([m]), s]), next: from + step < ctx.facts().length ? from + step : null };
	});
};

export const fieldDeadlines = (box, ctx) => {
	const cursors = new Map([[0, '0']]), endOf = byMember();
	const fields = (reply) => (Array.isArray(reply) ? (Array.isArray(reply[1]) ? reply[1] : reply).map((f) => [f]) : []);
	return draining(box, ctx, ([reply], from, step, whole) => {
		const list = names(fields(reply));
		return [whole && !from ? ['HKEYS', ctx.key] : ['HSCAN', ctx.key, cursors.get(from) || '0', 'COUNT', step, 'NOVALUES'], ...(list.length ? [['HPEXPIRETIME', ctx.key, 'FIELDS', list.length, ...list]] : [])];
	}, ([reply, ...ends], from, step) => {
		const list = fields(reply), end = endOf(names(list), ends), cursor = Array.isArray(reply[1]) ? reply[0] : '0';
		cursors.set(from + step, cursor);
		return { list: list.map(([f]) => [f, end([f])]), next: cursor === '0' ? null : from + step };
	});
};
