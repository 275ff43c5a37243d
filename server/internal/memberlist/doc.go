// Package memberlist writes and reads the list of the members that an event has changed, in
// the form that messages have: 3:abc,1:d. So the members are copied once, into a buffer that
// the commit scope has anyway, and their memory may be reused before the commit.
//
// The handlers name them, because they know which members belong to which event,
// and in which order. The journal's reports from the values do not suffice: an HSET
// that leaves a field unchanged is an event, too, and a set that is stored as a
// whole reports none of its members.
package memberlist
