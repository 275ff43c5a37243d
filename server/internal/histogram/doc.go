// Package histogram counts durations in buckets of logarithmic width, so that
// percentiles have a bounded relative error and a count costs one increment. LATENCY
// HISTOGRAM and the section latencystats of INFO read it.
package histogram
