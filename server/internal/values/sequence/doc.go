// Package sequence has the values that are sequences: [List], of byte strings, and
// [Stream], of entries with ascending IDs, with its consumer groups. Both are deques of
// blocks of some 4 KB in which elements are packed, and both are cloned in O(1) by copy
// on write.
//
// A value with an observer (Observe) appends its changes to that log, as package journal
// specifies; Replay executes them, and Write writes a whole value in the same form. The
// package knows no keys, deadlines, commands or other values.
package sequence
