// Package judge is for tests that compare zsetd with other servers: it starts redis-server and
// others, and sends commands to them and to zsetd.
package judge
