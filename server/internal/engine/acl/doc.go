// Package acl decides which users may run which commands, on which keys and channels, by
// the rules of Redis's access control lists.
//
// A [User] is a set of selectors; one of them must allow all of a command: the command
// itself, its keys and its channels. Rules outside of parentheses apply to the first
// selector, the root.
//
// [NewCommands] numbers every command and subcommand. A selector holds one bit for each,
// and beside these bits the first arguments with which a command may be run that is not
// allowed otherwise. So a check is a bit test. Rules of Valkey 9.1 (db=0,1 alldbs
// resetdbs) restrict the databases: those that arguments name, and the selected one if
// the command reads or writes data. For a user with all permissions there is
// no check: callers test [User.Unrestricted] only. The positions and the access of keys
// and channels come from the facts of a command (package protocol).
//
// The permissions of a selector are shown as the rules that produced them, in their
// order, without those that later rules have replaced, as in Redis since 7.2. Redis
// 7.0 derives categories that match the bits closely and lists the differences, in
// no particular order: a user saved in that form gains commands when a later
// version adds them to a category that no rule has named.
//
// A series of N rules takes time O(N): lists of keys, channels and passwords have an
// index while rules are applied, and replaced rules are removed in passes over twice as
// many rules each.
//
// The package has no lock of its own. One lock of the caller guards a [List] and its
// users, except [List.LoginRequired] and [List.Open], which need none.
package acl
