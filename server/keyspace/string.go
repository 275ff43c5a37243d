package keyspace

type String struct{}
