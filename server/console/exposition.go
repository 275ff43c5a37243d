package console

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/VictoriaMetrics/metrics"
)

// expositionType is the content type of the text format of Prometheus.
const expositionType = "text/plain; version=0.0.4; charset=utf-8"

// exposition is a document in the text format of Prometheus:
// https://prometheus.io/docs/instrumenting/exposition_formats/. It demands that the samples of
// one metric stand together, after its help and its type. Metrics are in the order of their
// first samples. A registry holds what changes; here each document is made of one reading of the
// server, and only those of the runtime and the process come from a library. Prometheus's own,
// which can do both, links protocol buffers: 3.2 MB of program, 2.5 MB of memory also while the
// console is off.
type exposition struct {
	metrics map[string]*bytes.Buffer
	order   []*bytes.Buffer
}

// bucket is an upper bound and how many observations do not exceed it, or a quantile and its
// value.
type bucket struct{ bound, value float64 }

func newExposition() *exposition { return &exposition{metrics: map[string]*bytes.Buffer{}} }

// bytes returns the document.
func (e *exposition) bytes() (b []byte) {
	for _, m := range e.order {
		b = append(b, m.Bytes()...)
	}
	return b
}

// metric returns where the samples of a metric go.
func (e *exposition) metric(name, help, kind string) *bytes.Buffer {
	b := e.metrics[name]
	if b == nil {
		b = new(bytes.Buffer)
		e.metrics[name], e.order = b, append(e.order, b)
		b.WriteString("# HELP " + name + " " + strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(help) + "\n# TYPE " + name + " " + kind + "\n")
	}
	return b
}

// add adds a sample of a gauge or a counter. Labels are pairs of names and values, in any
// bytes.
func (e *exposition) add(name, help, kind string, value float64, labels ...string) {
	writeSample(e.metric(name, help, kind), name, value, labels)
}

// histogram adds a histogram. Its buckets are cumulative, with rising bounds.
func (e *exposition) histogram(name, help string, buckets []bucket, count, sum float64, labels ...string) {
	b := e.metric(name, help, "histogram")
	for _, one := range append(buckets, bucket{math.Inf(1), count}) {
		writeSample(b, name+"_bucket", one.value, append(labels[:len(labels):len(labels)], "le", number(one.bound)))
	}
	writeSample(b, name+"_sum", sum, labels)
	writeSample(b, name+"_count", count, labels)
}

// summary adds quantiles.
func (e *exposition) summary(name, help string, quantiles []bucket, count, sum float64, labels ...string) {
	b := e.metric(name, help, "summary")
	for _, one := range quantiles {
		writeSample(b, name, one.value, append(labels[:len(labels):len(labels)], "quantile", number(one.bound)))
	}
	writeSample(b, name+"_sum", sum, labels)
	writeSample(b, name+"_count", count, labels)
}

// writeSample writes the line of a sample.
func writeSample(b *bytes.Buffer, name string, value float64, labels []string) {
	b.WriteString(name)
	for i := 0; i+1 < len(labels); i += 2 {
		if i == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}
		text := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(strings.ToValidUTF8(labels[i+1], "\uFFFD"))
		b.WriteString(labels[i] + `="` + text + `"`)
	}
	if len(labels) > 0 {
		b.WriteByte('}')
	}
	b.WriteString(" " + number(value) + "\n")
}

// number formats a value, or the bound of a bucket.
func number(f float64) string {
	if math.IsInf(f, 1) {
		return "+Inf"
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// process adds the metrics of the Go runtime and of the process, with the names of Prometheus's
// own libraries. The library writes neither their help nor their types, nor
// the counts of histograms.
func (e *exposition) process() {
	b := new(bytes.Buffer)
	metrics.WriteGoMetrics(b)
	metrics.WriteProcMetrics(b)
	metrics.WriteFDMetrics(b)
	kinds := map[string]string{} // of histograms and summaries
	for line := range strings.Lines(b.String()) {
		sample, _, _ := strings.Cut(line, " ")
		name, _, _ := strings.Cut(sample, "{")
		kind := "gauge"
		switch base, is := strings.CutSuffix(name, "_bucket"); {
		case is:
			name, kind = base, "histogram"
		case strings.Contains(sample, "{quantile="):
			kind = "summary"
		case strings.HasSuffix(name, "_total"):
			kind = "counter"
		case strings.HasSuffix(name, "_count"):
			kind = "untyped"
		}
		for _, suffix := range []string{"_sum", "_count"} {
			if base, is := strings.CutSuffix(name, suffix); is && kinds[base] != "" {
				name, kind = base, kinds[base]
			}
		}
		if kind == "histogram" || kind == "summary" {
			kinds[name] = kind
		}
		to := e.metric(name, processHelp(name), kind)
		to.WriteString(line)
		if count, last := strings.CutPrefix(line, name+`_bucket{le="+Inf"} `); last && kind == "histogram" {
			to.WriteString(name + "_count " + count)
		}
	}
}

// processHelp returns where a metric of the runtime or the process comes from.
func processHelp(name string) string {
	for _, h := range []struct{ prefix, help string }{
		{"go_memstats_", "The field of runtime.MemStats of this name."},
		{"go_info", "The version of Go and the platform."},
		{"go_", "State of the Go runtime, as in packages runtime and runtime/metrics."},
		{"process_io_", "Input and output of the process, as in /proc/self/io."},
		{"process_pressure_", "Time that processes have waited for a resource, as in /proc/pressure or that of the control group."},
	} {
		if strings.HasPrefix(name, h.prefix) {
			return h.help
		}
	}
	return "State of the process, as in /proc/self."
}
