package server_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zsetd/zsetd/server/servertest/rerun"

	"github.com/zsetd/zsetd/server/servertest/judge"
)

// TestCommandsOfRedis checks that every command and subcommand of the judge and of Redis 8.6
// exists or is listed as absent, and that all that the judge lacks have a later version in Since.
func TestCommandsOfRedis(t *testing.T) {
	redis, zsetd := judge.Asker(t, judge.Start(t)()), judge.Ours(t)
	theirs, here := judge.Sorted(redis("COMMAND", "LIST")), judge.Sorted(zsetd("COMMAND", "LIST"))
	absent := map[string]bool{}
	for _, a := range absentCommands() {
		for name := range strings.FieldsSeq(strings.ToLower(a.Names)) {
			absent[name] = true
			if slices.Contains(here, name) {
				t.Errorf("%s is there, although listed as absent (%s)", name, a.Reason)
			}
		}
	}
	known := theirs
	if judge.NewerServers()[0].Path(t) != "" {
		known = append(known, judge.Sorted(judge.Asker(t, judge.StartNewer(t)())("COMMAND", "LIST"))...)
	}
	for _, name := range known {
		if !slices.Contains(here, name) && !absent[strings.ToLower(name)] {
			t.Errorf("Redis has %s, and zsetd has neither the command nor an entry in absentCommands", name)
		}
	}
	newer := 0
	for _, c := range allCommands() {
		if later(c.Since) {
			newer++
		}
		if got := slices.Contains(theirs, c.Name); got == later(c.Since) {
			t.Errorf("%s is since %s, but that Redis %s has it is %v", c.Name, c.Since, judge.Version, got)
		}
	}
	if got, want := zsetd("COMMAND", "COUNT"), len(slices.DeleteFunc(here, func(n string) bool { return strings.Contains(n, "|") })); got != int64(want) {
		t.Errorf("COMMAND COUNT: %v, not %d", got, want)
	}
}

// later reports whether a version is later than the judge's.
func later(since string) bool { return since > judge.Version+".99" || since[1] != '.' }

// TestCategoriesAsRedis: the categories, and what commands that Redis has are in
// each, as ACL CAT and COMMAND LIST return them.
func TestCategoriesAsRedis(t *testing.T) {
	rerun.Skip(t)
	redis, zsetd := judge.Asker(t, judge.Start(t)()), judge.Ours(t)
	both := map[string]bool{}
	for _, name := range judge.Sorted(redis("COMMAND", "LIST")) {
		both[name] = true
	}
	here := judge.Sorted(zsetd("COMMAND", "LIST"))
	for name := range both {
		both[name] = slices.Contains(here, name)
	}
	known := func(names []string) []string {
		return slices.DeleteFunc(names, func(n string) bool { return !both[n] })
	}
	categories := judge.Sorted(redis("ACL", "CAT"))
	if got := judge.Sorted(zsetd("ACL", "CAT")); !slices.Equal(got, categories) {
		t.Errorf("ACL CAT: %v, not %v", got, categories)
	}
	newer := newerFacts()
	for _, name := range categories {
		for _, argv := range [][]string{{"ACL", "CAT", name}, {"COMMAND", "LIST", "FILTERBY", "ACLCAT", name}} {
			got, want := known(judge.Sorted(zsetd(argv...))), known(judge.Sorted(redis(argv...)))
			for _, n := range append(got, want...) {
				if slices.Contains(got, n) != slices.Contains(want, n) && newer[n] == "" {
					t.Errorf("%v: %s is there %v", argv, n, slices.Contains(got, n))
				}
			}
		}
	}
	for _, argv := range [][]string{
		{"COMMAND", "LIST", "FILTERBY", "PATTERN", "z*"}, {"COMMAND", "LIST", "FILTERBY", "PATTERN", "*|get*"},
		{"COMMAND", "LIST", "FILTERBY", "PATTERN", "?E[st]*"}, {"COMMAND", "LIST", "FILTERBY", "PATTERN", ""},
		{"COMMAND", "LIST", "FILTERBY", "MODULE", "x"}, {"COMMAND", "LIST", "FILTERBY", "ACLCAT", "nosuch"},
	} {
		if got, want := known(judge.Sorted(zsetd(argv...))), known(judge.Sorted(redis(argv...))); !slices.Equal(got, want) {
			t.Errorf("%q: %v, not %v", argv, got, want)
		}
	}
}

