package browser

import (
	"strings"
	"testing"
)

// testMap shows the memory of folders as tiles, and the deadlines of keys as a histogram.
func testMap(t *testing.T, open func(...string) *page) {
	p := open()
	p.srv.Must("EVAL", `
		for i = 1, 30 do redis.call('SET', 'cache:page:' .. i, string.rep('x', 10000), 'EX', 500000) redis.call('SET', 'cache:part:' .. i, string.rep('x', 1000)) end
		for i = 1, 20 do redis.call('SET', 'user:' .. i, 'small', 'EX', 40000) end
		for i = 1, 60 do redis.call('SET', 'key' .. i, 'x') end`, 0)
	p.visit("keys")
	p.item("#browser .menu", "Memory and deadlines")
	p.shows("#detail", "All 140 keys")
	p.shows(".treemap .tile:first-child", "cache:")
	p.is(`document.querySelector('.tile[title^="22 others"]')`)
	// The areas are as the memory is, and no tile is over another.
	p.is(`(() => {
		const boxes = [...document.querySelectorAll('.tile')].map(e => e.getBoundingClientRect()), map = document.querySelector('.treemap').getBoundingClientRect();
		const area = boxes.reduce((n, b) => n + b.width * b.height, 0);
		const apart = (a, b) => a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
		return Math.abs(area / (map.width * map.height) - 1) < 0.02 && boxes[0].width * boxes[0].height / area > 0.9 && boxes.every((a, i) => boxes.slice(i + 1).every((b) => apart(a, b)));
	})()`)
	p.picture("map")
	p.shows(".histogram > div:nth-child(1)", "0\n<1m")
	p.shows(".histogram > div:nth-child(6)", "30\n<7d")
	p.shows(".histogram > div:nth-child(5)", "20\n<1d")
	p.shows(".histogram > div:last-child", "90\nnever")
	if got := p.text(".histogram"); strings.Count(got, "<") != 7 {
		t.Errorf("the histogram is %q", got)
	}
	p.click(".tile", "cache:")
	p.shows(".treemap .tile:first-child", "page:")
	p.shows(".treemap .tile:last-child", "part:")
	p.shows(".histogram > div:last-child", "30\nnever")
	p.click("#detail button", "Search cache:*")
	p.shows("#scan-text", "60 keys")
	p.item("#browser .menu", "Memory and deadlines")
	p.click(".tile", "user:")
	p.click(".tile", "7")
	p.is(`/^user:\d*7$/.test(document.querySelector('#detail .keyhead h2')?.textContent)`)

	// Of many keys a sample is read, and what all have is an estimate.
	p.srv.Must("EVAL", `for i = 1, 50000 do redis.call('SET', 'many:' .. i, 'x') end`, 0)
	p.visit("keys?map=1")
	p.is(`/A sample of 2\d,\d{3} of 50,140 keys: about [\d.]+ MB/.test(document.querySelector('#detail').innerText)`)
	p.is(`Math.abs(Number(document.querySelector('.histogram > div:last-child b').textContent.replace('k', '')) - 50) < 1`)
}
