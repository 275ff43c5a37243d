// Package address reads the addresses of other servers and clusters, as the tool migrate
// and the parameter forward-to take them. It opens no connections.
package address
