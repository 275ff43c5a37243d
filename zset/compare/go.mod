module github.com/zsetd/zsetd/zset/compare

go 1.26.0

require (
	github.com/bytedance/gopkg v0.1.4
	github.com/zsetd/zsetd v0.0.0
)

require github.com/tidwall/btree v1.8.2 // indirect

replace github.com/zsetd/zsetd => ../..
