// Plots of time series as SVG: lines over a time, a cursor that says the values at an instant.

import { button, fill, h } from './dom.js';
import { clock, moment } from './text.js';

const W = 400, H = 132, right = 8, top = 10, bottom = 18;

// ceil returns a round number at or above n, and the step of its two grid lines.
function ceil(n, base = 10) {
	if (!(n > 0)) return 1;
	const p = base ** Math.floor(Math.log(n) / Math.log(base));
	for (const m of base === 10 ? [1, 2, 4, 5, 10] : [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]) if (m * p >= n) return m * p;
	return base * p;
}

// scale returns the upper end of an axis for values, and their highest one if that is a burst: far above all but
// three hundredths of them. The axis is that of the others then.
function scale(values, base) {
	const sorted = values.filter((v) => v > 0).sort((a, b) => a - b), high = sorted[sorted.length - 1] || 0;
	const most = sorted[Math.max(0, Math.floor(sorted.length * 0.97) - 1)] || 0;
	return sorted.length > 20 && high > 4 * most ? [ceil(most * 1.2, base), high] : [ceil(high, base), 0];
}

// Plot draws series [{name, value(sample), area}] with format(number). Memory is scaled in powers of two: base 1024.
export class Plot {
	constructor(title, series, format, { base = 10, note } = {}) {
		Object.assign(this, { title, series, format, base, samples: [], at: null });
		this.note = h('small', {}, note || '');
		this.whole = false; // the axis has a burst in it
		this.peak = button('', () => {
			this.whole = !this.whole;
			this.draw();
		}, { class: 'small', hidden: true, title: 'Fit the axis to the highest value' });
		this.legend = h('div', { class: 'legend' });
		this.svg = h('svg', { viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': title });
		this.element = h('div', { class: 'card plot' }, h('div', { class: 'cardhead' }, h('h2', {}, title), this.peak, this.note), this.svg, this.legend);
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
	// set draws samples over a time in ms that ends at an instant.
	set(samples, span, end) {
		Object.assign(this, { samples, span, end });
		this.draw();
	}
	draw() {
		const s = this.samples;
		if (!s.length) return;
		const end = this.end ?? s[s.length - 1].t, begin = end - this.span, tall = H - top - bottom;
		const inside = s.filter((one) => one.t >= begin);
		let [high, burst] = scale(inside.map((one) => Math.max(...this.series.map((k) => k.value(one) || 0))), this.base);
		this.peak.hidden = !burst;
		this.peak.textContent = 'peak ' + this.format(burst);
		this.peak.setAttribute('aria-pressed', this.whole);
		if (this.whole && burst) high = ceil(burst, this.base);
		const marks = [0, 0.5, 1].map((f) => [high * f, this.format(high * f)]);
		const left = 12 + 6.4 * Math.max(...marks.map(([, text]) => text.length)), w = this.width - left - right;
		const x = (t) => left + ((t - begin) / this.span) * w, y = (v) => top + tall - (Math.min(v, high) / high) * tall;
		const parts = marks.map(([v, text]) => [h('line', { class: 'grid', x1: left, x2: left + w, y1: y(v), y2: y(v) }), h('text', { x: left - 6, y: y(v) + 4, 'text-anchor': 'end' }, text)]);
		for (let f = 0; f <= 3; f++) {
			const t = begin + (this.span * f) / 3;
			parts.push(h('text', { x: x(t), y: H - 4, 'text-anchor': ['start', 'middle', 'middle', 'end'][f] }, f === 3 ? 'now' : clock(t, this.span < 240000)));
		}
		const step = Math.max(1, Math.floor(inside.length / w));
		this.series.forEach((k, n) => {
			const points = [];
			for (let i = 0; i < inside.length; i += step) {
				let v = 0;
				for (let j = i; j < Math.min(inside.length, i + step); j++) v = Math.max(v, k.value(inside[j]) || 0);
				points.push(x(inside[i].t).toFixed(1) + ' ' + y(v).toFixed(1));
				if (v > high) parts.push(h('path', { class: 'over f' + (n + 1), d: `M${x(inside[i].t).toFixed(1)} 2l4 6h-8z` }));
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
		fill(this.legend, this.at !== null && h('span', {}, this.span > 80000000 ? moment(shown.t) : clock(shown.t)), said.map(([n, name, v]) => h('span', {}, h('i', { class: 'f' + (n + 1) }), name + ' ', h('b', {}, v))));
		this.svg.setAttribute('aria-label', this.title + ': ' + said.map(([, name, v]) => name + ' ' + v).join(', '));
	}
}

// axis labels the bars of a histogram: the value of the highest one, and the names of the first, the middle and the last.
export const axis = (bars, high) => h('div', { class: 'axis' }, h('span', { class: 'high' }, high), [...new Set([0, bars.length >> 1, bars.length - 1])].map((i) => h('span', {}, bars[i]?.name)));
