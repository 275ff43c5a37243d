package server_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// newerFacts are the commands whose facts are those of a later Redis than 7.0, each with
// what differs.
func newerFacts() map[string]string {
	return map[string]string{
		"zrank": "7.2: WITHSCORE", "zrevrank": "7.2: WITHSCORE",
		"quit":  "7.2: deprecated",
		"blpop": "7.2: allowed in scripts", "brpop": "7.2: allowed in scripts", "brpoplpush": "7.2: allowed in scripts",
		"blmove": "7.2: allowed in scripts", "bzpopmin": "7.2: allowed in scripts", "bzpopmax": "7.2: allowed in scripts",
		"set":   "8.4: IFEQ, IFNE, IFDEQ, IFDNE",
		"bitop": "8.2: DIFF, DIFF1, ANDOR, ONE",
		"xadd":  "8.2: KEEPREF, DELREF, ACKED", "xtrim": "8.2: KEEPREF, DELREF, ACKED", "xreadgroup": "8.4: CLAIM",
		"xclaim": "8.6: names of arguments", "xsetid": "8.6: names of arguments", "xgroup|create": "8.6: names of arguments",
		"xgroup|setid": "8.6: names of arguments", "xgroup|createconsumer": "8.6: names of arguments",
		"xgroup|delconsumer": "8.6: names of arguments", "xgroup|destroy": "8.6: names of arguments",
		"hscan": "7.4: NOVALUES", "client|kill": "7.4: MAXAGE",
		"command|getkeys": "7.2: commands without arguments", "command|getkeysandflags": "7.2: commands without arguments",
		"wait":            "7.2: allowed in scripts, blocking",
		"xinfo|consumers": "7.2: inactive", "xinfo|stream": "7.2: active-time",
		"acl|log": "7.2: fields of entries", "acl|setuser": "Valkey 9.1: rules on databases",
		"subscribe": "8.6: denyoom", "psubscribe": "8.6: denyoom", "ssubscribe": "8.6: denyoom",
		"client|list": "Valkey 8.0 and 9.0: conditions",
		"bitcount":    "Valkey 8.0: start without end", "zscan": "Valkey 8.0: NOSCORES",
		"geosearch": "Valkey 9.0: BYPOLYGON", "geosearchstore": "Valkey 9.0: BYPOLYGON",
		"zunion": "8.8: COUNT", "zinter": "8.8: COUNT", "zunionstore": "8.8: COUNT", "zinterstore": "8.8: COUNT",
	}
}

// ownFacts are the commands whose facts differ on purpose from those of Redis 8.6, each with
// what differs.
func ownFacts() map[string]string {
	const ofValkey = "options of Valkey"
	return map[string]string{
		"bitcount": ofValkey, "zscan": ofValkey, "geosearch": ofValkey, "geosearchstore": ofValkey, "hsetex": ofValkey,
		"client|list": ofValkey, "client|kill": ofValkey,
		"zunion": "COUNT of 8.8", "zinter": "COUNT of 8.8", "zunionstore": "COUNT of 8.8", "zinterstore": "COUNT of 8.8",
		"xread": "it has a complexity", "xadd": "its history has IDMP", "hgetex": "no note on a key",
	}
}

// TestFactsAsRedis: COMMAND INFO and COMMAND DOCS answer for every command and
// subcommand that the judge has as the judge does, in both dialects. Sentences are
// compared only in their places: their words differ, as TestSentences checks.
func TestFactsAsRedis(t *testing.T) {
	rerun.Skip(t)
	redis, zsetd := judge.Asker(t, judge.StartNewer(t)()), judge.Ours(t)
	own := ownFacts()
	for _, version := range []string{"2", "3"} {
		redis("HELLO", version)
		zsetd("HELLO", version)
		names := zsetd("COMMAND", "LIST").([]any)
		if len(names) < 100 {
			t.Errorf("COMMAND LIST: only %d names", len(names))
		}
		for _, name := range names {
			name := name.(string)
			got, want := factsOf(zsetd, name), factsOf(redis, name)
			switch reason := own[name]; {
			case strings.Contains(want, "unknown"): // too new
			case got == want && reason != "":
				t.Errorf("%s is as in Redis 8.6, although listed as our own (%s)", name, reason)
			case got != want && reason == "":
				t.Errorf("%s\n got %s\nwant %s", name, got, want)
			}
		}
	}
}

// factsOf returns the facts that INFO and DOCS tell about a command, on one line.
// Subcommands are left out: they are asked for on their own. A sentence is replaced by
// the name of its field.
func factsOf(ask func(...string) any, name string) string {
	info, _ := ask("COMMAND", "INFO", name).([]any)
	if len(info) != 1 || info[0] == nil {
		return "unknown"
	}
	fields := info[0].([]any)
	docs := ask("COMMAND", "DOCS", name)
	for _, reply := range []any{info, docs} {
		eachText(reply, func(field, _ string) string { return field })
	}
	return shape(fields[:9]) + fmt.Sprintf(" %T ", fields[9]) + shape(withoutSubcommands(docs))
}

