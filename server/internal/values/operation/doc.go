// Package operation has the operations of which a change of a value consists, and reads them
// from a journal. It knows neither keys nor keyspaces.
package operation
