package migrate

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"
)

// applyScript runs commands and stores the offset that they reach. KEYS are the key of
// the offset and those of the commands; ARGV is that offset, and for each command its
// own, the number of its arguments, what it must find (see checkField), and the arguments.
// Commands up to the stored offset are skipped. A command that fails because its key does not
// exist is passed over: the key has expired here before it does at the source, which deletes
// it next or has renewed its deadline. Table older has functions in place of commands. After
// an error the offset of the commands before it is stored, so that a later call does not repeat
// them.
//
// The reply is the numbers of the commands that have not found what they must, from 1; or 0 if
// all commands were skipped.
const applyScript = `
local at = tonumber(redis.call('GET', KEYS[1]) or '-1')
local before, last, selected = at, at, '0'
if at >= tonumber(ARGV[1]) then
  return 0
end
local function lacks(check, i)
  if check == '1' then
    return redis.call('EXISTS', ARGV[i + 4]) == 0
  end
  for n in string.gmatch(check, '%d+') do
    if redis.call('EXISTS', ARGV[i + 3 + n]) == 0 then
      return true
    end
  end
  local kind = string.sub(check, -1)
  if kind == 'f' then
    return redis.pcall('HEXISTS', ARGV[i + 4], ARGV[i + 5]) == 0
  elseif kind == 'm' then
    return redis.pcall('ZSCORE', ARGV[i + 4], ARGV[i + 6]) == false
  end
  return kind == 'd'
end
local function refuses(reply)
  if type(reply) == 'table' then
    for _, n in ipairs(reply) do
      if n == -2 then
        return true
      end
    end
  end
  return reply == 0
end
local doubts, number = {}, 0
local i = 2
while i <= #ARGV do
  local n = tonumber(ARGV[i + 1])
  local check = ARGV[i + 2]
  local offset = tonumber(ARGV[i])
  if ARGV[i + 3] == 'SELECT' then
    selected = ARGV[i + 4]
  else
    number = number + 1
    if offset > last then
      before, last = last, offset
    end
  end
  if offset > at then
    local doubt = check ~= '' and lacks(check, i)
    local run, reply = older[ARGV[i + 3]]
    if run then
      reply = run(unpack(ARGV, i + 4, i + 2 + n))
    else
      reply = redis.pcall(unpack(ARGV, i + 3, i + 2 + n))
    end
    if doubt or #check > 1 and string.sub(check, -1) == 'r' and refuses(reply) then
      doubts[#doubts + 1] = number
    end
    if type(reply) == 'table' and reply.err and (n < 2 or redis.call('EXISTS', ARGV[i + 4]) == 1) then
      if before > at then
        if selected ~= '0' then
          redis.call('SELECT', 0)
        end
        redis.pcall('SET', KEYS[1], string.format('%.0f', before))
      end
      return redis.error_reply(reply.err .. ' (' .. ARGV[i + 3] .. ' ' .. tostring(ARGV[i + 4]) .. ')')
    end
  end
  i = i + 3 + n
end
redis.call('SET', KEYS[1], ARGV[1])
return doubts
`

// olderCommands are the commands in the stream of a zsetd that Redis before 7.0 lacks or has
// with fewer options: LMOVE, XTRIM MINID and XGROUP CREATECONSUMER came with 6.2, and
// ENTRIESADDED, MAXDELETEDID and ENTRIESREAD with 7.0. A consumer that is not created comes
// with its first entry.
const olderCommands = `
local older = {
  LMOVE = function(from, to, pop, push)
    local element = redis.pcall(pop == 'LEFT' and 'LPOP' or 'RPOP', from)
    if type(element) ~= 'string' then
      return element
    end
    return redis.pcall(push == 'LEFT' and 'LPUSH' or 'RPUSH', to, element)
  end,
  XSETID = function(key, last)
    return redis.pcall('XSETID', key, last)
  end,
  XTRIM = function(key, how, limit)
    if how ~= 'MINID' then
      return redis.pcall('XTRIM', key, how, limit)
    end
    local gone = redis.call('XRANGE', key, '-', limit)
    local n = #gone
    if n > 0 and gone[n][1] == limit then
      n = n - 1
    end
    return redis.pcall('XTRIM', key, 'MAXLEN', redis.call('XLEN', key) - n)
  end,
  XGROUP = function(...)
    local n = select('#', ...)
    for i, word in ipairs({...}) do
      if i == 1 and word == 'CREATECONSUMER' then
        redis.pcall('XGROUP', ...)
        return
      elseif i > 4 and word == 'ENTRIESREAD' then
        n = i - 1
        break
      end
    end
    return redis.pcall('XGROUP', unpack({...}, 1, n))
  end,
}
`

// scriptFor returns the script for a product.
func scriptFor(p product) *redis.Script {
	if p.major >= 7 {
		return redis.NewScript("local older = {}" + applyScript)
	}
	return redis.NewScript(olderCommands + applyScript)
}

