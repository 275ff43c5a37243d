// Package score parses scores of sorted sets. Wherever a command takes a score, or a
// bound of scores, it also takes a time of the server's clock:
//
//	@now      seconds since 1970, with microseconds as the fraction
//	@nowms    milliseconds since 1970, whole
//	@now-24h  less or more a duration: ms, s, m, h, d, or several (1h30m); a
//	          bare number counts in the unit of the base
//
// A [Score] keeps its relation to the clock, for commands that wait until elements are
// due; the score that is stored is the number. The caller passes the instant: all commands
// of a turn, and so of a pipeline that runs in one turn, see the same one. Increments are
// not scores: ZINCRBY takes no time.
package score
