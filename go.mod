module github.com/zsetd/zsetd

go 1.26

require (
	github.com/tidwall/btree v1.8.2
	github.com/tidwall/redcon v1.6.2
	go.etcd.io/bbolt v1.5.0
)

require (
	github.com/tidwall/match v1.1.1 // indirect
	golang.org/x/sys v0.45.0 // indirect
)