const (
	// always is the offset of a command that a script must not skip.
	always = 1<<53 - 1
	// maxScriptArgs is the maximum number of arguments of a command of a script: Lua
	// passes some 8000.
	maxScriptArgs = 7000
)

// What a command must find, as it has at the source, is a text: the indexes of arguments that are
// keys, divided by spaces, and one of these letters or none.
const (
	checkField  = 'f' // the field that is the second argument
	checkMember = 'm' // the member that is the third argument
	checkReply  = 'r' // that which makes the reply not 0, and have no -2
	checkDoubt  = 'd' // more than a script can ask for
)

// unit is the commands that one call applies: those of a slot, or of a source.
type unit struct {
	key      string // of the offset
	keys     []any  // of the commands
	commands []any  // arguments of the script
	n        int    // commands
	touched  []span // of each command
	lacking  []int  // commands that have not found what they must, when the unit is applied
	offset   int64  // that they reach
	db       int    // selected by the commands so far
	bytes    int

	keptKeys, keptCommands int // of keys and commands, those that are copies: see keep
}

// span is the keys of a command among those that its applier touches.
type span struct {
	first, end int
	removes    bool // the command deletes them
}

func newUnit(key string) *unit { return &unit{key: key} }

// add adds a command that need not find anything.
func (u *unit) add(offset int64, db int, keys [][]byte, args ...any) {
	u.addChecked(span{}, "", offset, db, keys, args...)
}

// addChecked adds a command.
func (u *unit) addChecked(touched span, check string, offset int64, db int, keys [][]byte, args ...any) {
	u.touched = append(u.touched, touched)
	if db != u.db {
		u.db = db
		u.commands = append(u.commands, int64(always), 2, "", "SELECT", db)
	}
	u.commands = append(append(u.commands, offset, len(args), check), args...)
	for _, k := range keys {
		u.keys = append(u.keys, k)
	}
	for _, a := range args {
		if b, ok := a.([]byte); ok {
			u.bytes += len(b)
		}
	}
	u.n++
	u.offset = max(u.offset, offset)
}

// call appends the call of the script to a pipeline.
func (u *unit) call(ctx context.Context, p redis.Pipeliner, sha string) *redis.Cmd {
	if u.db != 0 {
		u.commands = append(u.commands, int64(always), 2, "", "SELECT", 0)
		u.db = 0
	}
	args := make([]any, 0, 5+len(u.keys)+len(u.commands))
	args = append(args, "EVALSHA", sha, 1+len(u.keys), u.key)
	args = append(append(args, u.keys...), u.offset)
	return p.Do(ctx, append(args, u.commands...)...)
}

// applied takes the reply of a call. If all commands were skipped, the reply of an earlier call
// was lost, and each command may lack something.
func (u *unit) applied(reply any) {
	list, _ := reply.([]any)
	for _, n := range list {
		if number, ok := n.(int64); ok && number >= 1 && number <= int64(u.n) {
			u.lacking = append(u.lacking, int(number-1))
		}
	}
	if _, skipped := reply.(int64); skipped {
		for i := range u.n {
			u.lacking = append(u.lacking, i)
		}
	}
}

// apply applies units, in any order, each completely.
func (t *target) apply(ctx context.Context, units []*unit) error {
	return t.retry(ctx, func() error {
		p := t.rdb.Pipeline()
		calls := make([]*redis.Cmd, len(units))
		for i, u := range units {
			calls[i] = u.call(ctx, p, t.script.Hash())
		}
		if len(calls) == 0 {
			return nil
		}
		_, _ = p.Exec(ctx) // each call has its own error
		var again []*unit
		var why error
		for i, c := range calls {
			switch err := c.Err(); {
			case err == nil:
				units[i].applied(c.Val())
			case transient(err):
				again, why = append(again, units[i]), err
			default:
				return fmt.Errorf("%s refuses a command of the source: %w", t.Endpoint, err)
			}
		}
		units = again
		return why
	})
}

// applyLarge applies one command whose arguments do not fit a script, in a
// transaction that fails if the offset changes meanwhile.
func (t *target) applyLarge(ctx context.Context, key string, offset int64, db int, args []any) error {
	return t.retry(ctx, func() error {
		err := t.rdb.Watch(ctx, func(tx *redis.Tx) error {
			at, err := tx.Get(ctx, key).Int64()
			if err == nil && at >= offset {
				return nil
			}
			if err != nil && err != redis.Nil {
				return err
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				if db != 0 {
					p.Do(ctx, "SELECT", db)
				}
				p.Do(ctx, args...)
				if db != 0 {
					p.Do(ctx, "SELECT", 0)
				}
				p.Set(ctx, key, strconv.FormatInt(offset, 10), 0)
				return nil
			})
			return err
		}, key)
		if err == redis.TxFailedErr {
			return fmt.Errorf("TRYAGAIN: %w", err)
		}
		return err
	})
}
