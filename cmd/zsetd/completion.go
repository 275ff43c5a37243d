package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zsetd/zsetd/server"
)

// The tool completion. The scripts have no knowledge of their own: their words come from
// the tables of tools and parameters.

func completionTool() tool {
	return tool{
		name: "completion", args: "bash|zsh|fish", files: 1, run: runCompletion,
		summary: "print a script that completes command lines",
		details: "Prints a script for a shell, which completes tools, options, parameters and their values:\n\n" +
			"  bash: eval \"$(zsetd completion bash)\" in ~/.bashrc\n" +
			"  zsh:  eval \"$(zsetd completion zsh)\" in ~/.zshrc, after compinit\n" +
			"  fish: zsetd completion fish > ~/.config/fish/completions/zsetd.fish",
	}
}

func runCompletion(r *toolRun) int {
	var script string
	switch r.files[0] {
	case "bash":
		script = bashCompletion()
	case "zsh":
		script = zshCompletion()
	case "fish":
		script = fishCompletion()
	default:
		fmt.Fprintf(r.stderr, "zsetd completion: there is no script for %s: want bash, zsh or fish\n", r.files[0])
		return statusUsage
	}
	if _, err := io.WriteString(r.stdout, script); err != nil {
		return r.fail(err)
	}
	return statusOK
}

// valueWords are the values of options of tools that are one of some words.
func valueWords() map[string]string {
	return map[string]string{
		"export --format": "commands json rdb", "export --for": "redis5 redis7 redis8 valkey9", "cli --show-pushes": "yes no", "migrate --verify": "all",
	}
}

// option is a flag of a tool, with its hyphens.
type option struct {
	name, summary string
	isSwitch      bool // it has no value
}

func (t *tool) options() (all []option) {
	if t.flags == nil {
		return nil
	}
	f := flag.NewFlagSet("", flag.ContinueOnError)
	t.flags(f, &toolFlags{})
	f.VisitAll(func(f *flag.Flag) {
		hyphens := "--"
		if len(f.Name) == 1 {
			hyphens = "-"
		}
		b, ok := f.Value.(interface{ IsBoolFlag() bool })
		_, summary := flag.UnquoteUsage(f)
		all = append(all, option{hyphens + f.Name, summary, ok && b.IsBoolFlag()})
	})
	return all
}

// completionCase is a pattern of the words before the one that is completed, and what
// completes it.
type completionCase struct {
	tool, previous string // previous is the word before; "" for any
	words          string
}

// completionCases returns the cases, the more special ones first. The tool "" is the
// server.
func completionCases() (all []completionCase) {
	for _, p := range server.Parameters() {
		if len(p.Values) > 0 && !p.NoEffect {
			all = append(all, completionCase{"", "--" + p.Name, strings.Join(p.Values, " ")})
		}
	}
	all = append(all, completionCase{"completion", "completion", "bash zsh fish"})
	for _, t := range tools() {
		var names []string
		for _, o := range t.options() {
			names = append(names, o.name)
			if words := valueWords()[t.name+" "+o.name]; words != "" {
				all = append(all, completionCase{t.name, o.name, words})
			}
		}
		all = append(all, completionCase{t.name, "", strings.Join(append(names, "--help"), " ")})
	}
	return all
}

// parameterWords returns the parameters with an effect as words of a command line.
func parameterWords() []string {
	var words []string
	for _, p := range server.Parameters() {
		if !p.NoEffect {
			words = append(words, "--"+p.Name)
		}
	}
	return append(words, "--user", "--help", "--check-config", "--version")
}

