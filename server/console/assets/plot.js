// Plots of time series as SVG: lines over the last 15 minutes, a cursor that says the values at an instant.

import { fill, h } from './dom.js';
import { clock } from './text.js';

const W = 400, H = 132, left = 44, right = 6, top = 8, bottom = 18;

// ceil returns a round number at or above n, and the step of its two grid lines.
function ceil(n, base = 10) {
	if (!(n > 0)) return 1;
	const p = base ** Math.floor(Math.log(n) / Math.log(base));
	for (const m of base === 10 ? [1, 2, 4, 5, 10] : [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]) if (m * p >= n) return m * p;
	return base * p;
}

// Plot draws series [{name, value(sample), area}] with format(number). Memory is scaled in powers of two: base 1024.
export class Plot {
	constructor(title, series, format, { base = 10, note } = {}) {
		Object.assign(this, { title, series, format, base, samples: [], at: null });
		this.note = h('small', {}, note || '');
		this.legend = h('div', { class: 'legend' });
		this.svg = h('svg', { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': title });
		this.element = h('div', { class: 'card plot' }, h('div', { class: 'cardhead' }, h('h2', {}, title), this.note), this.svg, this.legend);
		const point = (e) => {
			const box = this.svg.getBoundingClientRect();
			this.at = ((e.clientX - box.left) / box.width) * this.width;
			this.draw();
		};
		this.svg.addEventListener('pointermove', point);
		this.svg.addEventListener('pointerleave', () => {
			this.at = null;
			this.draw();
		});
		new ResizeObserver(([entry]) => {
			const width = Math.round(entry.contentRect.width) || W;
			if (width === this.width) return;
			this.width = width;
			this.svg.setAttribute('viewBox', `0 0 ${width} ${H}`);
			this.draw();
		}).observe(this.svg);
		this.width = W;
	}
	set(samples, span) {
		this.samples = samples;
		this.span = span;
		this.draw();
	}
	draw() {
		const s = this.samples;
		if (!s.length) return;
		const end = s[s.length - 1].t, begin = end - this.span, w = this.width - left - right, tall = H - top - bottom;
		const x = (t) => left + ((t - begin) / this.span) * w;
		let high = 0;
		for (const one of s) for (const k of this.series) if (one.t >= begin) high = Math.max(high, k.value(one) || 0);
		high = ceil(high, this.base);
		const y = (v) => top + tall - (v / high) * tall;
		const parts = [0, 0.5, 1].map((f) => [h('line', { class: 'grid', x1: left, x2: left + w, y1: y(high * f), y2: y(high * f) }), h('text', { x: left - 6, y: y(high * f) + 4, 'text-anchor': 'end' }, this.format(high * f))]);
		for (let f = 0; f <= 3; f++) {
			const t = begin + (this.span * f) / 3;
			parts.push(h('text', { x: x(t), y: H - 4, 'text-anchor': ['start', 'middle', 'middle', 'end'][f] }, f === 3 ? 'now' : clock(t, this.span < 240000)));
		}
		const step = Math.max(1, Math.floor(s.length / w));
		this.series.forEach((k, n) => {
			const points = [];
			for (let i = 0; i < s.length; i += step) {
				let v = 0;
				for (let j = i; j < Math.min(s.length, i + step); j++) v = Math.max(v, k.value(s[j]) || 0);
				if (s[i].t >= begin) points.push(x(s[i].t).toFixed(1) + ' ' + y(v).toFixed(1));
			}
			if (!points.length) return;
			const color = 'k' + (n + 1);
			if (n === 0) parts.push(h('path', { class: 'area f1', d: `M${points[0].split(' ')[0]} ${y(0)}L${points.join('L')}L${points[points.length - 1].split(' ')[0]} ${y(0)}Z` }));
			parts.push(h('path', { class: 'line ' + color, d: 'M' + points.join('L') }));
		});
		let shown = s[s.length - 1];
		if (this.at !== null) {
			const t = begin + ((this.at - left) / w) * this.span;
			shown = s.reduce((a, b) => (Math.abs(b.t - t) < Math.abs(a.t - t) ? b : a));
			parts.push(h('line', { class: 'cursor', x1: x(shown.t), x2: x(shown.t), y1: top, y2: top + tall }));
		}
		fill(this.svg, parts);
		const said = this.series.map((k, n) => [n, k.name, this.format(k.value(shown))]);
		fill(this.legend, this.at !== null && h('span', {}, clock(shown.t)), said.map(([n, name, v]) => h('span', {}, h('i', { class: 'f' + (n + 1) }), name + ' ', h('b', {}, v))));
		this.svg.setAttribute('aria-label', this.title + ': ' + said.map(([, name, v]) => name + ' ' + v).join(', '));
	}
}