// withoutSubcommands leaves of the subcommands in COMMAND DOCS only what they
// are sent as.
func withoutSubcommands(docs any) any {
	switch docs := docs.(type) {
	case []any:
		about := docs[1].([]any)
		if i := slices.Index(about, any("subcommands")); i >= 0 {
			about[i+1] = fmt.Sprintf("%T", about[i+1])
		}
	case protocol.Map:
		about := docs[0].Value.(protocol.Map)
		for i := range about {
			if about[i].Key == "subcommands" {
				about[i].Value = fmt.Sprintf("%T", about[i].Value)
			}
		}
	}
	return docs
}

// textFields are the fields of COMMAND INFO and COMMAND DOCS with sentences. The field
// "history" is a list of pairs, each a version and a sentence.
func textFields() []string {
	return []string{"summary", "complexity", "notes", "replaced_by", "history"}
}

// eachText calls f for each sentence in a reply to COMMAND INFO or COMMAND DOCS, and
// replaces it by the result.
func eachText(reply any, f func(field, sentence string) string) {
	replace := func(field, value any) any {
		name, ok := field.(string)
		switch {
		case !ok || !slices.Contains(textFields(), name):
			eachText(value, f)
		case name != "history":
			if sentence, ok := value.(string); ok {
				return f(name, sentence)
			}
		default:
			pairs, _ := value.(protocol.Set) // in RESP3
			if list, ok := value.([]any); ok {
				pairs = list
			}
			for _, p := range pairs {
				pair := p.([]any)
				pair[1] = f(name, pair[1].(string))
			}
		}
		return value
	}
	switch reply := reply.(type) {
	case protocol.Map:
		for i := range reply {
			reply[i].Value = replace(reply[i].Key, reply[i].Value)
		}
	case protocol.Set:
		eachText([]any(reply), f)
	case []any:
		for i, e := range reply {
			if i%2 == 1 { // perhaps the value of a field, in RESP2
				reply[i] = replace(reply[i-1], e)
			} else {
				eachText(e, f)
			}
		}
	}
}

// shape writes a reply with its types.
func shape(v any) string { return strings.ReplaceAll(fmt.Sprintf("%#v", v), "interface {}", "any") }

// TestGetKeysAsRedis sends the lines of the protocol package's recording.
func TestGetKeysAsRedis(t *testing.T) {
	rerun.Skip(t)
	zsetd := judge.Ours(t)
	data, err := os.ReadFile("../protocol/testdata/getkeys.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		words, want, ok := strings.Cut(strings.TrimSpace(line), " =>")
		if !ok || words[0] == '#' || strings.HasPrefix(words, "row ") {
			continue
		}
		args := []string{"COMMAND", "GETKEYSANDFLAGS"}
		for word := range strings.FieldsSeq(words) {
			args = append(args, strings.ReplaceAll(word, `""`, ""))
		}
		got := ""
		switch reply := zsetd(args...).(type) {
		case protocol.ReplyError:
			if strings.HasPrefix(string(reply), "ERR Invalid command specified") {
				continue // a command that we lack
			}
			got = " ! " + string(reply)
		case []any:
			for _, e := range reply {
				key := e.([]any)
				var flags []string
				for _, f := range key[1].([]any) {
					flags = append(flags, string(f.(protocol.Status)))
				}
				name := key[0].(string)
				if name == "" {
					name = `""`
				}
				got += " " + name + ":" + strings.Join(flags, ",")
			}
		}
		if got != want {
			t.Errorf("%s\n got%s\nwant%s", words, got, want)
		}
	}
}

// TestInfoFields: INFO has the sections of Redis 8.6, in its order, with its fields, in its
// order, written as it writes them.
func TestInfoFields(t *testing.T) {
	redis, zsetd := judge.Asker(t, judge.StartNewer(t)()), judge.Ours(t)
	absent := map[string]string{
		"module":    "there are none",
		"listener1": "the judge has a Unix socket",
	}
	added := map[string]string{
		"go_version":                   "in place of a C compiler",
		"zsetd_version":                "our own",
		"listener0":                    "the judge has no port",
		"goroutines":                   "our own",
		"live_queries":                 "our own",
		"live_query_subscriptions":     "our own",
		"live_query_evaluations":       "our own",
		"live_query_time_usec":         "our own",
		"live_query_messages":          "our own",
		"live_query_messages_left_out": "our own",
		"apart_commands_processed":     "our own",
		"apart_error_replies":          "our own",
		"clock_steps":                  "our own",
		"clock_difference_ms":          "our own",
		"clock_suspended_seconds":      "our own",
		"expire_lag_percentiles_usec":  "our own",
		"expire_lag_histogram_usec":    "our own",
		"checkpoint_histogram_usec":    "our own",
		"backup_last_time":             "our own",
		"backup_last_status":           "our own",
		"backup_last_file":             "our own",
		"backup_last_duration_sec":     "our own",
		"backups_kept":                 "our own",
		"acl_access_denied_db":         "Valkey's",
		"availability_zone":            "Valkey's",
		"paused_reason":                "Valkey's",
		"paused_actions":               "Valkey's",
		"paused_timeout_milliseconds":  "Valkey's",
		"expired_fields":               "Valkey's",
		"used_active_time_main_thread": "Valkey's",
	}
	for _, ask := range []func(...string) any{redis, zsetd} {
		ask("SET", "k", "v", "EX", "100")
		ask("GET")
		ask("GET", "k")
	}
	for _, argv := range [][]string{{"INFO"}, {"INFO", "default"}, {"INFO", "ALL"}, {"INFO", "everything"}, {"INFO", "Keyspace", "cpu", "x"}, {"INFO", "x"}} {
		got, want := infoLines(zsetd(argv...).(string)), infoLines(redis(argv...).(string))
		got = slices.DeleteFunc(got, func(f string) bool { _, ok := added[fieldName(f)]; return ok })
		want = slices.DeleteFunc(want, func(f string) bool { _, ok := absent[fieldName(f)]; return ok })
		if strings.Trim(strings.Join(got, "\n"), "\n") != strings.Trim(strings.Join(want, "\n"), "\n") {
			t.Errorf("%v:\n%s", argv, onlyIn(got, want))
		}
	}
}