// shellCases returns the cases as the branches of a case of bash or zsh.
func shellCases() string {
	var b strings.Builder
	for _, c := range completionCases() {
		pattern := c.tool + " " + c.previous
		if c.previous == "" {
			pattern = c.tool + " *"
		}
		pattern = strings.ReplaceAll(pattern, " ", `\ `)
		if c.tool == "" {
			pattern = "*" + pattern // also behind a configuration file
		}
		fmt.Fprintf(&b, "\t%s) words='%s' ;;\n", pattern, c.words)
	}
	help := strings.Join(append(commandNames(), "all"), " ")
	fmt.Fprintf(&b, "\t*\\ --help|*\\ help) words='%s %s' ;;\n", help, strings.Join(parameterNames(), " "))
	fmt.Fprintf(&b, "\t*) words='%s' ;;\n", strings.Join(parameterWords(), " "))
	return b.String()
}

func bashCompletion() string {
	return `# Completion of zsetd for bash, made by zsetd completion bash.
_zsetd() {
	local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words
	case "${COMP_WORDS[1]} $previous" in
` + shellCases() + `	esac
	if [ "$COMP_CWORD" -eq 1 ]; then
		words="` + strings.Join(commandNames(), " ") + ` $words"
	fi
	COMPREPLY=($(compgen -W "$words" -- "$word"))
	case "$previous$word" in
	--*-) ;;
	*) if [ ${#COMPREPLY[@]} -eq 0 ]; then COMPREPLY=($(compgen -f -- "$word")); fi ;;
	esac
}
complete -o filenames -F _zsetd zsetd
`
}

func zshCompletion() string {
	return `#compdef zsetd
# Completion of zsetd for zsh, made by zsetd completion zsh.
_zsetd() {
	local previous=${words[CURRENT-1]} tool=${words[2]}
	local line="$tool $previous" choices
	() {
		local words
		case "$line" in
` + shellCases() + `		esac
		choices=$words
	}
	if (( CURRENT == 2 )); then
		choices="` + strings.Join(commandNames(), " ") + ` $choices"
	fi
	compadd -- ${=choices}
	_files
}
compdef _zsetd zsetd
`
}

func fishCompletion() string {
	var b strings.Builder
	b.WriteString("# Completion of zsetd for fish, made by zsetd completion fish.\n")
	quoted := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", " ").Replace(s) + "'"
	}
	for _, t := range tools() {
		fmt.Fprintf(&b, "complete -c zsetd -n __fish_use_subcommand -a %s -d %s\n", t.name, quoted(t.summary))
		for _, o := range t.options() {
			kind := "-l "
			if len(o.name) == 2 {
				kind = "-s "
			}
			fmt.Fprintf(&b, "complete -c zsetd -n '__fish_seen_subcommand_from %s' %s%s -d %s", t.name, kind, strings.TrimLeft(o.name, "-"), quoted(o.summary))
			switch words := valueWords()[t.name+" "+o.name]; {
			case words != "":
				fmt.Fprintf(&b, " -x -a %s", quoted(words))
			case !o.isSwitch:
				b.WriteString(" -r")
			}
			b.WriteByte('\n')
		}
	}
	for _, name := range commandNames() {
		if !slices.ContainsFunc(tools(), func(t tool) bool { return t.name == name }) {
			fmt.Fprintf(&b, "complete -c zsetd -n __fish_use_subcommand -a %s\n", name)
		}
	}
	b.WriteString("complete -c zsetd -n '__fish_seen_subcommand_from completion' -x -a 'bash zsh fish'\n")
	var names []string
	for _, t := range tools() {
		names = append(names, t.name)
	}
	unless := "'not __fish_seen_subcommand_from " + strings.Join(names, " ") + "'"
	for _, p := range server.Parameters() {
		if p.NoEffect {
			continue
		}
		fmt.Fprintf(&b, "complete -c zsetd -n %s -l %s -d %s", unless, p.Name, quoted(strings.SplitAfterN(p.Doc, ".", 2)[0]))
		if len(p.Values) > 0 {
			fmt.Fprintf(&b, " -x -a %s\n", quoted(strings.Join(p.Values, " ")))
		} else {
			b.WriteString(" -r\n")
		}
	}
	return b.String()
}
