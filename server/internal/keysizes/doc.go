// Package keysizes has a histogram of values by kind and by the power of two of their size,
// as the section keysizes of INFO shows it. It knows neither values nor what a size is.
package keysizes
