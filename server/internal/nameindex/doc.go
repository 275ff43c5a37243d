// Package nameindex finds values by names whose case does not matter. It does not know what
// the values are.
package nameindex
