// Package prompt is the tool cli: it sends commands to a server and prints the replies as
// redis-cli does, at a prompt, from standard input or from the command line.
//
//   - [Session] runs commands on one connection, follows what they change (database,
//     transaction, subscriptions), and connects again.
//   - [Form] is how replies are printed.
//   - commands are what is known of the server's commands, by which the prompt
//     completes names, and shows arguments and help.
//   - the editor of lines is github.com/ergochat/readline; the session does not know it.
//
// A session works without a terminal: tests give it readers and writers.
package prompt