// TestMemoryStatsFields: MEMORY STATS has the fields of the judge, in its order.
func TestMemoryStatsFields(t *testing.T) {
	for dialect, path := range map[string]string{"redis": judge.NewerServers()[0].Path(t), "valkey": judge.NewerServers()[1].Path(t)} {
		if path == "" {
			t.Logf("the server of the dialect %s is not installed", dialect)
			continue
		}
		var fields [2]string
		for i, ask := range []func(...string) any{judge.OursWith(t, map[string]string{"dialect": dialect}), judge.Asker(t, judge.StartProgram(t, path)())} {
			ask("SET", "k", "v", "EX", "100")
			stats := ask("MEMORY", "STATS").([]any)
			for j := 0; j < len(stats); j += 2 {
				fields[i] += fmt.Sprintln(stats[j])
				if inner, ok := stats[j+1].([]any); ok {
					for k := 0; k < len(inner); k += 2 {
						fields[i] += fmt.Sprintln(inner[k])
					}
				}
			}
		}
		if fields[0] != fields[1] {
			t.Errorf("%s:\n%s\nwant\n%s", dialect, fields[0], fields[1])
		}
	}
}

func fieldName(line string) string {
	name, _, _ := strings.Cut(line, ":")
	return name
}

// infoLines returns the lines of INFO with all digits alike, and those whose
// order is that of a hash table sorted.
func infoLines(text string) []string {
	digits := regexp.MustCompile(`[0-9]+`)
	text = regexp.MustCompile(`(?m)^(redis_version|redis_git_sha1|redis_build_id|os|gcc_version|run_id|atomicvar_api|executable|mem_allocator|master_replid|[a-z_]+_human):[^\r]*`).ReplaceAllString(text, "$1:…")
	lines := strings.Split(text, "\r\n")
	for i, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if ok {
			lines[i] = name + ":" + strings.ReplaceAll(digits.ReplaceAllString(value, "0"), "-", "")
		}
	}
	for start := 0; start < len(lines); start++ {
		end := start
		for end < len(lines) && (strings.HasPrefix(lines[end], "cmdstat_") || strings.HasPrefix(lines[end], "latency_perc")) {
			end++
		}
		slices.Sort(lines[start:end])
		start = max(start, end-1)
	}
	return lines
}

// onlyIn lists what only one of two lists has.
func onlyIn(got, want []string) string {
	var b strings.Builder
	for _, f := range got {
		if !slices.Contains(want, f) {
			fmt.Fprintf(&b, "only ours: %s\n", f)
		}
	}
	for _, f := range want {
		if !slices.Contains(got, f) {
			fmt.Fprintf(&b, "only Redis's: %s\n", f)
		}
	}
	if b.Len() == 0 {
		return "another order\n" + strings.Join(got, "\n") + "\n---\n" + strings.Join(want, "\n")
	}
	return b.String()
}

// TestClientListFields: the fields of CLIENT LIST and their order are those of Redis 8.6, with
// capa, a field of Valkey, at the end.
func TestClientListFields(t *testing.T) {
	redis, zsetd := judge.Asker(t, judge.StartNewer(t)()), judge.Ours(t)
	names := func(line any) string {
		return regexp.MustCompile(`=[^ ]*`).ReplaceAllString(strings.TrimSuffix(line.(string), "\n"), "")
	}
	got, want := names(zsetd("CLIENT", "LIST")), names(redis("CLIENT", "LIST"))+" capa"
	if got != want {
		t.Errorf("CLIENT LIST\n got %s\nwant %s", got, want)
	}
	if got := names(zsetd("CLIENT", "INFO")); got != want {
		t.Errorf("CLIENT INFO\n got %s\nwant %s", got, want)
	}
}
