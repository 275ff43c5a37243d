// Package differential contains no code of the program. Its tests draw commands from the table
// of commands, and check what zsetd does with them:
//
//   - that its replies, events and data are those of a real Redis or Valkey: random commands,
//     transactions, several clients, and the differences by design (differences_test.go, with the
//     list of package judge);
//   - that the values of DUMP, RDB files and the functions of other servers are read and written
//     as they do, and that a replica of another server, or from one, has the same data;
//   - that data survive restarts, that live queries show them, that no number and no input
//     panics, takes long or breaks an invariant, and that a command uses the keys that the ACL checks.
//
// generate_test.go draws commands, generate_clients_test.go what several clients do.
// differential_test.go sends them to both servers, and reports the shortest history that shows
// a difference. The servers to compare with are those of .ci/judges; without them it is
// Redis 7.0. make differential makes a long run.
package differential
