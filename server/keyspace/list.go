package keyspace

type List struct{}
