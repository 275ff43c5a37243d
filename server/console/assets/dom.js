// Elements are made by h and nothing else: text becomes text nodes, so no byte of a key or a value is
// ever parsed as HTML.

const svgTags = new Set(['svg', 'g', 'path', 'rect', 'line', 'circle', 'text', 'title', 'polyline']);

// h returns an element. Attributes whose names begin with "on" are listeners; false, null and undefined
// leave an attribute out.
export function h(tag, attrs, ...children) {
	const e = svgTags.has(tag) ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
	for (const [name, value] of Object.entries(attrs || {})) {
		if (value === false || value === null || value === undefined) continue;
		if (name.startsWith('on')) e.addEventListener(name.slice(2), value);
		else e.setAttribute(name, value === true ? '' : value);
	}
	e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
	return e;
}

// scrolls returns an element that scrolls sideways, also by the keyboard. A shadow marks each side on which there is more.
export function scrolls(label, ...children) {
	const box = h('div', { class: 'scroll-x', tabindex: '0', role: 'group', 'aria-label': label }, ...children);
	const mark = () => {
		box.classList.toggle('before', box.scrollLeft > 1);
		box.classList.toggle('after', box.scrollWidth - box.clientWidth - box.scrollLeft > 1);
	};
	box.addEventListener('scroll', mark, { passive: true });
	new ResizeObserver(mark).observe(box);
	new MutationObserver(mark).observe(box, { childList: true });
	return box;
}

export const $ = (selector, root = document) => root.querySelector(selector);

export function fill(element, ...children) {
	element.replaceChildren(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
	return element;
}

export const button = (label, onclick, attrs) => h('button', { type: 'button', onclick, ...attrs }, label);

// throttle returns a function that calls f at once, and again at most every ms milliseconds while it is called.
export function throttle(f, ms) {
	let timer = 0, again = false;
	const run = async () => {
		again = false;
		timer = 1;
		try {
			await f();
		} finally {
			timer = setTimeout(() => {
				timer = 0;
				if (again) run();
			}, ms);
		}
	};
	return () => {
		if (timer) again = true;
		else run();
	};
}

export function debounce(f, ms) {
	let timer;
	return (...args) => {
		clearTimeout(timer);
		timer = setTimeout(() => f(...args), ms);
	};
}

// say puts a sentence in the live region that screen readers follow.
export function say(text) {
	$('#say').textContent = text;
}

// menu is a button that opens a list of buttons, [label, listener] pairs. It closes when one is taken, and when another
// element is.
export function menu(label, items) {
	const box = h('details', { class: 'menu' }, h('summary', {}, label), h('div', {}, items.map(([text, f]) => button(text, () => {
		box.open = false;
		f();
	}))));
	box.addEventListener('focusout', (e) => e.relatedTarget && !box.contains(e.relatedTarget) && (box.open = false));
	box.addEventListener('keydown', (e) => {
		if (e.key !== 'Escape' || !box.open) return;
		box.open = false;
		box.firstChild.focus();
	});
	return box;
}

// tabs makes a tablist of [id, label] pairs; choose(id) is called for the one that the user takes.
export function tabs(label, list, current, choose) {
	const bar = h('div', { class: 'tabs', role: 'tablist', 'aria-label': label });
	const select = (id, focus) => {
		for (const b of bar.children) {
			const on = b.dataset.id === id;
			b.setAttribute('aria-selected', on);
			b.tabIndex = on ? 0 : -1;
			if (on && focus) b.focus();
		}
	};
	for (const [id, text] of list) {
		bar.append(h('button', { type: 'button', role: 'tab', 'data-id': id, onclick: () => { select(id); choose(id); } }, text));
	}
	bar.addEventListener('keydown', (e) => {
		const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
		if (!step) return;
		const at = list.findIndex(([id]) => id === document.activeElement.dataset.id);
		const next = list[(at + step + list.length) % list.length][0];
		e.preventDefault();
		select(next, true);
		choose(next);
	});
	bar.take = select;
	select(current);
	return bar;
}

// VirtualList shows the rows of a scrolling element of which only those in sight exist. Rows have one height.
export class VirtualList {
	constructor(box, height, draw) {
		this.box = box;
		this.height = height;
		this.draw = draw; // (index) => element
		this.count = 0;
		this.inner = h('div', { class: 'virtual', role: 'presentation' });
		box.append(this.inner);
		box.addEventListener('scroll', () => this.paint(), { passive: true });
		new ResizeObserver(() => this.paint()).observe(box);
	}
	range() {
		const first = Math.max(0, Math.floor(this.box.scrollTop / this.height) - 4);
		return [first, Math.min(this.count, first + Math.ceil(this.box.clientHeight / this.height) + 8)];
	}
	set(count) {
		this.count = count;
		this.inner.style.height = count * this.height + 'px';
		this.paint();
	}
	paint() {
		const [first, end] = this.range();
		const rows = [];
		for (let i = first; i < end; i++) {
			const row = this.draw(i);
			row.style.transform = `translateY(${i * this.height}px)`;
			rows.push(row);
		}
		this.inner.replaceChildren(...rows);
	}
	reveal(i) {
		const top = i * this.height;
		if (top < this.box.scrollTop) this.box.scrollTop = top;
		else if (top + this.height > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = top + this.height - this.box.clientHeight;
		this.paint();
	}
}
