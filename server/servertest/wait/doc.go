// Package wait is for tests. [Until] waits for a condition. Tests call time.Sleep only in
// a synctest bubble, where no time passes; elsewhere [Pace] and [Elapse] name the two
// purposes of a sleep that are allowed. Neither proves that something does not happen: a
// busy machine may need longer. Such a test waits for an event that can only come later.
package wait
