// Package simulation contains no code of the program. Its tests run servers, their
// replicas, clients and data files in one process, in a bubble of testing/synctest: on a
// clock that moves when all goroutines wait, and on a network in memory whose delays,
// stalls and broken connections follow from a seed. A seed repeats a run.
//
//	make simulate SEED=7             one seed
//	make simulate SEED=1 SEEDS=1000  a thousand from 1 on
//
// Servers are killed when all goroutines wait, so never within a write to the file. Tests
// of package snapshot and of server/e2e/faults do that.
//
// A run is an hour of simulated time. Clients add elements to all types of data, wait for
// replicas with WAIT, and remember which additions were acknowledged. Meanwhile links
// stall or break, servers are killed and start again from the file that they had at that
// instant, and a supervisor promotes the replica that has the most. At the end the links
// are whole, and the run verifies
//
//   - that each addition which WAIT promised to be on two of three servers is there;
//   - that all servers have the same data;
//   - that the invariants of each server's memory hold;
//   - that the output queues of replicas stay within their limit.
//
// # What a seed determines
//
// All random choices of the network, of the faults and of the clients. Goroutines that
// run at the same instant are ordered by the Go scheduler, which has one processor in a
// simulation. TestRepeats compares the traffic of two runs.
package simulation
