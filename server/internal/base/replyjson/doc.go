// Package replyjson converts replies of RESP3 to JSON, for the console and for live queries. Arrays,
// sets, pushes and maps are arrays, a map with an array of two for each pair; a string that is
// no UTF-8 is {"base64": …}.
package replyjson
