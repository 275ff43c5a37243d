package keyspace

type Hash struct{}
