// Package prefetch loads memory into the processor's cache before it is used, so that
// the waits for several values overlap. It has an effect on amd64 only.
package prefetch
