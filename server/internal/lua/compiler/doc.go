// Package compiler compiles Lua 5.1 for the machine of package lua: a source becomes a
// prototype, with the messages that Lua has for errors in the source. Globals that never
// change are constants of the code ([Compiler.Fixed]): redis.call takes one instruction, and with the
// name of a command it is a function for that command ([Compiler.Bound]). It has nothing of Redis.
//
// The compiler is written from the grammar and the descriptions in the reference manual
// of Lua 5.1, and its messages from what redis-server replies. Each pass is a file or
// two:
//
//	scan.go               bytes to tokens
//	parse.go, express.go  tokens to a tree (tree.go): recursive descent, precedence climbing
//	resolve.go            names to registers, upvalues and globals; which scopes are captured
//	generate.go           statements to instructions
//	value.go              expressions to instructions: into a register, or an operand
//	branch.go             conditions: where to continue, and with which value
//	emit.go               instructions, labels, constants, prototypes
//	name.go               a table from instructions to the names of their operands
//	compiler.go           the passes in order
//
// The tree exists because the parser cannot know what follows: whether a variable is
// captured later, an operand is the first of a concatenation, or a call the last of a
// list. Chains of operators, suffixes and clauses are lists in it, and each other nesting
// is at most 200 deep, so no pass recurses further than that. All passes take time in
// proportion to the source, and can be stopped at each token and instruction. The
// tree and the buffers are used again for the next source: a compilation allocates
// little more than its result.
//
// Registers are a stack. Jumps lead to labels, which the last step replaces by distances;
// jumps to jumps lead to the last destination, and unreachable ones are not emitted.
package compiler