// TestHelpAsRedis compares the replies to HELP: their first and last lines, and the lines
// with the syntax of each subcommand. The descriptions, which are indented, are zsetd's own.
func TestHelpAsRedis(t *testing.T) {
	rerun.Skip(t)
	redis, zsetd := judge.Asker(t, judge.Start(t, talkativeArgs(t)...)()), talkative(t)
	added := map[string][]string{ // 7.2, and Valkey
		"client":  {"SETINFO <option> <value>", "NO-TOUCH (ON|OFF)", "CAPA <capability> [<capability> ...]"},
		"cluster": {"SLOT-STATS"},
		"script":  {"SHOW <sha1>"},
	}
	n := 0
	for _, c := range allCommands() {
		name, ok := strings.CutSuffix(c.Name, "|help")
		if !ok || later(c.Since) {
			continue
		}
		n++
		got, want := syntaxOf(t, zsetd(name, "HELP")), syntaxOf(t, redis(name, "HELP"))
		got = slices.DeleteFunc(got, func(line any) bool { return slices.Contains(added[name], fmt.Sprint(line)) })
		if shape(got) != shape(want) {
			t.Errorf("%s HELP\n got %s\nwant %s", name, shape(got), shape(want))
		}
	}
	if n < 15 {
		t.Errorf("%d commands have HELP", n)
	}
}

// syntaxOf returns a reply to HELP without descriptions: without indented lines, except
// those that continue a syntax and the last one.
func syntaxOf(t *testing.T, help any) (out []any) {
	lines, ok := help.([]any)
	if !ok {
		t.Fatalf("HELP: %v", help)
	}
	for i, line := range lines {
		text := fmt.Sprint(line)
		if !strings.HasPrefix(text, " ") || strings.HasPrefix(strings.TrimSpace(text), "[") || i == len(lines)-1 {
			out = append(out, line)
		}
	}
	return out
}

// TestCommandsDocument checks that COMMANDS.md has the commands of the table, absentCommands and
// judge.Differences.
func TestCommandsDocument(t *testing.T) {
	checkDocument(t, "COMMANDS.md", "commands", familyTexts())
}

// reported is the version of Redis that INFO reports.
const reported = "8.6"

// family is a section of COMMANDS.md.
type family struct {
	old, absent       int // commands of the judge's Redis that are there, and that are not
	names             []string
	newer, own, lacks []string
	differs           []string
}

func familyTexts() string {
	families, order := map[string]*family{}, []string{}
	of := func(group string) *family {
		if families[group] == nil {
			families[group] = new(family)
			order = append(order, group)
		}
		return families[group]
	}
	groups := map[string]string{}
	options := newerFacts()
	for _, c := range allCommands() {
		f := of(c.Group)
		groups[c.Name] = c.Group
		name := strings.ToUpper(strings.ReplaceAll(c.Name, "|", " "))
		f.names = append(f.names, name)
		switch {
		case c.Since == ownVersion:
			f.own = append(f.own, name)
		case c.Since == "9.0.0" || strings.HasPrefix(c.Name, "commandlog"):
			f.newer = append(f.newer, name+" (Valkey "+c.Since[:3]+")")
		case later(c.Since):
			f.newer = append(f.newer, name+" ("+c.Since[:strings.LastIndexByte(c.Since, '.')]+")")
		default:
			f.old++
			if options[c.Name] != "" {
				f.newer = append(f.newer, name+" ("+options[c.Name]+")")
			}
		}
	}
	for _, a := range absentCommands() {
		f := of(a.Group)
		if a.Version == judge.Version {
			f.absent += len(strings.Fields(a.Names))
		}
		names := strings.ReplaceAll(strings.ReplaceAll(a.Names, " ", ", "), "|", " ")
		f.lacks = append(f.lacks, strings.ReplaceAll(names, "*", `\*`)+" ("+a.Version+"): "+a.Reason)
	}
	for _, d := range judge.Differences() {
		if !d.Applies(reported) {
			continue
		}
		words := strings.Fields(strings.ToLower(d.Try))
		group := groups[words[0]]
		if group == "" { // a command that does not exist
			group = "server"
		}
		f := of(group)
		f.differs = append(f.differs, "*"+d.Name+"*: "+d.Reason)
	}
	var b strings.Builder
	for i, group := range order {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "## %s\n\n", group)
		f := families[group]
		slices.Sort(f.names)
		if len(f.names) > 0 {
			b.WriteString(wrapped("", strings.Join(f.names, ", ")) + "\n")
		}
		of := ""
		switch {
		case f.absent > 0:
			of = fmt.Sprintf("%d of %d", f.old, f.old+f.absent)
		case f.old > 0:
			of = "all " + strconv.Itoa(f.old)
		}
		for _, line := range [][2]string{
			{"Of Redis " + judge.Version, of}, {"Of later versions", strings.Join(f.newer, ", ")},
			{"Its own", strings.Join(f.own, ", ")}, {"Not there", strings.Join(f.lacks, "; ")},
		} {
			if line[1] != "" {
				b.WriteString(wrapped("- ", "**"+line[0]+":** "+line[1]))
			}
		}
		if len(f.differs) > 0 {
			fmt.Fprintf(&b, "- **Differs from Redis %s:**\n", reported)
			for _, d := range f.differs {
				b.WriteString(wrapped("  - ", d))
			}
		}
	}
	return b.String()
}

