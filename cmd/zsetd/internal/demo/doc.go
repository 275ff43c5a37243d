// Package demo gives a server data that change as those of an application do: the four systems of
// the event patterns, and keys of each type beside them.
//
//	live:home:news  live:sport:news     live events of 15 to 60 seconds, a few each second
//	hits:/front  hits:/shop  hits:/help counts in boxes of 5 seconds, for two minutes
//	due  details:<photo>                likes, folded for 8 seconds; two workers publish them, and one
//	                                    of them ends in the middle now and then
//	club                                a room with 30 places, and a line behind it
//	board  visitors  user:*  session:*  a leaderboard, open pages, hashes, strings with deadlines,
//	cart:*  tags:*  orders  notices     lists, sets, a stream with a group that lags, notices
//
// All of it is bounded: the data stay below a megabyte, however long the demonstration runs.
package demo
