// Package zset is an ordered set: unique members with scores, ordered by (score, member).
package zset
