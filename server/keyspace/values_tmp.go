package keyspace

type String struct{}
type List struct{}
type Set struct{}
type Hash struct{}