// wrapped returns a paragraph of Markdown in lines of at most 100 bytes, where words allow it.
func wrapped(mark, text string) string {
	indent := strings.Repeat(" ", len(mark))
	var b strings.Builder
	line := mark
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > 100 && len(line) > len(mark) {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = indent
		}
		if len(line) > len(indent) {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
	return b.String()
}

// ownVersion is what COMMAND DOCS says of the commands that Redis does not have.
const ownVersion = "zsetd 0.1.0"

// TestInfoForMonitors checks that INFO has the fields that redis_exporter and redis-cli
// --stat read, with numbers where they expect numbers.
func TestInfoForMonitors(t *testing.T) {
	const exporter = `uptime_in_seconds process_id connected_clients blocked_clients tracking_clients
		client_recent_max_output_buffer client_recent_max_input_buffer allocator_active allocator_allocated allocator_resident
		allocator_frag_ratio allocator_frag_bytes allocator_rss_ratio allocator_rss_bytes used_memory used_memory_rss
		used_memory_peak used_memory_lua used_memory_overhead used_memory_startup used_memory_dataset used_memory_scripts
		maxmemory mem_fragmentation_ratio mem_fragmentation_bytes mem_clients_slaves mem_clients_normal expired_stale_perc
		mem_not_counted_for_evict lazyfree_pending_objects active_defrag_running migrate_cached_sockets active_defrag_hits
		active_defrag_misses active_defrag_key_hits active_defrag_key_misses expired_time_cap_reached_count loading
		rdb_changes_since_last_save rdb_bgsave_in_progress rdb_last_save_time rdb_last_bgsave_status rdb_last_bgsave_time_sec
		rdb_current_bgsave_time_sec rdb_last_cow_size aof_enabled aof_rewrite_in_progress aof_rewrite_scheduled
		aof_last_rewrite_time_sec aof_current_rewrite_time_sec aof_last_cow_size aof_last_bgrewrite_status
		aof_last_write_status module_fork_in_progress module_fork_last_cow_size pubsub_channels pubsub_patterns
		latest_fork_usec connected_slaves repl_backlog_size repl_backlog_active repl_backlog_first_byte_offset
		repl_backlog_histlen master_repl_offset second_repl_offset slave_expires_tracked_keys sync_full sync_partial_ok
		sync_partial_err total_connections_received total_commands_processed rejected_connections total_net_input_bytes
		total_net_output_bytes expired_keys evicted_keys keyspace_hits keyspace_misses used_cpu_sys used_cpu_user
		used_cpu_sys_children used_cpu_user_children used_cpu_sys_main_thread used_cpu_user_main_thread total_system_memory
		pubsub_clients watching_clients total_watched_keys eventloop_cycles eventloop_duration_sum eventloop_duration_cmd_sum
		instantaneous_eventloop_cycles_per_sec instantaneous_eventloop_duration_usec rdb_saves_consecutive_failures unexpected_error_replies total_reads_processed
		total_writes_processed io_threaded_reads_processed io_threaded_writes_processed total_error_replies
		dump_payload_sanitizations tracking_total_keys tracking_total_items tracking_total_prefixes
		mem_cluster_links mem_aof_buffer mem_replication_backlog number_of_cached_scripts number_of_functions number_of_libraries
		used_memory_vm_total used_memory_functions evicted_clients evicted_scripts instantaneous_ops_per_sec
		instantaneous_input_kbps instantaneous_output_kbps cluster_enabled`
	const texts = "role redis_version redis_mode os maxmemory_policy tcp_port run_id master_replid used_memory_human used_memory_dataset_perc"
	ask := judge.Ours(t)
	ask("SET", "k", "v", "EX", "100")
	fields := map[string]string{}
	for line := range strings.SplitSeq(ask("INFO", "everything").(string), "\r\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			fields[name] = value
		}
	}
	for name := range strings.FieldsSeq(exporter) {
		value, there := fields[name]
		if !there {
			t.Errorf("%s is not there", name)
		}
		if _, err := strconv.ParseFloat(value, 64); there && err != nil && value != "ok" {
			t.Errorf("%s is %q", name, value)
		}
	}
	for name := range strings.FieldsSeq(texts) {
		if fields[name] == "" {
			t.Errorf("%s is not there", name)
		}
	}
	for name, prefix := range map[string]string{"db0": "keys=1,expires=1,avg_ttl=", "cmdstat_set": "calls=1,usec="} {
		if !strings.HasPrefix(fields[name], prefix) {
			t.Errorf("%s is %q", name, fields[name])
		}
	}
}
