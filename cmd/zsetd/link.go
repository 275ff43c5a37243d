package main

import (
	"flag"
	"fmt"
	"strings"
	"time"

	"github.com/zsetd/zsetd/server/console"
)

// The tool link. Package console does the work.

// linkFlags are the flags of the tool link.
type linkFlags struct {
	config, url        string
	db                 int
	lifetime, interval time.Duration
}

func linkTool() tool {
	return tool{
		name: "link", args: "QUERY ... [--config FILE] [--for TIME] [--url URL]", files: 1, several: true, run: runLink,
		summary: "sign a link to live replies, for a page without a login",
		details: "Prints an address of the console, /live?q=..., that is served without a login for exactly\n" +
			"these queries, such as \"ZRANK club ann\", until it expires. The secret is http-link-secret of\n" +
			"FILE, or of the environment variable ZSETD_OPTIONS; of several the first one signs. The link\n" +
			"has the permissions of the user http-link-user. Status: 0 done, 1 there is no secret, or a\n" +
			"query has a line end, 2 the command line or FILE is wrong.",
		flags: func(f *flag.FlagSet, t *toolFlags) {
			f.StringVar(&t.config, "config", "", "the configuration `file` of the server")
			f.DurationVar(&t.lifetime, "for", time.Hour, "the `time` until the link expires")
			f.IntVar(&t.db, "db", 0, "the `number` of the database")
			f.DurationVar(&t.interval, "interval", 0, "the shortest `time` between two replies of a query (default 100ms)")
			f.StringVar(&t.url, "url", "", "the `address` that the link begins with, such as https://example.org")
		},
	}
}

// runLink prints a signed link.
func runLink(r *toolRun) int {
	var args []string
	if r.config != "" {
		args = []string{r.config}
	}
	values, err := readArgs(args)
	if err != nil {
		r.fail(err)
		return statusUsage
	}
	link, err := console.Link(values["http-link-secret"], time.Now().Add(r.lifetime),
		console.LiveQueries{Queries: r.files, DB: r.db, Interval: r.interval})
	if err != nil {
		return r.fail(err)
	}
	fmt.Fprintln(r.stdout, strings.TrimSuffix(r.url, "/")+link)
	return statusOK
}
