// Command mutate plants faults in the code, one at a time, and reports those that no test
// notices. "make mutate" runs it.
//
//	go run ./mutate -n 50 -seed 1
//
// A place is an expression or a statement that can have a fault:
//
//   - comparison: < becomes <=, > becomes >=, == becomes !=, and the reverse;
//   - sign: + becomes -, += becomes -=, ++ becomes --, and the reverse;
//   - constant: a number that the source spells out is one larger, a duration twice as long;
//   - condition: an if takes the other branch;
//   - call: a statement that is a call is left out;
//   - return: a return within an if is left out.
//
// All places are compiled into one copy of the source tree. Package mutant of that copy
// chooses the place that is faulty by an environment variable, so a fault costs no
// compilation. This is mutation testing with mutant schemata (Untch, Offutt, Harrold,
// "Mutation analysis using mutant schemata", ISSTA 1993).
//
// Each test runs once without a fault. The copy notes the places that it reaches in a file
// that is mapped into memory, which child processes of a test share. Then, for each fault
// of the sample, the tests that reach its place run, the shortest first, until one fails.
// A test that does not end within a multiple of its time fails. A test that also fails
// without the fault does not count.
//
// The report has the proportion of noticed faults by package, the faults that no test
// notices, and the number of places that no test reaches; -places writes a list of those
// that at most one test reaches. A fault that changes nothing, such as a larger capacity of
// a buffer, counts as not noticed: a reader sorts those out.
//
// With -tests only the tests of some packages run, which takes minutes instead of hours; a
// fault that another package's test notices then counts as not noticed.
//
// The copy, the compiled tests and the record of a tree are kept in the directory -dir, and
// used again while the tree and -tests do not change.
package main
