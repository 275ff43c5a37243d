package keyspace

type Set struct{}
