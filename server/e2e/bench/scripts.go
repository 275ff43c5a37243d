//go:build linux

package main

import (
	"crypto/sha1"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Sources of scripts. That of limiterScript is a script of its own for each number.
const (
	emptyScript   = "return 1"
	loopScript    = "local sum = 0 for i = 1, 1000 do if i % 3 == 0 then sum = sum + i * 2 else sum = sum - i end end return sum"
	callsScript   = "for i = 1, 10 do redis.call('INCRBY', KEYS[1], i) end return redis.call('GET', KEYS[1])"
	jsonScript    = `local d = cjson.decode('{"id":1234,"price":2.5,"tags":["a","b","c"],"ok":true}') d.id = d.id + 1 return cjson.encode(d)`
	packScript    = `local d = cmsgpack.unpack('\132\162id\205\004\210\165price\203\064\004\0\0\0\0\0\0\164tags\147\161a\161b\161c\162ok\195') d.id = d.id + 1 return cmsgpack.pack(d)`
	structScript  = "local a, b, c, d = struct.unpack('>I4i2dBc0', struct.pack('>I4i2dBc0', 1234, -5, 2.5, 3, 'abc')) return a + b + c .. d"
	limiterScript = "local n = redis.call('incrby', KEYS[1], ARGV[1]) if n == tonumber(ARGV[1]) then redis.call('expire', KEYS[1], ARGV[2]) end " +
		"if n > tonumber(ARGV[3]) then return redis.error_reply('LIMIT of ' .. KEYS[1] .. ' reached') end return n -- "
)

// scriptWorks returns the works that run scripts. The last one is left out without BullMQ.
func scriptWorks() []work {
	const key = " 1 counter:{r/100000}"
	list := []work{
		{name: "EVALSHA, empty", pipeline: 16, command: "EVALSHA " + digest(emptyScript) + " 0", data: scripts},
		{name: "EVALSHA, a loop of 1 000", pipeline: 1, command: "EVALSHA " + digest(loopScript) + " 0", data: scripts},
		{name: "EVALSHA, ten redis.call", pipeline: 16, command: "EVALSHA " + digest(callsScript) + key, data: scripts},
		{name: "EVALSHA, cjson", pipeline: 16, command: "EVALSHA " + digest(jsonScript) + " 0", data: scripts},
		{name: "EVALSHA, cmsgpack", pipeline: 16, command: "EVALSHA " + digest(packScript) + " 0", data: scripts},
		{name: "EVALSHA, struct", pipeline: 16, command: "EVALSHA " + digest(structScript) + " 0", data: scripts},
		{name: "EVAL of a new script", pipeline: 16, command: "EVAL " + strings.ReplaceAll(limiterScript, " ", "{_}") + "{r/1000000000}" + key + " 1 60 1000000000"},
	}
	if source := bullScript(); source != "" {
		list = append(list, work{name: "EVALSHA, BullMQ", pipeline: 16, command: "EVALSHA " + digest(source) + bullArguments(), data: bullQueue})
	}
	return list
}

// scripts loads the scripts.
func scripts(c *conn, _ limits) error {
	for _, source := range []string{emptyScript, loopScript, callsScript, jsonScript, packScript, structScript} {
		if err := c.do("SCRIPT", "LOAD", source); err != nil {
			return err
		}
	}
	return nil
}

func digest(source string) string { return fmt.Sprintf("%x", sha1.Sum([]byte(source))) }

// scriptsOf returns n scripts in the cache, which is emptied before they are replaced.
func scriptsOf(n int64) shape {
	load := func(b *batch, i int64) { b.command("SCRIPT", "LOAD", limiterScript+padded("", i)) }
	return shape{name: grouped(n) + " scripts", steps: n, fill: load, churnSteps: n, churn: func(b *batch, round, i int64) {
		if i == 0 {
			b.command("SCRIPT", "FLUSH")
		}
		load(b, i+(round+1)*n)
	}}
}

// bullScript returns the script with which BullMQ adds a job, if .ci/clients has installed
// BullMQ, and "" otherwise.
func bullScript() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	module, err := os.ReadFile(filepath.Join(cache, "zsetd-clients/node_modules/bullmq/dist/esm/scripts/addStandardJob-9.js"))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(module), "`") // the only literal of the module, without escapes
	source, _, _ := strings.Cut(rest, "`")
	return source
}

// bullKeys returns the keys of a queue that the script takes.
func bullKeys() []string {
	keys := strings.Fields("wait paused meta id completed delayed active events marker")
	for i, k := range keys {
		keys[i] = "bull:bench:" + k
	}
	return keys
}

// bullArguments returns the arguments of the script: the keys; an array in the format of MessagePack with the
// prefix of the keys, no chosen ID, the name and the time of the job, and nothing of what jobs may have in addition;
// the data; and the options, as a map.
func bullArguments() string {
	keys := bullKeys()
	const (
		job     = "\x9a\xabbull:bench:\xa0\xa7welcome\xcf\x00\x00\x01\x9a\xb6\x97\xe8\x01\xc0\xc0\xc0\xc0\xc0\xc0"
		options = "\x81\xa8attempts\x03"
	)
	return fmt.Sprintf(" %d %s %s %s %s", len(keys), strings.Join(keys, " "), job, `["user@example.com",{16}]`, options)
}

// bullQueue empties the queue. Jobs that it numbers as before replace those of earlier rounds.
func bullQueue(c *conn, _ limits) error {
	if err := c.do(append([]string{"DEL"}, bullKeys()...)...); err != nil {
		return err
	}
	return c.do("SCRIPT", "LOAD", bullScript())
}
