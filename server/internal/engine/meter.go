package engine

import (
	"time"

	"github.com/zsetd/zsetd/protocol"
	"github.com/zsetd/zsetd/server/internal/base/keyslot"
	"github.com/zsetd/zsetd/server/internal/engine/metrics"
)

// Metering measures commands by their keys: for CLUSTER SLOT-STATS, and for HOTKEYS. While
// neither is on it costs a comparison for each command, or fast batch.

// metering is what is measured.
type metering struct {
	SlotKinds metrics.SlotKinds
	SlotStats *metrics.SlotStats // nil unless a node of a cluster counts time or bytes
	HotKeys   *metrics.HotKeys   // nil without HOTKEYS START
}

// metered is the state of metering in a session.
type metered struct {
	received int64 // bytes of MULTI and of the commands that are queued
	execSlot int   // slot of the transaction that EXEC runs, plus 1; 0: none
	scripted int   // slot of the commands of the script that runs, plus 1; 0: none, -1: several
}

// meters reports whether each command is measured.
func (srv *Engine) meters() bool {
	return srv.Stats.SlotStats != nil || srv.Stats.HotKeys != nil && srv.Stats.HotKeys.Active(srv.Turn.At)
}

// limitMetering applies the parameters cluster-slot-stats-enabled and key-memory-histograms.
func (srv *Engine) limitMetering() {
	srv.Stats.SlotKinds, _ = metrics.ParseSlotKinds(srv.Config.ClusterSlotStats)
	if !srv.Stats.SlotKinds.Memory && !srv.Config.KeyMemoryHistograms {
		srv.Keys.CountMemory(false)
	}
	switch on := srv.Cluster != nil && (srv.Stats.SlotKinds.CPU || srv.Stats.SlotKinds.Net); {
	case !on:
		srv.Stats.SlotStats = nil
	case srv.Stats.SlotStats == nil:
		srv.Stats.SlotStats = new(metrics.SlotStats)
	}
}

// keysOf returns the keys of a command, and their slot: -1 if there is none or several.
func keysOf(cmd *Command, argv [][]byte) (keys [][]byte, slot int) {
	slot = -1
	for i, ref := range cmd.Spec.AppendHashed(nil, argv) {
		key := argv[ref.Index]
		keys = append(keys, key)
		if k := keyslot.Of(key); i == 0 {
			slot = k
		} else if k != slot {
			slot = -1 // and stays so: no key has it
		}
	}
	return keys, slot
}

// meter measures a command that has just run in took. Its reply begins at mark.
func (s *Session) meter(cmd *Command, argv [][]byte, mark int, took time.Duration) {
	srv := s.Engine
	keys, slot := keysOf(cmd, argv)
	w := metrics.Work{Time: took, In: protocol.RequestSize(argv), Out: int64(max(0, s.Out.Len()-mark))}
	if srv.Stats.HotKeys != nil && len(keys) > 0 && srv.Stats.HotKeys.Active(srv.Turn.At) {
		srv.Stats.HotKeys.Measure(keys, slot, w.Time, w.In+w.Out, srv.Rand.Uint64())
	}
	if scripted := s.Metered.scripted; scripted != 0 {
		if s.Metered.scripted = 0; scripted != slot+1 {
			slot = -1
		}
	}
	switch {
	case s.Transaction.execing > 0 && !cmd.RunsQueue:
		if slot >= 0 {
			s.Metered.execSlot = slot + 1
		}
		return
	case cmd.RunsQueue:
		slot, w.In = s.Metered.execSlot-1, w.In+s.Metered.received
		s.Metered.execSlot, s.Metered.received = 0, 0
	case s.Transaction.Multi: // MULTI itself
		s.Metered.received = w.In
	}
	if slot >= 0 && srv.Stats.SlotStats != nil {
		srv.Stats.SlotStats.Add(slot, w)
	}
}

// meterMessage counts a message to a subscriber of a sharded channel.
func (st *stats) meterMessage(channel string, size int) {
	if st.SlotStats != nil {
		st.SlotStats.Add(keyslot.Of(channel), metrics.Work{Out: int64(size)})
	}
}

// scriptUses notes the slot of a command of the session's script.
func (m *metered) scriptUses(slot int) {
	switch {
	case slot < 0 || m.scripted == slot+1:
	case m.scripted == 0:
		m.scripted = slot + 1
	default:
		m.scripted = -1
	}
}

// meterQueued counts the bytes of a command that waits for EXEC.
func (s *Session) meterQueued(argv [][]byte) {
	if s.Engine.Stats.SlotStats != nil {
		s.Metered.received += protocol.RequestSize(argv)
	}
}

// errMemoryMetering is the error of CONFIG SET with these parameters.
const errMemoryMetering = "memory tracking cannot be enabled at runtime"
